package networks

import (
	"slices"

	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/tool/internal/view"
)

// Code returns the commands that a graph was made from and turned into, for a page. info names the
// nodes of the network, and its components with those derived in optimized.
func Code(compiled, optimized *computation.Computation, info *computation.NetworkInfo) *view.Code {
	listing := func(c *computation.Computation) view.Listing {
		return view.Listing{Lines: commandTexts(c, info), Complete: func(list []view.Command) { tieOthers(c, list) }}
	}
	return &view.Code{Before: listing(compiled), After: listing(optimized)}
}

// commandTexts returns commands as text, with the memory in use after each.
func commandTexts(c *computation.Computation, info *computation.NetworkInfo) []view.Command {
	p := computation.NewPrinter(c, info)
	p.MaxRuns = 8
	live := slices.Collect(c.LiveBytes())
	list := make([]view.Command, len(c.Commands))
	for i := range list {
		list[i] = view.Command{Text: p.Command(i), Bytes: live[i]}
	}
	return list
}

// tieOthers ties the commands that are for no node of their own. One that copies a value belongs to
// what made the value, and one that frees a matrix to what used it last. One that takes memory, or
// sets it to zero, belongs to what uses it next.
func tieOthers(c *computation.Computation, list []view.Command) {
	// Two passes over the commands. Forward, a copy or a deallocation takes the nodes of the last
	// command on its matrix. Then backward, since memory is allocated and zeroed for what comes
	// next.
	last := make([]*view.Command, len(c.Matrices)) // by matrix
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
