package tensor

import "github.com/nnopt/nnopt/fgraph"

// NewGraph returns a graph of copies of what the outputs are computed from, so that the expressions
// can be used again, in other graphs for example. The inputs of the graph are copies of inputs, in
// their order. Features are attached to the graph. The error wraps one of package fgraph, for
// example if an output depends on an input that is not listed.
func NewGraph(inputs, outputs []*fgraph.Variable, features ...fgraph.Feature) (*fgraph.FunctionGraph, error) {
	copies := make(map[*fgraph.Variable]*fgraph.Variable)
	ins, outs := make([]*fgraph.Variable, len(inputs)), make([]*fgraph.Variable, len(outputs))
	for i, v := range inputs {
		ins[i] = fgraph.NewInput(v.Type(), v.Name())
		copies[v] = ins[i]
	}
	copied := func(v *fgraph.Variable) bool {
		if copies[v] != nil {
			return true
		}
		switch {
		case v.Owner() != nil:
			return false
		case v.IsConstant():
			copies[v] = fgraph.NewConstant(v.Type(), v.Data(), v.Name())
		default:
			copies[v] = v // an undeclared input, which fgraph.New rejects
		}
		return true
	}
	walk(outputs, copied, func(a *fgraph.Apply) {
		in := make([]*fgraph.Variable, len(a.Inputs()))
		for i, v := range a.Inputs() {
			in[i] = copies[v]
		}
		types := make([]fgraph.Type, len(a.Outputs()))
		for i, o := range a.Outputs() {
			types[i] = o.Type()
		}
		b := fgraph.NewApply(a.Op(), in, types...)
		b.SetOrigin(a.Origin())
		for i, o := range a.Outputs() {
			b.Outputs()[i].SetName(o.Name())
			copies[o] = b.Outputs()[i]
		}
	})
	for i, v := range outputs {
		outs[i] = copies[v]
	}
	return fgraph.New(ins, outs, features...)
}

// InputsOf returns the inputs that variables are computed from, in the order of their first use.
func InputsOf(outputs ...*fgraph.Variable) []*fgraph.Variable {
	var inputs []*fgraph.Variable
	found := make(map[*fgraph.Variable]bool)
	seen := make(map[*fgraph.Apply]bool)
	visited := func(v *fgraph.Variable) bool {
		if v.IsInput() && !found[v] {
			found[v] = true
			inputs = append(inputs, v)
		}
		return seen[v.Owner()]
	}
	walk(outputs, visited, func(a *fgraph.Apply) { seen[a] = true })
	return inputs
}

// walk calls leave for the applies that variables are computed from, inputs before clients and from
// left to right. It does not go beyond variables for which stop returns true, as it has to for the
// outputs of an apply that walk has left.
func walk(outputs []*fgraph.Variable, stop func(*fgraph.Variable) bool, leave func(*fgraph.Apply)) {
	type visit struct {
		a    *fgraph.Apply
		next int // input
	}
	var path []visit
	for _, v := range outputs {
		if stop(v) || v.Owner() == nil {
			continue
		}
		path = append(path, visit{a: v.Owner()})
		for len(path) > 0 {
			top := &path[len(path)-1]
			in := top.a.Inputs()
			for top.next < len(in) && (stop(in[top.next]) || in[top.next].Owner() == nil) {
				top.next++
			}
			if top.next < len(in) {
				path = append(path, visit{a: in[top.next].Owner()})
				continue
			}
			leave(top.a)
			path = path[:len(path)-1]
		}
	}
}
