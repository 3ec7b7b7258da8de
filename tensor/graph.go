package tensor

import "github.com/nnopt/nnopt/fgraph"

// NewGraph returns a graph of copies of what the outputs are computed from, so that the expressions
// can be used again, in other graphs for example. The inputs of the graph are copies of inputs, in
// their order. Features are attached to the graph. The error wraps one of package fgraph, for
// example if an output depends on an input that is not listed.
func NewGraph(inputs, outputs []*fgraph.Variable, features ...fgraph.Feature) (*fgraph.FunctionGraph, error) {
	copies := make(map[*fgraph.Variable]*fgraph.Variable)
	all := func(vars []*fgraph.Variable) []*fgraph.Variable {
		list := make([]*fgraph.Variable, len(vars))
		for i, v := range vars {
			list[i] = copies[v]
		}
		return list
	}
	for _, v := range inputs {
		copies[v] = fgraph.NewInput(v.Type(), v.Name())
	}
	ins := all(inputs)
	copied := func(v *fgraph.Variable) bool {
		switch {
		case copies[v] != nil || v.Owner() != nil:
		case v.IsConstant():
			copies[v] = fgraph.NewConstant(v.Type(), v.Data(), v.Name())
		default:
			copies[v] = v // an undeclared input, which fgraph.New rejects
		}
		return copies[v] != nil
	}
	walk(outputs, copied, func(a *fgraph.Apply) {
		types := make([]fgraph.Type, len(a.Outputs()))
		for i, o := range a.Outputs() {
			types[i] = o.Type()
		}
		b := fgraph.NewApply(a.Op(), all(a.Inputs()), types...)
		b.SetOrigin(a.Origin())
		for i, o := range a.Outputs() {
			b.Outputs()[i].SetName(o.Name())
			copies[o] = b.Outputs()[i]
		}
	})
	return fgraph.New(ins, all(outputs), features...)
}

// InputsOf returns the inputs that variables are computed from, in the order of their first use.
func InputsOf(outputs ...*fgraph.Variable) []*fgraph.Variable {
	var inputs []*fgraph.Variable
	found := make(map[*fgraph.Variable]bool)
	leaf := func(v *fgraph.Variable) bool {
		if v.IsInput() && !found[v] {
			found[v] = true
			inputs = append(inputs, v)
		}
		return v.Owner() == nil
	}
	walk(outputs, leaf, func(*fgraph.Apply) {})
	return inputs
}

// walk calls leave for the applies that variables are computed from, inputs before clients and from
// left to right. It does not go beyond variables for which stop returns true.
func walk(outputs []*fgraph.Variable, stop func(*fgraph.Variable) bool, leave func(*fgraph.Apply)) {
	type visit struct {
		a    *fgraph.Apply
		next int // input
	}
	var path []visit
	seen := make(map[*fgraph.Apply]bool)
	enter := func(v *fgraph.Variable) {
		if !stop(v) && v.Owner() != nil && !seen[v.Owner()] {
			seen[v.Owner()] = true
			path = append(path, visit{a: v.Owner()})
		}
	}
	for _, v := range outputs {
		for enter(v); len(path) > 0; {
			top := &path[len(path)-1]
			if in := top.a.Inputs(); top.next < len(in) {
				top.next++
				enter(in[top.next-1])
				continue
			}
			a := top.a
			path = path[:len(path)-1]
			leave(a)
		}
	}
}
