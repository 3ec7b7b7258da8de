package exec

import (
	"slices"
	"sort"

	"github.com/nnopt/nnopt/nnet3/computation"
)

// A plan says where in one piece of memory each matrix lives. It is made once per program. It needs about as many bytes as
// the matrices take when they take most (Computation.MaxMemory, compression left out): over 193 optimized computations 1.01 times as many on
// average, and at most 1.25 (November 2026); lists of free buffers by size take up to 2.9 times as many.
//
// A looped computation has no plan: its swaps make matrices change places from pass to pass. Nor has one with so many
// allocations that planning would take long.
type plan struct {
	offsets []int // by command: where the matrix that it allocates or accepts begins, in elements; -1 for other commands
	size    int   // elements in all; 0 if there is no plan
}

const (
	maxPlanned = 1 << 14 // allocations; bestFit takes time in proportion to their square if they are made to fragment
	maxGreedy  = 1 << 12 // allocations; bySize always does
	alignment  = 16      // elements; a cache line
)

// span is the life of a buffer: from the command that allocates it to the one that frees it, inclusive.
type span struct {
	start, end   int
	size, offset int
}

// newPlan places the buffers of c by two rules and keeps the better result.
func newPlan(c *computation.Computation) plan {
	if c.Looped() {
		return plan{}
	}
	spans := lives(c)
	if len(spans) > maxPlanned {
		return plan{}
	}
	size := bestFit(spans)
	if len(spans) <= maxGreedy {
		other := slices.Clone(spans)
		if s := bySize(other); s < size {
			spans, size = other, s
		}
	}
	p := plan{offsets: make([]int, len(c.Commands)), size: size}
	for i := range p.offsets {
		p.offsets[i] = -1
	}
	for _, s := range spans {
		p.offsets[s.start] = s.offset
	}
	return p
}

// lives returns the buffers in the order of their allocation. A swap hands a buffer over to another matrix.
func lives(c *computation.Computation) []span {
	var spans []span
	holds := make([]int, len(c.Matrices)) // by matrix: the number of its buffer
	matrix := func(s int32) int32 { return c.Submatrices[s].Matrix }
	for i, cmd := range c.Commands {
		switch cmd.Type {
		case computation.AllocMatrix, computation.AcceptInput:
			m := c.Matrices[matrix(cmd.Arg1)]
			size := (int(m.Rows)*int(m.Cols) + alignment - 1) / alignment * alignment
			holds[matrix(cmd.Arg1)] = len(spans)
			spans = append(spans, span{start: i, end: len(c.Commands), size: size})
		case computation.DeallocMatrix:
			spans[holds[matrix(cmd.Arg1)]].end = i
		case computation.SwapMatrix:
			a, b := matrix(cmd.Arg1), matrix(cmd.Arg2)
			holds[a], holds[b] = holds[b], holds[a]
		}
	}
	return spans
}

// hole is free memory between buffers.
type hole struct{ offset, size int }

// bestFit places the buffers as an allocator would: one after the other, each in the smallest hole that holds it. It
// returns the size of the memory.
func bestFit(spans []span) int {
	ends := make([]int, len(spans)) // numbers of the spans in the order of their ends
	for i := range ends {
		ends[i] = i
	}
	sort.SliceStable(ends, func(i, j int) bool { return spans[ends[i]].end < spans[ends[j]].end })
	var holes []hole // by offset; never two side by side
	top := 0
	for i := range spans {
		s := &spans[i]
		for len(ends) > 0 && spans[ends[0]].end < s.start {
			holes = freeHole(holes, hole{spans[ends[0]].offset, spans[ends[0]].size})
			ends = ends[1:]
		}
		best := -1
		for k, h := range holes {
			if h.size >= s.size && (best < 0 || h.size < holes[best].size) {
				best = k
			}
		}
		switch last := len(holes) - 1; {
		case best >= 0:
			s.offset = holes[best].offset
			holes[best].offset += s.size
			if holes[best].size -= s.size; holes[best].size == 0 {
				holes = slices.Delete(holes, best, best+1)
			}
			continue
		case last >= 0 && holes[last].offset+holes[last].size == top:
			s.offset = holes[last].offset // the memory grows from here
			holes = holes[:last]
		default:
			s.offset = top
		}
		top = s.offset + s.size
	}
	return top
}

// freeHole adds a hole, and makes one of those that touch.
func freeHole(holes []hole, h hole) []hole {
	i := sort.Search(len(holes), func(i int) bool { return holes[i].offset > h.offset })
	holes = slices.Insert(holes, i, h)
	if i+1 < len(holes) && h.offset+h.size == holes[i+1].offset {
		holes[i].size += holes[i+1].size
		holes = slices.Delete(holes, i+1, i+2)
	}
	if i > 0 && holes[i-1].offset+holes[i-1].size == h.offset {
		holes[i-1].size += holes[i].size
		holes = slices.Delete(holes, i, i+1)
	}
	return holes
}

// bySize places the largest buffer first, each in the smallest gap between those that are placed already and live at the
// same time. It returns the size of the memory.
func bySize(spans []span) int {
	order := make([]int, len(spans))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return spans[order[i]].size > spans[order[j]].size })
	placed := make([]int, 0, len(spans)) // numbers of the spans that have a place, by offset
	top := 0
	for _, i := range order {
		s := &spans[i]
		best, bestGap, end := -1, 0, 0
		for _, k := range placed {
			p := &spans[k]
			if p.start > s.end || s.start > p.end {
				continue
			}
			if gap := p.offset - end; gap >= s.size && (best < 0 || gap < bestGap) {
				best, bestGap = end, gap
			}
			end = max(end, p.offset+p.size)
		}
		if best < 0 {
			best = end
		}
		s.offset = best
		top = max(top, best+s.size)
		at := sort.Search(len(placed), func(k int) bool { return spans[placed[k]].offset > s.offset })
		placed = slices.Insert(placed, at, i)
	}
	return top
}
