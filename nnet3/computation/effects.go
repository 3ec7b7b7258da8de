package computation

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3/component"
)

// accessKind says what a command does to a variable or a matrix.
type accessKind uint8

const (
	reads accessKind = 1 << iota
	writes
	readsWrites = reads | writes // adds to what is there
)

// accessed is what a command reads and writes of one sort of things: ascending numbers without
// repetition, shared and read only.
type accessed struct{ read, written []int32 }

// effects says what a command accesses. A command that adds to its output both reads and writes it.
// A command that writes part of a matrix reads the matrix, too, because the rest stays.
type effects struct {
	variables, submatrices, matrices accessed
	// lasting marks a command that changes the network: its parameters or its statistics.
	lasting bool
}

// commandEffects returns the effects of all commands. Numbers must be in range. The error is
// errTooLarge.
func commandEffects(c *Computation, net *NetworkInfo, vars *variables) ([]effects, error) {
	r := effectRecorder{
		vars:        vars,
		c:           c,
		variables:   newAccessSet(vars.len()),
		submatrices: newAccessSet(len(c.Submatrices)),
		matrices:    newAccessSet(len(c.Matrices)),
	}
	all := make([]effects, len(c.Commands))
	for i := range c.Commands {
		cmd, e := &c.Commands[i], &all[i]
		var info ComponentInfo
		if cmd.Type == Propagate || cmd.Type.IsBackprop() {
			info, _ = net.component(cmd.Component())
		}
		r.command(cmd, &info)
		r.variables.take(&r.slab, &e.variables)
		r.submatrices.take(&r.slab, &e.submatrices)
		r.matrices.take(&r.slab, &e.matrices)
		e.lasting = cmd.Type == Propagate && cmd.StoresStats() || cmd.Type == Backprop && info.Has(component.Updatable)
		if r.slab.taken > maxVariables {
			return nil, fmt.Errorf("%w: its commands mention variables more than %d times", errTooLarge, maxVariables)
		}
	}
	return all, nil
}

type effectRecorder struct {
	vars                             *variables
	c                                *Computation
	variables, submatrices, matrices accessSet
	slab                             slab
	named                            []int32 // by sub-matrix: how many of its rows a vector names; zero between commands
}

// command records what a command accesses. info describes the component of a Propagate or Backprop.
func (r *effectRecorder) command(cmd *Command, info *ComponentInfo) {
	adds := cmd.Type == Propagate && info.Has(component.PropagateAdds) || cmd.Type.IsBackprop() && info.Has(component.BackpropAdds)
	for i, kind := range argKinds[cmd.Type] {
		_, access := kind.split()
		if adds && access == writes {
			access = readsWrites
		}
		if access != 0 {
			r.access(cmd.Args[i], access)
		}
	}
	switch cmd.Type {
	case CopyToRowsMulti:
		r.copyTo(cmd.Vector())
	case CopyRowsMulti, AddRowsMulti, AddToRowsMulti:
		kind := reads
		if cmd.Type == AddToRowsMulti {
			kind = readsWrites
		}
		for _, p := range r.c.IndexesMulti[cmd.Vector()] {
			r.access(p[0], kind)
		}
	}
}

// access records an access to a sub-matrix; 0 stands for none.
func (r *effectRecorder) access(s int32, kind accessKind) {
	if s <= 0 || !r.submatrices.add(s, kind) { // a vector of rows names a sub-matrix many times
		return
	}
	m := r.c.Submatrices[s].Matrix
	r.matrices.add(m, kind)
	// The rest of the matrix stays, so for the matrix as a whole this is an addition.
	if kind&writes != 0 && !r.c.IsWhole(s) {
		r.matrices.add(m, reads)
	}
	// The variables follow from the sub-matrix, so they are recorded with it.
	for v := range r.vars.rects[s].all {
		r.variables.add(v, kind)
	}
}

// copyTo records what a CopyToRowsMulti writes. A target of which it names only some rows keeps the
// others, so it also counts as read.
func (r *effectRecorder) copyTo(vector int32) {
	if r.named == nil {
		r.named = make([]int32, len(r.c.Submatrices))
	}
	// Count first how many rows of each target are named. Rows are distinct, so a target is written
	// as a whole if the count is its number of rows.
	pairs := r.c.IndexesMulti[vector]
	for _, p := range pairs {
		if p[0] > 0 {
			r.named[p[0]]++
		}
	}
	for _, p := range pairs {
		if p[0] <= 0 || r.named[p[0]] == 0 {
			continue
		}
		kind := writes
		if r.named[p[0]] < r.c.Submatrices[p[0]].NumRows {
			kind = readsWrites
		}
		r.access(p[0], kind)
		r.named[p[0]] = 0
	}
}

// accessSet collects the things of one sort that a command accesses, each once.
type accessSet struct {
	read, written []int32
	state         []accessKind // by number: what is recorded for the present command
}

func newAccessSet(n int) accessSet { return accessSet{state: make([]accessKind, n)} }

// add records an access and reports whether it is new.
func (l *accessSet) add(n int32, kind accessKind) bool {
	// A command may name a sub-matrix in its vector for every row. It is recorded once; the other
	// times cost a comparison each.
	fresh := kind &^ l.state[n]
	l.state[n] |= kind
	if fresh&reads != 0 {
		l.read = append(l.read, n)
	}
	if fresh&writes != 0 {
		l.written = append(l.written, n)
	}
	return fresh != 0
}

// take moves what was recorded, sorted and in memory of the slab, to dst.
func (l *accessSet) take(s *slab, dst *accessed) {
	// Reset only what the command touched: the state has an entry for everything in the
	// computation.
	for _, n := range l.read {
		l.state[n] = 0
	}
	for _, n := range l.written {
		l.state[n] = 0
	}
	dst.read, dst.written = s.copy(l.read), s.copy(l.written)
	l.read, l.written = l.read[:0], l.written[:0]
	slices.Sort(dst.read)
	slices.Sort(dst.written)
}

// slab cuts many short slices from a few long ones.
type slab struct {
	block []int32
	taken int64
}

func (s *slab) copy(src []int32) []int32 {
	n := len(src)
	if n == 0 {
		return nil
	}
	if n > cap(s.block)-len(s.block) {
		s.block = make([]int32, 0, max(n, 4096))
	}
	s.block = append(s.block, src...)
	s.taken += int64(n)
	end := len(s.block)
	return s.block[end-n : end : end]
}
