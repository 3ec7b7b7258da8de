// Package model runs ONNX models from Go:
//
//	m, err := model.Open("encoder.onnx")
//	out, err := m.Run(ctx, model.Inputs{"input_ids": ids, "attention_mask": mask})
//	v, err := model.Slice[float32](out["embedding"])
//
// What it does unless [Options] say otherwise: [Open] maps the file, checks that everything in it can be computed, and
// selects the passes of the query fast_run, which keep the meaning of a model also where something overflows or is NaN
// (passes.ForModels). The first [Model.Run] optimizes the model for the sizes of its inputs, which takes most of the
// time until the first result, and one with other sizes makes it ready for any. As many threads as Go may use compute
// a run together, with the same bits for any number, and a run takes 8 GiB of memory at most. Initializers that are also
// inputs, as in old files, are constants. Nothing is written, and nothing is loaded or started before [Open].
//
// A Model is for any number of goroutines. A [Runner] is for one and allocates nothing, a [Stateful] carries the cache
// of a decoder from step to step, and a [Batcher] computes small requests of many goroutines together. Below them are
// the packages onnx, passes and exec/session: see [Model.File], [Model.Optimizer] and [Model.Session].
package model
