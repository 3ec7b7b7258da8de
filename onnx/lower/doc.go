// Package lower computes ONNX models as graphs of tensors. Each node becomes what package tensor has
// for it, node by node, so that all passes for tensors apply.
//
//	f, err := lower.Model(ctx, m, lower.Options{}, inputs)
//	outputs, err := f.Call(ctx, inputs)
//
// ONNX decides by values what tensors decide when a graph is made: the shape of a Reshape, the axes
// of a sum, the ends of a slice. So a model is lowered for the shapes of some inputs, and where a
// node asks for a value, for that value: it is computed from the inputs while the graph is made.
// [Function.Call] refuses inputs that would have made another graph, and a [Session] makes that one. A
// loop is unrolled if it is short or its rounds have values of different types, and otherwise an op that
// holds the graph of a round. Sequences are lists whose lengths are known.
//
// What can't be computed, an operator, an attribute or a type, is an error that names the node; there
// is one for each node, before anything runs.
package lower
