package fgraph

// NewCopy returns a graph of copies of what the outputs are computed from, so that the expressions
// can be used again, in other graphs for example. The inputs of the graph are copies of inputs, in
// their order. Features are attached to the graph. The error is that of [New].
func NewCopy(inputs, outputs []*Variable, features ...Feature) (*FunctionGraph, error) {
	copies := make(map[*Variable]*Variable)
	ins, outs := make([]*Variable, len(inputs)), make([]*Variable, len(outputs))
	for i, v := range inputs {
		ins[i] = NewInput(v.Type(), v.Name())
		copies[v] = ins[i]
	}
	copied := func(v *Variable) bool {
		if copies[v] != nil {
			return true
		}
		switch {
		case v.Owner() != nil:
			return false
		case v.IsConstant():
			copies[v] = NewConstant(v.Type(), v.Data(), v.Name())
		default:
			copies[v] = v // an undeclared input, which New rejects
		}
		return true
	}
	var applies []*Apply
	Walk(outputs, copied, func(a *Apply) {
		in := make([]*Variable, len(a.Inputs()))
		for i, v := range a.Inputs() {
			in[i] = copies[v]
		}
		b := a.copied(in)
		for i, o := range a.outputs {
			copies[o] = b.outputs[i]
		}
		applies = append(applies, b)
	})
	for i, v := range outputs {
		outs[i] = copies[v]
	}
	return NewInOrder(ins, outs, applies, features...)
}

// copied returns the apply of other inputs, with the same names and origin.
func (a *Apply) copied(inputs []*Variable) *Apply {
	types := make([]Type, 0, 4) // mostly one, on the stack
	for _, v := range a.outputs {
		types = append(types, v.typ)
	}
	b := NewApply(a.op, inputs, types...)
	b.origin = a.origin
	for i, v := range a.outputs {
		b.outputs[i].SetName(v.Name())
	}
	return b
}

// InputsOf returns the inputs that variables are computed from, in the order of their first use.
func InputsOf(outputs ...*Variable) []*Variable {
	var inputs []*Variable
	found := make(map[*Variable]bool)
	seen := make(map[*Apply]bool)
	visited := func(v *Variable) bool {
		if v.IsInput() && !found[v] {
			found[v] = true
			inputs = append(inputs, v)
		}
		return seen[v.Owner()]
	}
	Walk(outputs, visited, func(a *Apply) { seen[a] = true })
	return inputs
}

// Walk calls leave for the applies that variables are computed from, inputs before clients and from
// left to right. It does not go beyond variables for which stop returns true, as it has to for the
// outputs of an apply that walk has left.
func Walk(outputs []*Variable, stop func(*Variable) bool, leave func(*Apply)) {
	type visit struct {
		a    *Apply
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
