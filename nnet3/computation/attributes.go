package computation

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3/component"
)

// AccessType says what a command does to a variable or a matrix.
type AccessType uint8

// The access types. ReadWrite is both others: a command that adds to what is there.
const (
	ReadAccess AccessType = 1 << iota
	WriteAccess
	ReadWriteAccess = ReadAccess | WriteAccess
)

// String returns r, w or rw.
func (t AccessType) String() string {
	return [...]string{"-", "r", "w", "rw"}[t&ReadWriteAccess]
}

// CommandAttributes says what a command reads and writes. A command that adds to its output both reads and writes it; a
// command that writes a part of a matrix reads and writes the matrix (the rest stays), but only writes the variables.
// All lists are in increasing order without repetition, and shared: read only.
type CommandAttributes struct {
	VariablesRead, VariablesWritten     []int32
	SubmatricesRead, SubmatricesWritten []int32
	MatricesRead, MatricesWritten       []int32
	// HasSideEffects is true where the command also changes a network: it updates parameters or stores statistics.
	HasSideEffects bool
}

// computeAttributes finds the attributes of every command. The numbers in c must be in range. The error is ErrTooLarge.
//
// Three commands differ from Kaldi's table on purpose. CopyRows only writes, whatever its vector holds: a row of -1 is set
// to zero, which does not depend on what was there. CopyToRowsMulti only writes a sub-matrix of which it writes every row.
// DecompressMatrix reads and writes: what it restores comes from the matrix.
func computeAttributes(c *Computation, net *NetworkInfo, vars *Variables) ([]CommandAttributes, error) {
	r := attributeRecorder{
		vars:      vars,
		c:         c,
		variables: newRWList(vars.Len()),
		subs:      newRWList(len(c.Submatrices)),
		matrices:  newRWList(len(c.Matrices)),
	}
	attrs := make([]CommandAttributes, len(c.Commands))
	for i, cmd := range c.Commands {
		r.command(net, cmd)
		a := &attrs[i]
		a.VariablesRead, a.VariablesWritten = r.variables.take(&r.slab)
		a.SubmatricesRead, a.SubmatricesWritten = r.subs.take(&r.slab)
		a.MatricesRead, a.MatricesWritten = r.matrices.take(&r.slab)
		switch cmd.Type {
		case Propagate:
			a.HasSideEffects = cmd.Arg6 == 1
		case Backprop:
			info, _ := net.component(cmd.Arg1)
			a.HasSideEffects = info.Has(component.Updatable)
		}
		if r.slab.taken > maxVariables {
			return nil, fmt.Errorf("%w: its commands mention variables more than %d times", ErrTooLarge, maxVariables)
		}
	}
	return attrs, nil
}

type attributeRecorder struct {
	vars                      *Variables
	c                         *Computation
	variables, subs, matrices rwList
	slab                      slab
	named                     []int32 // by sub-matrix: how many of its rows a vector names; zero between commands
}

func (r *attributeRecorder) command(net *NetworkInfo, cmd Command) {
	switch cmd.Type {
	case SetConst:
		r.access(cmd.Arg1, WriteAccess)
	case Propagate:
		r.access(cmd.Arg3, ReadAccess)
		info, _ := net.component(cmd.Arg1)
		r.access(cmd.Arg4, writeOrAdd(info.Has(component.PropagateAdds)))
	case Backprop, BackpropNoModelUpdate:
		r.access(cmd.Arg3, ReadAccess)
		r.access(cmd.Arg4, ReadAccess)
		r.access(cmd.Arg5, ReadAccess)
		info, _ := net.component(cmd.Arg1)
		r.access(cmd.Arg6, writeOrAdd(info.Has(component.BackpropAdds)))
	case MatrixCopy, CopyRows:
		r.access(cmd.Arg2, ReadAccess)
		r.access(cmd.Arg1, WriteAccess)
	case MatrixAdd, AddRows, AddRowRanges:
		r.access(cmd.Arg2, ReadAccess)
		r.access(cmd.Arg1, ReadWriteAccess)
	case CopyRowsMulti, AddRowsMulti:
		r.multi(cmd.Arg2, ReadAccess)
		r.access(cmd.Arg1, writeOrAdd(cmd.Type == AddRowsMulti))
	case CopyToRowsMulti:
		r.access(cmd.Arg1, ReadAccess)
		r.copyTo(cmd.Arg2)
	case AddToRowsMulti:
		r.access(cmd.Arg1, ReadAccess)
		r.multi(cmd.Arg2, ReadWriteAccess)
	case CompressMatrix, DecompressMatrix:
		r.access(cmd.Arg1, ReadWriteAccess)
	case AcceptInput:
		r.access(cmd.Arg1, WriteAccess)
	case ProvideOutput:
		r.access(cmd.Arg1, ReadAccess)
	}
}

func writeOrAdd(adds bool) AccessType {
	if adds {
		return ReadWriteAccess
	}
	return WriteAccess
}

// access records an access to a sub-matrix, none for 0.
func (r *attributeRecorder) access(s int32, t AccessType) {
	if s <= 0 {
		return
	}
	if !r.subs.add(s, t) {
		return // a vector of rows names a sub-matrix many times
	}
	m := r.c.Submatrices[s].Matrix
	r.matrices.add(m, t)
	if t&WriteAccess != 0 && !r.vars.whole[s] {
		r.matrices.add(m, ReadAccess)
	}
	for v := range r.vars.rects[s].All {
		r.variables.add(v, t)
	}
}

func (r *attributeRecorder) multi(vector int32, t AccessType) {
	for _, p := range r.c.IndexesMulti[vector] {
		if p[0] > 0 {
			r.access(p[0], t)
		}
	}
}

// copyTo records what a CopyToRowsMulti writes. A target of which it names only some rows keeps something of what was there,
// so that it counts as read too.
func (r *attributeRecorder) copyTo(vector int32) {
	pairs := r.c.IndexesMulti[vector]
	if r.named == nil {
		r.named = make([]int32, len(r.c.Submatrices))
	}
	for _, p := range pairs {
		if p[0] > 0 {
			r.named[p[0]]++
		}
	}
	for _, p := range pairs {
		if p[0] > 0 && r.named[p[0]] > 0 {
			r.access(p[0], writeOrAdd(r.named[p[0]] < r.c.Submatrices[p[0]].NumRows))
			r.named[p[0]] = 0
		}
	}
}

// rwList collects numbers that a command reads and numbers that it writes, each once.
type rwList struct {
	read, written []int32
	state         []AccessType // by number: what was recorded for the present command
}

func newRWList(n int) rwList { return rwList{state: make([]AccessType, n)} }

// add records an access and reports whether it tells something new.
func (l *rwList) add(n int32, t AccessType) bool {
	fresh := t &^ l.state[n]
	if fresh == 0 {
		return false
	}
	l.state[n] |= t
	if fresh&ReadAccess != 0 {
		l.read = append(l.read, n)
	}
	if fresh&WriteAccess != 0 {
		l.written = append(l.written, n)
	}
	return true
}

// take returns the lists, sorted, in memory of the slab, and forgets them.
func (l *rwList) take(s *slab) (read, written []int32) {
	for _, n := range l.read {
		l.state[n] = 0
	}
	for _, n := range l.written {
		l.state[n] = 0
	}
	read, written = s.copy(l.read), s.copy(l.written)
	l.read, l.written = l.read[:0], l.written[:0]
	slices.Sort(read)
	slices.Sort(written)
	return read, written
}

// slab hands out many short slices of a few long ones.
type slab struct {
	free  []int32
	taken int64
}

func (s *slab) copy(src []int32) []int32 {
	n := len(src)
	if n == 0 {
		return nil
	}
	if n > len(s.free) {
		s.free = make([]int32, max(n, 4096))
	}
	dst := s.free[:n:n]
	s.free = s.free[n:]
	s.taken += int64(n)
	copy(dst, src)
	return dst
}
