package repro

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
)

// Rebuild makes a copy of a graph with other leaves and applies.
func Rebuild(g *fgraph.FunctionGraph, leaf func(*fgraph.Variable) *fgraph.Variable, apply func(*fgraph.Apply, []*fgraph.Variable) (*fgraph.Apply, error)) (*fgraph.FunctionGraph, error) {
	made := make([]*fgraph.Variable, g.NumVariableIDs())
	of := func(list []*fgraph.Variable) []*fgraph.Variable {
		return lists.Map(list, func(v *fgraph.Variable) *fgraph.Variable { return made[v.ID()] })
	}
	for v := range g.Variables() {
		if v.Owner() == nil {
			made[v.ID()] = leaf(v)
		}
	}
	for a := range g.Ordered() {
		b, err := apply(a, of(a.Inputs()))
		if err != nil {
			return nil, err
		}
		if len(b.Outputs()) != len(a.Outputs()) {
			return nil, fmt.Errorf("%w: %v has %d outputs", ErrCase, b, len(b.Outputs()))
		}
		b.SetOrigin(a.Origin())
		for i, v := range a.Outputs() {
			made[v.ID()] = b.Outputs()[i]
		}
	}
	return fgraph.New(of(g.Inputs()), of(g.Outputs()))
}

// Leaf returns a copy of an input or a constant.
func Leaf(v *fgraph.Variable) *fgraph.Variable {
	if v.IsConstant() {
		return fgraph.NewConstant(v.Type(), v.Data(), v.Name())
	}
	return fgraph.NewInput(v.Type(), v.Name())
}
