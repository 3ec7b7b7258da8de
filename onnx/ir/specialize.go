package ir

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// Specialize returns a copy of a graph of a model for inputs of other sizes, by name. Unknown ones stay
// as they are. Types are inferred anew, and what does not fit is left to who computes it: passes that
// have looked at the graph of all sizes need not do so again for some of them.
func Specialize(g *fgraph.FunctionGraph, shapes map[string][]Dim) (*fgraph.FunctionGraph, error) {
	source := SourceOf(g).For()
	source.fixed = true
	sp := &specializing{operators: source.Operators, source: source, symbols: make(map[string]bool)}
	inputs := make([]*fgraph.Variable, len(g.Inputs()))
	unused := maps.Clone(shapes)
	for i, v := range g.Inputs() {
		t := TypeOf(v)
		if dims, ok := shapes[v.Name()]; ok {
			delete(unused, v.Name())
			var err error
			if t, err = withShape(t, dims); err != nil {
				return nil, fmt.Errorf("%w:\ninput %s: %w", ErrModel, v.Name(), err)
			}
		}
		dims, _ := t.Shape()
		for _, d := range dims {
			sp.symbols[d.String()] = true
		}
		inputs[i] = fgraph.NewInput(t, v.Name())
	}
	// Sorted, so that the error is the same in each run.
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		return nil, fmt.Errorf("%w:\ninput %s: a shape is given, but the model has no such input", ErrModel, name)
	}
	c, err := sp.graph(g, inputs, source)
	source.imported = c
	return c, err
}

type specializing struct {
	operators *Operators
	source    *Source
	symbols   map[string]bool
}

// graph returns a copy of a graph for other inputs.
func (sp *specializing) graph(g *fgraph.FunctionGraph, inputs []*fgraph.Variable, source *Source) (*fgraph.FunctionGraph, error) {
	order, err := g.Toposort()
	if err != nil {
		return nil, err
	}
	now := make(copied)
	for i, v := range g.Inputs() {
		now[v] = inputs[i]
	}
	applies := make([]*fgraph.Apply, len(order))
	for i, a := range order {
		if applies[i], err = sp.apply(a, now.of(a.Inputs())); err != nil {
			return nil, err
		}
		for k, v := range a.Outputs() {
			now[v] = applies[i].Outputs()[k]
		}
	}
	return fgraph.NewInOrder(inputs, now.of(g.Outputs()), applies, source)
}

// apply returns a copy of an apply for other inputs.
func (sp *specializing) apply(a *fgraph.Apply, in []*fgraph.Variable) (*fgraph.Apply, error) {
	op := a.Op().(*Op)
	if len(op.Bodies) > 0 {
		bodies := make([]*Body, len(op.Bodies))
		_, captured := op.Split(in)
		for i, b := range op.Bodies {
			g, err := sp.body(b, captured[:b.Captures()])
			if err != nil {
				return nil, err
			}
			bodies[i] = b.With(g)
			bodies[i].types = nil
			captured = captured[b.Captures():]
		}
		op = op.WithBodies(bodies...)
	}
	list, err := sp.operators.Infer(op, in)
	if err != nil || len(list) != len(a.Outputs()) {
		list = make([]Type, len(a.Outputs()))
	}
	types := make([]fgraph.Type, len(list))
	for i, v := range a.Outputs() {
		// Of the old type only the elements and the rank hold for other sizes as well.
		t, ok := list[i].Meet(TypeOf(v).elementsOnly())
		if !ok {
			t = list[i]
		}
		types[i] = symbolized(sp.symbols, t, v.Name())
	}
	b := fgraph.NewApply(op, in, types...)
	b.SetOrigin(a.Origin())
	for i, v := range a.Outputs() {
		b.Outputs()[i].SetName(v.Name())
	}
	return b, nil
}

// body returns a copy of the graph of a body for what it captures now.
func (sp *specializing) body(b *Body, captured []*fgraph.Variable) (*fgraph.FunctionGraph, error) {
	inputs := make([]*fgraph.Variable, len(b.Graph.Inputs()))
	for i, v := range b.Graph.Inputs() {
		// What a round gives is not known from outside, and may grow from round to round.
		t := TypeOf(v).elementsOnly()
		if i >= b.Params {
			t = TypeOf(captured[i-b.Params])
		}
		inputs[i] = fgraph.NewInput(symbolized(sp.symbols, t, v.Name()), v.Name())
	}
	return sp.graph(b.Graph, inputs, sp.source.For())
}

// A copied has what variables of a graph are in a copy.
type copied map[*fgraph.Variable]*fgraph.Variable

// of returns what variables are in the copy. Constants become copies when somebody asks.
func (c copied) of(list []*fgraph.Variable) []*fgraph.Variable {
	values := make([]*fgraph.Variable, len(list))
	for i, v := range list {
		if c[v] == nil {
			c[v] = fgraph.NewConstant(v.Type(), v.Data(), v.Name())
		}
		values[i] = c[v]
	}
	return values
}
