package view

import (
	"cmp"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/lower"
)

// A Network is what a recording of a network shows besides its graph.
type Network struct {
	// Compiled and Optimized are the computations that the graph was made from and turned into.
	Compiled, Optimized *computation.Computation
	// Info names the nodes of the network, and its components with those derived in Optimized.
	Info *computation.NetworkInfo
}

// command is a command that was emitted, with the values that it is for.
type command struct {
	number int
	values []*fgraph.Variable
}

// watchCommands records the commands that are made of the graph, if it is part of a network.
func (s *segment) watchCommands() {
	if p, ok := lower.ProgramOf(s.g); ok {
		p.Emitted = func(number int, values []*fgraph.Variable) { s.emitted = append(s.emitted, command{number, values}) }
	}
}

// commands adds the commands before and after, and ties them to nodes.
func (b *builder) commands(net *Network) {
	c := &Commands{Before: commandTexts(net.Compiled, net.Info), After: commandTexts(net.Optimized, net.Info)}
	b.out.Commands = c
	b.tieBefore(c.Before)
	tieOthers(net.Compiled, c.Before)
	for _, s := range b.segments {
		for _, e := range s.emitted {
			for _, v := range e.values {
				b.tie(&c.After[e.number], s, v)
			}
		}
	}
	tieOthers(net.Optimized, c.After)
	for i := range b.Recorder.nodes {
		k := b.node[i]
		if at := madeBy(b.Recorder.nodes[i].apply); k >= 0 && at >= 0 && at < len(c.Before) {
			b.out.Nodes[k].From = c.Before[at].Text
		}
	}
	for _, list := range [][]Command{c.Before, c.After} {
		for i := range list {
			list[i].Nodes, list[i].Values = distinct(list[i].Nodes), distinct(list[i].Values)
		}
	}
}

// madeBy returns the command that an apply comes from. An Assemble is made where its value is read;
// it comes from the commands of its terms.
func madeBy(a *fgraph.Apply) int {
	if op, ok := a.Op().(*lower.Assemble); ok && len(op.Terms) > 0 {
		return int(op.Terms[0].At)
	}
	return a.Origin()
}

// commandTexts returns commands as text, with the memory in use after each.
func commandTexts(c *computation.Computation, info *computation.NetworkInfo) []Command {
	p := computation.NewPrinter(c, info)
	p.MaxRuns = 8
	live := slices.Collect(c.LiveBytes())
	list := make([]Command, len(c.Commands))
	for i := range list {
		list[i] = Command{Text: short(p.Command(i)), Bytes: live[i]}
	}
	return list
}

// tieBefore ties commands to the nodes that they became.
func (b *builder) tieBefore(list []Command) {
	for _, n := range b.start.Nodes {
		k := b.node[n]
		put := func(origin int) {
			if origin >= 0 && origin < len(list) {
				list[origin].Nodes = append(list[origin].Nodes, k)
			}
		}
		a := b.Recorder.nodes[n].apply
		put(a.Origin())
		if op, ok := a.Op().(*lower.Assemble); ok {
			for i := range op.Terms {
				put(int(op.Terms[i].At))
			}
		}
	}
	for _, s := range b.segments {
		p, ok := lower.ProgramOf(s.g)
		if !ok {
			continue
		}
		for i, n := range s.inputs {
			if port := p.Inputs[i]; port.Carried == 0 && port.IsMatrix() {
				list[port.At].Values = append(list[port.At].Values, b.value[n])
			}
		}
		for i, port := range p.Outputs {
			if port.Carried == 0 && port.IsMatrix() {
				list[port.At].Values = append(list[port.At].Values, b.value[b.start.Outputs[s.offset+i]])
			}
		}
	}
}

// tieOthers ties the commands that are for no node of their own. One that copies a value belongs to
// what made the value, and one that frees a matrix to what used it last. One that takes memory, or
// sets it to zero, belongs to what uses it next.
func tieOthers(c *computation.Computation, list []Command) {
	// Two passes over the commands. Forward, a copy or a deallocation takes the nodes of the last
	// command on its matrix. Then backward, since memory is allocated and zeroed for what comes
	// next.
	last := make([]*Command, len(c.Matrices)) // by matrix
	visit := func(i int, others func(computation.CommandType) bool) {
		k, cmd := &list[i], c.Commands[i]
		if others(cmd.Type) && len(k.Nodes)+len(k.Values) == 0 {
			for arg := range cmd.Submatrices { // the source of a copy comes last
				if l := last[c.Submatrices[*arg].Matrix]; l != nil {
					k.Nodes, k.Values = l.Nodes, l.Values
				}
			}
		}
		if len(k.Nodes)+len(k.Values) > 0 {
			for arg := range cmd.Submatrices {
				last[c.Submatrices[*arg].Matrix] = k
			}
		}
	}
	sizing := func(t computation.CommandType) bool { return t == computation.AllocMatrix || t == computation.SetConst }
	for i := range list {
		visit(i, func(t computation.CommandType) bool { return !sizing(t) })
	}
	clear(last)
	for i := range slices.Backward(list) {
		visit(i, sizing)
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
