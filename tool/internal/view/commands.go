package view

import (
	"cmp"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// Code is what a graph was made from, and what it was turned into.
type Code struct{ Before, After Listing }

// A Listing is lines of code: the commands of a network, for example.
type Listing struct {
	// Lines have no nodes and no values yet.
	Lines []Command
	// Complete, unless nil, ties lines to nodes and values after those were tied to them that an
	// [Emitter] knows of.
	Complete func([]Command)
}

// An Emitter is a feature of a graph that is made of code and is turned into code again.
type Emitter interface {
	fgraph.Feature
	// OnEmit sets the function that is told of each line that the graph is turned into, and for
	// which values it is.
	OnEmit(func(line int, values []*fgraph.Variable))
	// Lines returns the lines that an apply was made from, the main one first, or -1.
	Lines(a *fgraph.Apply) []int
	// Ports returns the line that accepts each input of the graph, and the one that provides each
	// output, or -1.
	Ports() (inputs, outputs []int)
}

// command is a line that was emitted, with the values that it is for.
type command struct {
	number int
	values []*fgraph.Variable
}

// commands adds the code before and after, and ties it to nodes.
func (b *builder) commands(code *Code) {
	c := &Commands{Before: code.Before.copied(), After: code.After.copied()}
	b.out.Commands = c
	b.tieBefore(c.Before)
	code.Before.complete(c.Before)
	for _, s := range b.segments {
		for _, e := range s.emitted {
			for _, v := range e.values {
				b.tie(&c.After[e.number], s, v)
			}
		}
	}
	code.After.complete(c.After)
	for _, list := range [][]Command{c.Before, c.After} {
		for i := range list {
			list[i].Nodes, list[i].Values = distinct(list[i].Nodes), distinct(list[i].Values)
		}
	}
}

// copied returns the lines, with long ones cut.
func (l Listing) copied() []Command {
	list := slices.Clone(l.Lines)
	for i := range list {
		list[i].Text = short(list[i].Text)
	}
	return list
}

func (l Listing) complete(list []Command) {
	if l.Complete != nil {
		l.Complete(list)
	}
}

// tieBefore ties lines to the nodes that they became, and nodes to the line that they mainly are.
func (b *builder) tieBefore(list []Command) {
	emitters := make([]Emitter, len(b.segments)) // nil for none
	for i, s := range b.segments {
		emitters[i], _ = fgraph.FeatureOf[Emitter](s.g)
	}
	linesOf := func(n int32) []int {
		node := &b.Recorder.nodes[n]
		e := emitters[node.segment]
		if e == nil {
			return nil
		}
		return e.Lines(node.apply)
	}
	valid := func(line int) bool { return line >= 0 && line < len(list) }
	for _, n := range b.start.Nodes {
		for _, line := range linesOf(n) {
			if valid(line) {
				list[line].Nodes = append(list[line].Nodes, b.node[n])
			}
		}
	}
	for i := range b.Recorder.nodes {
		if k := b.node[i]; k >= 0 {
			if lines := linesOf(int32(i)); len(lines) > 0 && valid(lines[0]) {
				b.out.Nodes[k].From = list[lines[0]].Text
			}
		}
	}
	for i, s := range b.segments {
		if emitters[i] == nil {
			continue
		}
		tie := func(lines []int, values []int32) {
			for i, line := range lines {
				if valid(line) {
					list[line].Values = append(list[line].Values, b.value[values[i]])
				}
			}
		}
		inputs, outputs := emitters[i].Ports()
		tie(inputs, s.inputs)
		tie(outputs, b.start.Outputs[s.offset:])
	}
}

// tie ties a command to a value of the final graph: to the node that computes it, or to the value
// itself where that is an input or output of the graph.
func (b *builder) tie(c *Command, s *segment, v *fgraph.Variable) {
	n := s.value(v)
	if n < 0 || b.value[n] < 0 {
		return
	}
	if v.Owner() == nil {
		c.Values = append(c.Values, b.value[n])
		return
	}
	c.Nodes = append(c.Nodes, b.node[s.node(v.Owner())])
}

// distinct sorts a list and drops what is repeated.
func distinct(list []int32) []int32 {
	list = slices.Clone(list)
	slices.SortFunc(list, cmp.Compare[int32])
	return slices.Compact(list)
}
