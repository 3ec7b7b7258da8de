package repro

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
)

// Interpret computes the outputs of a graph. It calls apply for one apply after another, in the
// order of [fgraph.FunctionGraph.Toposort], with the values of its inputs; apply returns those of
// its outputs. The value of a constant is its data.
//
// Values are shared, not copied: all readers of a variable get the same one. An op that destroys an
// input, see [fgraph.Destroyer], gets the value itself, too, and may overwrite it: everything else
// that reads it has been computed before. If the graph has such ops, Interpret attaches a
// [fgraph.DestroyHandler] for that. What an op overwrites although it may not is an error that wraps
// [fgraph.ErrInconsistent]. If a feature permits inputs of the graph to be destroyed, the elements
// of inputs are overwritten as well.
func Interpret(g *fgraph.FunctionGraph, inputs []any, apply func(a *fgraph.Apply, in []any) ([]any, error)) ([]any, error) {
	if len(inputs) != len(g.Inputs()) {
		return nil, fmt.Errorf("%w: %d values for %d inputs", ErrCase, len(inputs), len(g.Inputs()))
	}
	if err := validate(g); err != nil {
		return nil, err
	}
	order, err := g.Toposort()
	if err != nil {
		return nil, err
	}
	values := make([]any, g.NumVariableIDs())
	of := func(list []*fgraph.Variable) []any {
		return lists.Map(list, func(v *fgraph.Variable) any { return values[v.ID()] })
	}
	for v := range g.Variables() {
		if v.IsConstant() {
			values[v.ID()] = v.Data()
		}
	}
	for i, v := range g.Inputs() {
		values[v.ID()] = inputs[i]
	}
	for _, a := range order {
		out, err := apply(a, of(a.Inputs()))
		if err == nil && len(out) != len(a.Outputs()) {
			err = fmt.Errorf("%w: %d values for %d outputs", ErrCase, len(out), len(a.Outputs()))
		}
		if err != nil {
			return nil, fmt.Errorf("%v: %w", a, err)
		}
		for i, v := range a.Outputs() {
			values[v.ID()] = out[i]
		}
	}
	return of(g.Outputs()), nil
}

// validate returns an error if the graph overwrites what it may not. It attaches a DestroyHandler
// to a graph that overwrites anything.
func validate(g *fgraph.FunctionGraph) error {
	for a := range g.Applies() {
		if fgraph.Destroys(a.Op()) {
			if err := fgraph.WatchDestroyers(g); err != nil {
				return err
			}
			break
		}
	}
	return g.Validate()
}
