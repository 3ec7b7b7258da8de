package onnxpass

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx/ir"
)

// Conform gives a replacement all that is known of what it replaces.
func (v vocabulary) Conform(_ *fgraph.Apply, old, x *fgraph.Variable) (*fgraph.Variable, error) {
	return conform(old, x), nil
}

// conform returns x, which takes the place of old, with all that is known of old. Types of graphs only
// get better: what follows from a size may have been used already. Nothing can be added to a value
// that a graph has.
func conform(old, x *fgraph.Variable) *fgraph.Variable {
	a := x.Owner()
	both, ok := ir.TypeOf(x).Meet(ir.TypeOf(old))
	if a == nil || a.Graph() != nil || !ok || both == ir.TypeOf(x) {
		return x
	}
	types := lists.Map(a.Outputs(), (*fgraph.Variable).Type)
	types[x.Index()] = both
	return retyped(a, a, types).Outputs()[x.Index()]
}

// retyped returns an apply with results of other types, and the origin and the names of another one.
func retyped(a, named *fgraph.Apply, types []fgraph.Type) *fgraph.Apply {
	b := fgraph.NewApply(a.Op(), a.Inputs(), types...)
	b.SetOrigin(named.Origin())
	for i, v := range named.Outputs() {
		b.Outputs()[i].SetName(v.Name())
	}
	return b
}
