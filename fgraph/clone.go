package fgraph

// A Mapping leads from the variables and applies of a graph to those of its
// clone, as long as the original does not change.
type Mapping struct {
	from      *FunctionGraph
	variables []*Variable
	applies   []*Apply
}

// Variable returns the counterpart of v, nil if v was not part of the graph.
func (m *Mapping) Variable(v *Variable) *Variable {
	if v == nil || v.id < 0 || v.Graph() != m.from || int(v.id) >= len(m.variables) {
		return nil
	}
	return m.variables[v.id]
}

// Apply returns the counterpart of a, nil if a was not part of the graph.
func (m *Mapping) Apply(a *Apply) *Apply {
	if a == nil || a.graph != m.from || int(a.id) >= len(m.applies) {
		return nil
	}
	return m.applies[a.id]
}

// Clone returns a graph of new variables and applies, with the same ops, types,
// names and constant data. Features are not carried over: they are records of
// one graph.
func (g *FunctionGraph) Clone() (*FunctionGraph, *Mapping) {
	m := &Mapping{from: g, variables: make([]*Variable, len(g.variables)), applies: make([]*Apply, len(g.applies))}
	for id, v := range g.variables {
		if v != nil && v.owner == nil {
			r := &root{name: v.root.name, data: v.root.data, constant: v.root.constant}
			m.variables[id] = &Variable{typ: v.typ, id: outside, root: r}
		}
	}
	var inputs []*Variable
	var types []Type
	for a := range g.Ordered() {
		inputs, types = inputs[:0], types[:0]
		for _, v := range a.inputs {
			inputs = append(inputs, m.variables[v.id])
		}
		for _, v := range a.outputs {
			types = append(types, v.typ)
		}
		b := NewApply(a.op, inputs, types...)
		b.origin = a.origin
		m.applies[a.id] = b
		for i, v := range a.outputs {
			b.outputs[i].SetName(v.Name())
			m.variables[v.id] = b.outputs[i]
		}
	}
	ins := make([]*Variable, len(g.inputs))
	for i, v := range g.inputs {
		ins[i] = m.variables[v.id]
	}
	outs := make([]*Variable, len(g.outputs))
	for i, v := range g.outputs {
		outs[i] = m.variables[v.id]
	}
	c, err := New(ins, outs)
	if err != nil {
		panic("fgraph: clone of a graph that is not in order: " + err.Error())
	}
	return c, m
}
