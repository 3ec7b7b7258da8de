package fgraph

import (
	"fmt"
	"slices"
)

// AddInput declares v as an additional input.
func (g *FunctionGraph) AddInput(v *Variable) error {
	if err := g.locked(); err != nil {
		return err
	}
	if err := g.declare(v); err != nil {
		return fmt.Errorf("add input: %w", err)
	}
	return nil
}

// AddOutput makes v an additional output and imports everything it depends on. An [InputChanger]
// sees the new output change from nil to v.
func (g *FunctionGraph) AddOutput(v *Variable, why Reason) error {
	return g.atomically(nil, why, func(why Reason) error {
		if err := g.appendOutput(v, why); err != nil {
			return fmt.Errorf("add output: %w", err)
		}
		g.fireChange(Client{nil, len(g.outputs) - 1}, nil, v, why)
		return nil
	})
}

// RemoveOutput removes output i and everything that becomes unused. The indices of later outputs
// decrease by one. An [InputChanger] sees the output change to nil.
func (g *FunctionGraph) RemoveOutput(i int, why Reason) error {
	if i < 0 || i >= len(g.outputs) {
		return fmt.Errorf("%w: remove output %d of %d", ErrInvalid, i, len(g.outputs))
	}
	return g.removeEnds([]int{i}, why)
}

// RemoveApply removes a, everything that depends on it, including outputs of the graph, and
// everything that becomes unused.
func (g *FunctionGraph) RemoveApply(a *Apply, why Reason) error {
	if !g.Contains(a) {
		return fmt.Errorf("%w: remove an apply that is not in the graph", ErrInvalid)
	}
	return g.removeEnds(g.dependants(a.outputs), why)
}

// RemoveInput removes input i, everything that depends on it, including outputs of the graph,
// and everything that becomes unused. The indices of later inputs decrease by one.
func (g *FunctionGraph) RemoveInput(i int, why Reason) error {
	if i < 0 || i >= len(g.inputs) {
		return fmt.Errorf("%w: remove input %d of %d", ErrInvalid, i, len(g.inputs))
	}
	v := g.inputs[i]
	if err := g.removeEnds(g.dependants([]*Variable{v}), why); err != nil {
		return err
	}
	// What depends on the input is gone, which could be refused. Removing the input itself can't
	// be, so it happens outside of the change, but it is in the journal for checkpoints.
	mark := len(g.journal)
	g.inputs = slices.Delete(g.inputs, i, i+1)
	g.releaseVariable(v.id)
	v.leaf.graph, v.leaf.input, v.id = nil, false, outside
	g.note(edit{kind: editUndeclare, v: v, i: int32(i)})
	g.forget(mark)
	g.commits++
	g.sorted = nil
	return nil
}

// dependants returns the sorted indices of the outputs that depend on any of the variables.
func (g *FunctionGraph) dependants(from []*Variable) []int {
	seen := make([]bool, len(g.applies))
	var outs []int
	todo := slices.Clone(from)
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, c := range v.clients {
			if c.Apply == nil {
				outs = append(outs, c.Index)
			} else if !seen[c.Apply.id] {
				seen[c.Apply.id] = true
				todo = append(todo, c.Apply.outputs...)
			}
		}
	}
	slices.Sort(outs)
	return outs
}

// removeEnds removes outputs, given by sorted indices.
func (g *FunctionGraph) removeEnds(outs []int, why Reason) error {
	return g.atomically(nil, why, func(why Reason) error {
		// From the last one, so that the indices of those that follow stay right.
		for _, i := range slices.Backward(outs) {
			g.removeOutput(i, why)
		}
		return nil
	})
}

func (g *FunctionGraph) removeOutput(i int, why Reason) {
	c := Client{nil, i}
	v := g.outputs[i]
	pos := g.dropClient(v, c)
	for j := i + 1; j < len(g.outputs); j++ {
		g.outputs[j].clients[g.outPos[j]].Index--
	}
	g.outputs = slices.Delete(g.outputs, i, i+1)
	g.outPos = slices.Delete(g.outPos, i, i+1)
	g.note(edit{kind: editCut, v: v, i: int32(i), pos: pos})
	g.fireChange(c, v, nil, why)
	if v.owner != nil && v.owner.unused(v.index) {
		g.prune(v.owner, why)
	}
}

// insertOutput undoes the removal of output i.
func (g *FunctionGraph) insertOutput(i int, v *Variable, pos int32, why Reason) {
	for j := i; j < len(g.outputs); j++ {
		g.outputs[j].clients[g.outPos[j]].Index++
	}
	g.outputs = slices.Insert(g.outputs, i, v)
	g.outPos = slices.Insert(g.outPos, i, 0)
	c := Client{nil, i}
	g.restoreClient(v, c, pos)
	g.fireChange(c, nil, v, why)
}

// insertInput makes v input i.
func (g *FunctionGraph) insertInput(i int, v *Variable) {
	v.leaf.graph, v.leaf.input = g, true
	v.id = g.newVariable(v)
	g.inputs = slices.Insert(g.inputs, i, v)
}

// appendOutput makes v an output without telling features that it is one.
func (g *FunctionGraph) appendOutput(v *Variable, why Reason) error {
	if err := g.importFor(v, why); err != nil {
		return err
	}
	i := len(g.outputs)
	g.outputs = append(g.outputs, v)
	g.outPos = append(g.outPos, 0)
	g.addClient(v, Client{nil, i})
	g.note(edit{kind: editOutput, v: v, i: int32(i)})
	return nil
}
