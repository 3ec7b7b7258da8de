// Package onnx reads and writes ONNX models.
//
//	m, err := onnx.ReadFile("model.onnx")
//	for _, n := range m.Graph.Nodes { ... }
//	err = m.WriteFile(ctx, "out.onnx")
//
// The types are ONNX's messages, from version 7 of its operators to the newest, with the names that
// Go would give them. A model that is written as it was read is the same to the byte: messages that
// other programs encode in their own way keep that encoding until they are changed, and fields that
// this package does not know are kept.
//
// Weights are not copied: [Tensor.Raw] is part of what the model was read from, and must not be
// changed in place.
//
// Files may come from anywhere. Reading takes memory in proportion to their size, and a fault is an
// error that names its place.
package onnx
