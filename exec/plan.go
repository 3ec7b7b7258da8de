package exec

import (
	"cmp"
	"slices"
	"sort"

	"github.com/nnopt/nnopt/nnet3/computation"
)

// A plan places the matrices of a program in one block of memory. Its size is close to the peak of
// the computation (Computation.MaxMemory, without compression): over 193 optimized computations
// 1.01 times on average, and at most 1.25 times (November 2026). Lists of free buffers by size need
// up to 2.9 times.
//
// A looped computation has no plan, because its swaps move matrices from pass to pass. Nor has one
// with more allocations, for which planning would take long.
type plan struct {
	offsets []int // by command: the offset in elements of the matrix that it allocates or accepts, or -1
	size    int   // in elements; 0 if there is no plan
}

const (
	maxPlanned = 1 << 14 // allocations; bestFit takes quadratic time in the worst case
	alignment  = 16      // elements; a cache line
)

// newPlan places the buffers of c.
func newPlan(c *computation.Computation) plan {
	if c.Looped() {
		return plan{}
	}
	spans := lives(c)
	if len(spans) > maxPlanned {
		return plan{}
	}
	size := arrange(spans)
	p := plan{offsets: make([]int, len(c.Commands)), size: size}
	for i := range p.offsets {
		p.offsets[i] = -1
	}
	for _, s := range spans {
		p.offsets[s.start] = s.offset
	}
	return p
}

// lives returns the buffers in the order of their allocation. A swap exchanges the buffers of two
// matrices.
func lives(c *computation.Computation) []span {
	var spans []span
	holds := make([]int, len(c.Matrices)) // by matrix: its buffer
	matrix := func(s int32) int32 { return c.Submatrices[s].Matrix }
	for i, cmd := range c.Commands {
		switch cmd.Type {
		case computation.AllocMatrix, computation.AcceptInput:
			m := c.Matrices[matrix(cmd.View())]
			size := (int(m.Rows)*int(m.Cols) + alignment - 1) / alignment * alignment
			holds[matrix(cmd.View())] = len(spans)
			spans = append(spans, span{start: i, end: len(c.Commands), until: len(c.Commands), size: size})
		case computation.DeallocMatrix:
			// Free the buffer that the matrix holds now, which after a swap is not the one that its
			// own command allocated.
			s := &spans[holds[matrix(cmd.View())]]
			s.end, s.until = i, i
		case computation.SwapMatrix:
			a, b := matrix(cmd.View()), matrix(cmd.Source())
			holds[a], holds[b] = holds[b], holds[a]
		}
	}
	return spans
}

// A span is the life of a buffer, from the command or step that allots it to the last one that uses it,
// inclusive.
type span struct {
	start, end   int
	size, offset int
	// Lanes run side by side: what ends in one of them may be in use while the other one runs, up to the
	// end of both.
	until       int   // that end, otherwise end
	first, last int32 // the lanes of start and end; 0 is none, and 2k and 2k+1 are side by side
}

// before reports whether s has ended for sure when t begins.
func (s *span) before(t *span) bool { return s.end < t.start && s.last^1 != t.first }

const maxGreedy = 1 << 12 // spans; bySize always takes quadratic time

// arrange places buffers, which are in the order of their starts, by two rules, and keeps the better result.
// It returns the size of the memory.
func arrange(spans []span) int {
	// bestFit sees the lives in the order of time, so it packs small buffers that come and go well,
	// but a large one that comes late finds the memory in pieces. bySize places the large ones
	// while there is still room, and small ones in between. Neither is better on all computations,
	// so both are tried where that is affordable.
	size := bestFit(spans)
	if len(spans) <= maxGreedy {
		other := slices.Clone(spans)
		if s := bySize(other); s < size {
			copy(spans, other)
			size = s
		}
	}
	return size
}

// order returns the numbers of the spans, sorted.
func order(spans []span, compare func(a, b *span) int) []int {
	numbers := make([]int, len(spans))
	for i := range numbers {
		numbers[i] = i
	}
	slices.SortStableFunc(numbers, func(i, j int) int { return compare(&spans[i], &spans[j]) })
	return numbers
}

// hole is free memory between buffers.
type hole struct{ offset, size int }

// bestFit places the buffers as an allocator would, one after the other, each in the smallest hole
// that it fits. It returns the size of the memory.
func bestFit(spans []span) int {
	// Invariant: memory from 0 to top is either held by a live buffer or in exactly one hole, and
	// no two holes touch. Without the second part, two neighbors of which neither is large enough
	// would hide room for a buffer.
	ends := order(spans, func(a, b *span) int { return cmp.Compare(a.until, b.until) })
	var holes []hole // by offset, never adjacent
	top := 0
	for i := range spans {
		s := &spans[i]
		// A buffer that ends at the command that allocates another is still in use: the command may
		// read the one while it writes the other. So only earlier ends free memory.
		for len(ends) > 0 && spans[ends[0]].until < s.start {
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
		// No hole is large enough. The last hole touches the top: extend it, because a buffer above
		// it would leave it as waste.
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

// freeHole adds a hole and merges it with adjacent ones.
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

// bySize places the largest buffer first, each in the smallest gap between placed buffers that live
// at the same time. It returns the size of the memory.
func bySize(spans []span) int {
	placed := make([]int, 0, len(spans)) // numbers of the placed spans, by offset
	top := 0
	for _, i := range order(spans, func(a, b *span) int { return cmp.Compare(b.size, a.size) }) {
		s := &spans[i]
		best, bestGap, end := -1, 0, 0
		// Walk over the placed buffers by their offsets, past those that don't live at the same
		// time. end is how far the others reach, so what lies between end and the next one is a gap
		// for the whole life of s.
		for _, k := range placed {
			p := &spans[k]
			if p.before(s) || s.before(p) {
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
