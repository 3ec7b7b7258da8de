// Package ir represents ONNX models as graphs of their nodes, which passes rewrite.
//
//	m, err := onnx.ReadFile("model.onnx")
//	g, err := ir.Import(m, ir.Options{})
//	// ... rewrite g ...
//	m, err = ir.Export(g)
//
// There is one apply for each node, with the attributes that the node has; operators that this
// package does not know are opaque, and survive. A constant is an initializer or what a Constant
// node has. Values have a [Type], as much of it as is known: shapes may have symbols, and small
// integers, which shapes are made of, are part of the type. [Operators] says which operators there
// are, and how the types of their results follow.
//
// An operator whose parameters were attributes in older versions of ONNX, and became inputs, has
// inputs in a graph whatever the version of the model is. [Export] writes what the version asks for.
//
// An If is an op of a condition and of the results of both branches, as Theano's ifelse is, so that
// passes see both branches. Export puts what only one branch needs into that branch again.
//
// Types, operators and values do not change and are safe for concurrent use. A graph is confined to
// one goroutine at a time.
package ir
