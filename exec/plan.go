package exec

import "github.com/nnopt/nnopt/nnet3/computation"

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
