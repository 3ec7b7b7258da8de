// Package onnx reads and writes ONNX models.
//
//	m, err := onnx.ReadFile("model.onnx")
//	err = onnx.Check(m)
//	for _, n := range m.Graph.Nodes { ... }
//	err = m.WriteFile(ctx, "out.onnx")
//
// The types are ONNX's messages, from version 1 of its operators to the newest, with the names that
// Go would give them. A model that is written as it was read is the same to the byte: messages that
// other programs encode in their own way keep that encoding until they are changed, and fields that
// this package does not know are kept.
//
// # Changes
//
// To change a model, assign to fields. A message that was read remembers its fields, and is encoded anew
// if one of them has changed; messages within it that have not changed keep their bytes. That holds for
// all fields, for elements of lists, for messages that are added, removed, moved or copied by value, and
// for a change that is taken back.
//
// # Weights
//
// Weights are not copied. [Tensor.Raw] is part of what the model was read from, which for [ReadFile] is
// the mapped file: it must not be changed in place, but by [Tensor.SetData]. What is in other files is
// mapped when [Tensor.Data] asks for it. [Model.Close] gives all of it back; [Model.WriteFile] says what
// becomes of data in other files. It never writes to a file that is mapped, but replaces it. If another
// program truncates a mapped file, looking at the lost part ends this program.
//
// # Untrusted files
//
// Files may come from anywhere. Reading takes memory in proportion to their size, a fault is an error
// that names its place, and external data can't lead out of the folder of the model. Reading checks the
// encoding alone; [Check] finds faults of structure.
//
// A model may be read, checked, written and asked for its data by several goroutines at once, as long as
// none of them changes or closes it.
package onnx
