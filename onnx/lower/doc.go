// Package lower makes graphs of tensors of the graphs of ONNX models. Each node becomes ops of package
// tensor, so that all passes for tensors apply. It runs nothing: package exec/session does.
//
// The shape of a Reshape, the axes of a sum and the ends of a slice are values in ONNX, and parts of the
// graph for tensors. So a model is lowered for given shapes of the inputs or, unless a node has to know a
// size, for any ([Options.AnySizes]). Where a node asks for a value, it is computed from the inputs while the
// graph is made, and the graph depends on it: see [Demand]. A loop is unrolled if it is short or its rounds
// have values of different types; otherwise it becomes an op that holds the graph of a round. Sequences are
// lists whose lengths are known.
//
// An operator, an attribute or a type that can't be computed is an error that names the node. All such
// nodes are reported.
package lower
