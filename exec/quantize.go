package exec

import (
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// rowSlot says where a quantized product finds the rows of its input as integers.
type rowSlot struct {
	precision kernel.Precision // Float32 for an instruction that needs none
	group     int32            // how many columns share steps
	number    int32
	view      int32 // the rows to quantize; 0 if an earlier instruction has done it
	first     int32 // the place of the first row in the slot
}

// quantizedRows is the life of the rows of a view as integers.
type quantizedRows struct {
	view       int32
	precision  kernel.Precision
	group      int32
	start, end int  // the first and the last instruction that multiplies them
	partly     bool // something else in the matrix has changed since the first one
	slot       int32
}

// precisionOf returns the precision in which an instruction reads its input, and how many columns share
// steps.
func precisionOf(in *instruction) (to kernel.Precision, group int32) {
	if p, ok := in.propagator.(*component.Product); ok && in.typ == computation.Propagate && p.Precision() != kernel.Float32 {
		return p.Precision(), int32(p.Group())
	}
	return kernel.Float32, 0
}

// shareRows lets all quantized products that read the same values share their integers: the first
// one makes them, and the others use them as long as nothing writes to the matrix.
func (p *Program) shareRows() {
	var lives []quantizedRows
	var live []int // numbers of valid lives
	users := make(map[int]int)
	for i := range p.instrs {
		in := &p.instrs[i]
		if to, group := precisionOf(in); to != kernel.Float32 {
			n := p.sharedBy(in, to, group, lives, live)
			if n < 0 {
				n = len(lives)
				lives = append(lives, quantizedRows{view: in.src, precision: to, group: group, start: i})
				live = append(live, n)
			}
			lives[n].end, users[i] = i, n
		}
		if len(live) > 0 {
			live = p.stillValid(in, lives, live)
		}
	}
	// Instructions get their slots only now. A life may have been extended to a larger view of the
	// same rows after its first users were seen, and the place of their first row is relative to
	// that view.
	p.placeRows(lives)
	for i, n := range users {
		l, in := &lives[n], &p.instrs[i]
		from, v := &p.views[l.view], &p.views[in.src]
		in.rowSlot = rowSlot{precision: l.precision, group: l.group, number: l.slot, first: int32((v.start - from.start) / max(v.stride, 1))}
		if i == l.start {
			in.rowSlot.view = l.view
		}
	}
}

// sharedBy returns the valid life of the rows that an instruction reads, or -1. If the rows include
// those of a life, and were what they are when it began, the life gets them all.
func (p *Program) sharedBy(in *instruction, to kernel.Precision, group int32, lives []quantizedRows, live []int) int {
	for _, n := range live {
		l := &lives[n]
		old, v := &p.views[l.view], &p.views[in.src]
		switch {
		case l.precision != to || l.group != group:
		case old.hasRows(v):
			return n
		// The larger view may replace the smaller one only if its other rows are unchanged since
		// the life began: the integers are made there, before the first product, and would be those
		// of old values.
		case v.hasRows(old) && !l.partly:
			l.view = in.src
			return n
		}
	}
	return -1
}

// hasRows reports whether w is some consecutive rows of v.
func (v *view) hasRows(w *view) bool {
	return v.matrix == w.matrix && v.cols == w.cols && v.stride == w.stride && v.start <= w.start && w.end <= v.end &&
		(w.start-v.start)%max(v.stride, 1) == 0
}

// stillValid returns the lives that are valid after an instruction.
func (p *Program) stillValid(in *instruction, lives []quantizedRows, live []int) []int {
	kept := live[:0]
	for _, n := range live {
		l := &lives[n]
		v := &p.views[l.view]
		if !p.changes(in, v) {
			// The rows of the life are as they were, but others of the matrix may have changed.
			// That rules out extending the life to those, though not using it.
			all := view{matrix: v.matrix, end: p.sizes[v.matrix], cols: v.stride, stride: v.stride, rows: p.sizes[v.matrix] / max(v.stride, 1)}
			l.partly = l.partly || p.changes(in, &all)
			kept = append(kept, n)
		}
	}
	return kept
}

// changes reports whether an instruction may change values of a view, or be the target of a jump.
func (p *Program) changes(in *instruction, v *view) bool {
	switch in.typ {
	case computation.NoOperationLabel, computation.GotoLabel:
		return true
	case computation.NoOperation, computation.NoOperationPermanent, computation.NoOperationMarker, computation.ProvideOutput:
		return false
	// After a swap the view shows another buffer, with other values.
	case computation.SwapMatrix:
		return p.views[in.dst].matrix == v.matrix || p.views[in.src].matrix == v.matrix
	case computation.AllocMatrix, computation.DeallocMatrix, computation.AcceptInput:
		return p.views[in.dst].matrix == v.matrix
	case computation.CopyToRowsMulti, computation.AddToRowsMulti:
		for _, place := range in.places {
			if place.matrix == v.matrix {
				return true
			}
		}
		return false
	}
	dst := &p.views[in.dst]
	return in.dst != 0 && dst.matrix == v.matrix && v.overlaps(dst)
}

// placeRows gives lives that overlap different slots.
func (p *Program) placeRows(lives []quantizedRows) {
	var ends []int // by slot: the end of the last life
	for i := range lives {
		l := &lives[i]
		slot := 0
		// This is interval coloring: taking the first free slot in the order of starts uses as few
		// slots as there are lives at once. A slot holds integers for the longest input that it
		// serves, so fewer slots are less memory and a warmer cache.
		for slot < len(ends) && ends[slot] >= l.start {
			slot++
		}
		if slot == len(ends) {
			ends = append(ends, 0)
		}
		ends[slot], l.slot = l.end, int32(slot)
	}
}

// quantizedRows returns the integers that an instruction multiplies, from row first on, or nil if it
// multiplies floats. With checks a product makes its own.
func (c *Computer) quantizedRows(in *instruction) (rows *kernel.QuantizedRows, first int) {
	s := &in.rowSlot
	if s.precision == kernel.Float32 || c.opts.Check {
		return nil, 0
	}
	for len(c.quantized) <= int(s.number) {
		c.quantized = append(c.quantized, new(kernel.QuantizedRows))
	}
	rows = c.quantized[s.number]
	if s.view != 0 {
		c.threads.SetGroups(rows, s.precision, int(s.group), c.view(s.view))
	}
	return rows, int(s.first)
}
