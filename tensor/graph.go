package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
)

// NewGraph returns the graph of copies of what the outputs are computed from, so that the expressions can be used again, in another
// graph for example. The inputs of the graph are copies of inputs, in their order. An output may be computed from constants and inputs
// only; features are attached to the graph.
func NewGraph(inputs, outputs []*fgraph.Variable, features ...fgraph.Feature) (*fgraph.FunctionGraph, error) {
	c := copier{vars: make(map[*fgraph.Variable]*fgraph.Variable)}
	ins := make([]*fgraph.Variable, len(inputs))
	for i, v := range inputs {
		ins[i] = fgraph.NewInput(v.Type(), v.Name())
		c.vars[v] = ins[i]
	}
	outs := make([]*fgraph.Variable, len(outputs))
	for i, v := range outputs {
		outs[i] = c.copy(v)
	}
	return fgraph.New(ins, outs, features...)
}

type copier struct {
	vars map[*fgraph.Variable]*fgraph.Variable
	path []*fgraph.Apply
}

// copy returns the copy of a variable.
func (c *copier) copy(v *fgraph.Variable) *fgraph.Variable {
	if w := c.leaf(v); w != nil {
		return w
	}
	c.path = append(c.path, v.Owner())
	for len(c.path) > 0 {
		a := c.path[len(c.path)-1]
		todo := len(c.path)
		in := make([]*fgraph.Variable, len(a.Inputs()))
		for i, x := range a.Inputs() {
			if in[i] = c.leaf(x); in[i] == nil {
				c.path = append(c.path, x.Owner())
			}
		}
		if len(c.path) > todo {
			continue
		}
		c.path = c.path[:todo-1]
		if c.vars[a.Out()] != nil {
			continue
		}
		types := make([]fgraph.Type, len(a.Outputs()))
		for i, o := range a.Outputs() {
			types[i] = o.Type()
		}
		b := fgraph.NewApply(a.Op(), in, types...)
		b.SetOrigin(a.Origin())
		for i, o := range a.Outputs() {
			b.Outputs()[i].SetName(o.Name())
			c.vars[o] = b.Outputs()[i]
		}
	}
	return c.vars[v]
}

// leaf returns the copy of a variable if there is one, or if it takes no others to make it.
func (c *copier) leaf(v *fgraph.Variable) *fgraph.Variable {
	w := c.vars[v]
	if w == nil && v.Owner() == nil {
		w = v // not an input that was declared, which the graph will complain about
		if v.IsConstant() {
			w = fgraph.NewConstant(v.Type(), v.Data(), v.Name())
		}
		c.vars[v] = w
	}
	return w
}

// InputsOf returns the inputs that variables are computed from, in the order in which they are met.
func InputsOf(outputs ...*fgraph.Variable) []*fgraph.Variable {
	var inputs []*fgraph.Variable
	seen := make(map[*fgraph.Apply]bool)
	found := make(map[*fgraph.Variable]bool)
	todo := make([]*fgraph.Variable, 0, len(outputs))
	push := func(list []*fgraph.Variable) {
		for i := len(list) - 1; i >= 0; i-- {
			todo = append(todo, list[i])
		}
	}
	push(outputs)
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch a := v.Owner(); {
		case a != nil && !seen[a]:
			seen[a] = true
			push(a.Inputs())
		case a == nil && v.IsInput() && !found[v]:
			found[v] = true
			inputs = append(inputs, v)
		}
	}
	return inputs
}
