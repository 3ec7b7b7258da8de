package repro

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
)

// A sketch is a graph that is easy to change: variables are numbers.
type sketch struct {
	vars    []variable
	nodes   []node // operands first
	inputs  []int
	outputs []output
}

type variable struct {
	typ      fgraph.Type
	name     string
	constant bool
	data     any
	source   int // the input of the original graph that it is, or -1
	value    any // in the run of the original graph, nil if unknown
}

type node struct {
	op      fgraph.Op
	in, out []int
	origin  int
}

type output struct {
	variable int
	source   int // the output of the original graph that it is, or -1
}

// sketchOf returns a graph as a sketch. recorded has values by number of variable, or is nil.
func sketchOf(g *fgraph.FunctionGraph, inputs []any, recorded func(*fgraph.Variable) any) *sketch {
	s := new(sketch)
	number := make([]int, g.NumVariableIDs())
	add := func(v *fgraph.Variable) int {
		number[v.ID()] = len(s.vars)
		w := variable{typ: v.Type(), name: v.Name(), source: -1}
		if v.IsConstant() {
			w.constant, w.data = true, v.Data()
		} else if recorded != nil {
			w.value = recorded(v)
		}
		s.vars = append(s.vars, w)
		return number[v.ID()]
	}
	of := func(list []*fgraph.Variable) []int {
		return lists.Map(list, func(v *fgraph.Variable) int { return number[v.ID()] })
	}
	for i, v := range g.Inputs() {
		n := add(v)
		s.inputs = append(s.inputs, n)
		s.vars[n].source = i
		if inputs != nil {
			s.vars[n].value = inputs[i]
		}
	}
	for v := range g.Variables() {
		if v.IsConstant() {
			add(v)
		}
	}
	for a := range g.Ordered() {
		n := node{op: a.Op(), in: of(a.Inputs()), origin: a.Origin()}
		for _, v := range a.Outputs() {
			n.out = append(n.out, add(v))
		}
		s.nodes = append(s.nodes, n)
	}
	for i, n := range of(g.Outputs()) {
		s.outputs = append(s.outputs, output{n, i})
	}
	return s
}

// built is a graph made of a sketch, with the values of its inputs.
type built struct {
	graph   *fgraph.FunctionGraph
	values  []any
	applies []*fgraph.Apply // by node
}

// build makes the graph of what the outputs need.
func (s *sketch) build(w World, like *fgraph.FunctionGraph) (*built, error) {
	made := make([]*fgraph.Variable, len(s.vars))
	b := &built{applies: make([]*fgraph.Apply, len(s.nodes))}
	var starts, ends []*fgraph.Variable
	var inputs, outputs []int
	known := true
	// Inputs are made with the number of the original input that they are, or -1. The world needs
	// it to attach what belongs to them, such as the node of a network.
	for _, n := range s.inputs {
		v := &s.vars[n]
		made[n] = fgraph.NewInput(v.typ, v.name)
		starts, inputs = append(starts, made[n]), append(inputs, v.source)
		b.values = append(b.values, v.value)
		known = known && v.value != nil
	}
	if !known {
		b.values = nil
	}
	for k, n := range s.nodes {
		in, types := make([]*fgraph.Variable, len(n.in)), make([]fgraph.Type, len(n.out))
		for i, id := range n.in {
			// Constants are made when they are first used, so those that nothing uses any more
			// vanish.
			if v := &s.vars[id]; made[id] == nil && v.constant {
				made[id] = fgraph.NewConstant(v.typ, v.data, v.name)
			}
			if in[i] = made[id]; in[i] == nil {
				return nil, fmt.Errorf("%w: an operand of %v comes after it", ErrCase, n.op)
			}
		}
		for i, id := range n.out {
			types[i] = s.vars[id].typ
		}
		a := fgraph.NewApply(n.op, in, types...)
		a.SetOrigin(n.origin)
		for i, id := range n.out {
			a.Outputs()[i].SetName(s.vars[id].name)
			made[id] = a.Outputs()[i]
		}
		b.applies[k] = a
	}
	for _, o := range s.outputs {
		if v := &s.vars[o.variable]; made[o.variable] == nil && v.constant {
			made[o.variable] = fgraph.NewConstant(v.typ, v.data, v.name)
		}
		ends, outputs = append(ends, made[o.variable]), append(outputs, o.source)
	}
	var err error
	if b.graph, err = fgraph.New(starts, ends); err != nil {
		return nil, err
	}
	return b, part[Attacher](w, defaults{}).Attach(b.graph, like, inputs, outputs)
}

// copied returns a copy that can be changed.
func (s *sketch) copied() *sketch {
	return &sketch{slices.Clone(s.vars), slices.Clone(s.nodes), slices.Clone(s.inputs), slices.Clone(s.outputs)}
}

// compact removes what no output needs.
func (s *sketch) compact() {
	needed := make([]bool, len(s.vars))
	for _, o := range s.outputs {
		needed[o.variable] = true
	}
	kept := s.nodes[len(s.nodes):]
	// Operands precede their nodes, so one pass from the end sees every use of a value before the
	// node that makes it.
	for _, n := range slices.Backward(s.nodes) {
		if slices.ContainsFunc(n.out, func(v int) bool { return needed[v] }) {
			kept = append(kept, n)
			for _, v := range n.in {
				needed[v] = true
			}
		}
	}
	slices.Reverse(kept)
	s.nodes = kept
	s.inputs = slices.DeleteFunc(s.inputs, func(v int) bool { return !needed[v] })
}

// size returns what has to get smaller: nodes first, then outputs, then operands and inputs.
func (s *sketch) size() []int {
	operands := 0
	for _, n := range s.nodes {
		operands += len(n.in)
	}
	return []int{len(s.nodes), len(s.outputs), operands + len(s.inputs)}
}

// cut makes inputs of the results of nodes, except of nodes with a result that is used and can't be
// an input.
func (s *sketch) cut(w World, gone func(int) bool) {
	limits := part[Limiter](w, defaults{})
	used := make([]bool, len(s.vars))
	for _, o := range s.outputs {
		used[o.variable] = true
	}
	kept, cut := make([]node, 0, len(s.nodes)), make([]int, 0, len(s.nodes))
	for i, n := range slices.Backward(s.nodes) {
		// A result that can't be an input, such as a memo of a component, keeps its node while
		// something that is kept uses it. Nodes are visited from the last to the first, so used is
		// complete for the results of this one.
		never := func(v int) bool { return used[v] && limits.Inputs(s.vars[v].typ) == Never }
		if gone(i) && !slices.ContainsFunc(n.out, never) {
			cut = append(cut, n.out...)
			continue
		}
		kept = append(kept, n)
		for _, v := range n.in {
			used[v] = true
		}
	}
	slices.Reverse(kept)
	s.nodes = kept
	for _, v := range slices.Backward(cut) {
		if used[v] {
			s.admit(limits, v)
		}
	}
}

// admit makes a variable an input.
func (s *sketch) admit(limits Limiter, v int) {
	// There is only one input of this type, such as the state of a component, so all uses share it.
	if limits.Inputs(s.vars[v].typ) == One {
		for _, in := range s.inputs {
			if s.vars[in].typ == s.vars[v].typ {
				s.substitute(v, in)
				return
			}
		}
	}
	if s.vars[v].name == "" {
		s.vars[v].name = fmt.Sprintf("v%d", v)
	}
	s.inputs = append(s.inputs, v)
}

// substitute replaces all uses of a variable by another one.
func (s *sketch) substitute(old, now int) {
	for i := range s.nodes {
		if n := &s.nodes[i]; slices.Contains(n.in, old) {
			n.in = slices.Clone(n.in)
			for k := range n.in {
				if n.in[k] == old {
					n.in[k] = now
				}
			}
		}
	}
	for i := range s.outputs {
		if s.outputs[i].variable == old {
			s.outputs[i].variable = now
		}
	}
}

// prefix keeps the first k nodes. What later ones use become outputs.
func (s *sketch) prefix(w World, k int) {
	limits := part[Limiter](w, defaults{})
	defined, listed := make([]bool, len(s.vars)), make([]bool, len(s.vars))
	for _, n := range s.nodes[:k] {
		for _, v := range n.out {
			defined[v] = true
		}
	}
	// Outputs that are left keep their places; values that crossed the border follow them as new
	// outputs. Without these, the nodes before the border would be dead, and passes would remove
	// them instead of failing on them.
	list := slices.DeleteFunc(s.outputs, func(o output) bool { return !defined[o.variable] })
	for _, o := range list {
		listed[o.variable] = true
	}
	for _, n := range s.nodes[k:] {
		for _, v := range n.in {
			if defined[v] && !listed[v] && limits.Outputs(s.vars[v].typ) {
				listed[v] = true
				list = append(list, output{v, -1})
			}
		}
	}
	s.nodes, s.outputs = s.nodes[:k], list
}
