package fgraph

// A Mapping leads from the variables of a graph to those of its clone. It is valid until the
// original changes.
type Mapping struct {
	from      *FunctionGraph
	variables []*Variable // by number
}

// Of returns the counterpart of v, or nil if v was not part of the graph. The counterpart of an
// apply owns the counterparts of its outputs.
func (m *Mapping) Of(v *Variable) *Variable {
	if v == nil || v.id < 0 || v.Graph() != m.from || int(v.id) >= len(m.variables) {
		return nil
	}
	return m.variables[v.id]
}

// Clone returns a graph of new variables and applies with the same ops, types, names and
// constant data. It does not carry features over, which are records of one graph.
func (g *FunctionGraph) Clone() (*FunctionGraph, *Mapping) {
	m := &Mapping{from: g, variables: make([]*Variable, len(g.variables))}
	of := func(dst, list []*Variable) []*Variable {
		dst = dst[:0]
		for _, v := range list {
			dst = append(dst, m.variables[v.id])
		}
		return dst
	}
	for id, v := range g.variables {
		if v != nil && v.owner == nil {
			l := &leaf{name: v.leaf.name, data: v.leaf.data, constant: v.leaf.constant}
			m.variables[id] = &Variable{typ: v.typ, id: outside, leaf: l}
		}
	}
	var inputs []*Variable
	// In a topological order the counterparts of all inputs exist.
	for a := range g.Ordered() {
		inputs = of(inputs, a.inputs)
		for i, v := range a.copied(inputs).outputs {
			m.variables[a.outputs[i].id] = v
		}
	}
	c, err := New(of(nil, g.inputs), of(nil, g.outputs))
	if err != nil {
		panic("fgraph: clone of an invalid graph: " + err.Error())
	}
	return c, m
}
