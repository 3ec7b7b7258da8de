package array

import (
	"math/bits"

	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/kernel"
)

// straight is Map for n elements that are one block, and for operands that lie in order in memory or
// are one number: most maps of small networks, whose loop would take longer to prepare than to run. It
// reports false if operands are not so, and computes nothing.
func (ws *Workspace) straight(p *Program, n int, out, in []*Array) bool {
	if n > blockSize || ws.Threads != nil && divide.Always.Load() || !ws.loop.straight(p, n, out, in) {
		return false
	}
	for i := range p.placed {
		p.placed[i].run(ws.loop.lanes, n)
	}
	return true
}

// straight prepares the lanes for Map's straight.
func (lp *loop) straight(p *Program, n int, out, in []*Array) bool {
	if cap(lp.lanes) < len(p.slots) {
		lp.lanes = make([]lane, len(p.slots))
	}
	lp.lanes = lp.lanes[:len(p.slots)]
	shape := out[0].Shape()
	for k, a := range out {
		if a.dtype != p.slots[p.inputs+k] || !a.inOrder(shape) || p.stages && p.overwrites(k, out, in) {
			return false
		}
		lp.lanes[p.inputs+k].point(a, n)
	}
	numbers := false // operands of one element, for which blocks are filled
	for k, a := range in {
		switch {
		case a.dtype != p.types[k]:
			return false
		case a.inOrder(shape):
			lp.lanes[k].point(a, n)
		case int(a.ndim) == len(shape) && a.Len() == 1:
			numbers = true
		default:
			return false
		}
	}
	if numbers || len(p.slots) > len(in)+len(out) {
		lp.allotStraight(p, n, out, in, numbers)
	}
	return true
}

// allotStraight gives lanes memory that no operand has, and fills those of numbers and of constants.
func (lp *loop) allotStraight(p *Program, n int, out, in []*Array, numbers bool) {
	for _, c := range p.counts {
		lp.scratch.reserve(c.dtype, c.n*n)
	}
	if numbers {
		for k, a := range in {
			if a.Len() != n {
				lp.lanes[k].allot(a.dtype, &lp.scratch, int(p.places[k])*n, n)
				kinds[a.dtype].fill(&lp.lanes[k], a)
			}
		}
	}
	for k := len(in) + len(out); k < len(p.slots); k++ {
		lp.lanes[k].allot(p.slots[k], &lp.scratch, int(p.places[k])*n, n)
	}
	for _, c := range p.fixed {
		kinds[c.data.dtype].fill(&lp.lanes[c.value], c.data)
	}
}

// overwrites reports whether output k is made where an input is read afterwards, see begin.
func (p *Program) overwrites(k int, out, in []*Array) bool {
	for i, a := range in {
		if p.lastRead[i] > p.written[k] && out[k].Overlaps(a) {
			return true
		}
	}
	return false
}

// inOrder reports whether the array has a shape, and its elements lie in row-major order.
func (a *Array) inOrder(shape []int) bool {
	if int(a.ndim) != len(shape) {
		return false
	}
	step := 1
	for d := len(shape) - 1; d >= 0; d-- {
		size := shape[d]
		if a.shape[d] != size || size != 1 && a.strides[d] != step {
			return false
		}
		step *= size
	}
	return true
}

// point makes the lane a view of the first n elements of an array. The most common types are not asked for their
// kind.
func (l *lane) point(a *Array, n int) {
	switch d := a.data.(type) {
	case []float32:
		l.f = d[a.offset:][:n]
	case []float64:
		l.d = d[a.offset:][:n]
	default:
		kinds[a.dtype].point(l, a, 0, n)
	}
}

// reserve makes the block of a type at least n elements long.
func (l *lane) reserve(t DType, n int) {
	if t == Float32 && len(l.f) >= n || t == Float64 && len(l.d) >= n {
		return
	}
	kinds[t].reserve(l, n)
}

// allot gives the lane n elements of the block of its type.
func (l *lane) allot(t DType, blocks *lane, at, n int) {
	switch t {
	case Float32:
		l.f = blocks.f[at:][:n]
	case Float64:
		l.d = blocks.d[at:][:n]
	default:
		kinds[t].allot(l, blocks, at, n)
	}
}

// reduceStraight is Reduce over the last dimensions of few floats that lie in order in memory. It reports
// false if they are not so, and does nothing. Its bits are those of fold.
func (ws *Workspace) reduceStraight(r Reduction, out, in *Array, axes Axes) bool {
	first := int(in.ndim) // of the dimensions that are reduced
	for first > 0 && axes.Has(first-1) {
		first--
	}
	size := in.Len()
	if first == int(in.ndim) || axes>>first<<first != axes || size == 0 || size > blockTerms/4 || !in.Contiguous() || ws.Threads != nil && divide.Always.Load() {
		return false
	}
	n := product(in.shape[first:in.ndim])
	run := in.shape[in.ndim-1]
	switch d := in.data.(type) {
	case []float32:
		return reduceFloats(r, float32Folders, float32Extremes, out, d[in.offset:][:size], n, run)
	case []float64:
		return reduceFloats(r, float64Folders, float64Extremes, out, d[in.offset:][:size], n, run)
	}
	return false
}

// reduceFloats calls reduceRuns. It reports false for other reductions.
func reduceFloats[T float](r Reduction, folders []folder[T, float64], extremes []folder[T, T], out *Array, x []T, n, run int) bool {
	switch r {
	case Sum, Prod:
		reduceRuns(&folders[r], Slice[T](out), x, n, run)
	case Max, Min:
		reduceRuns(&extremes[r], Slice[T](out), x, n, run)
	default:
		return false
	}
	return true
}

// reduceRuns sets each result to the reduction of n elements, run by run.
func reduceRuns[T, A float](f *folder[T, A], out, x []T, n, run int) {
	for k := range out {
		acc := f.first
		for terms := x[k*n:][:n]; len(terms) > 0; terms = terms[run:] {
			acc = f.run(acc, terms[:run], 1)
		}
		out[k] = T(acc)
	}
}

// rowTerms is the least number of terms of a sum that RowSums makes side by side.
const rowTerms = 16

// sumRows is Reduce for sums of float32s that lie behind each other in memory, of the last dimensions of an array. It
// reports false if they don't, and does nothing.
func (ws *Workspace) sumRows(out, in *Array, axes Axes) bool {
	last := bits.Len8(uint8(axes)) == int(in.ndim) && axes != 0
	first := bits.TrailingZeros8(uint8(axes))
	if in.dtype != Float32 || !last || axes>>first != 1<<(int(in.ndim)-first)-1 || !in.Contiguous() {
		return false
	}
	n := product(in.shape[first:in.ndim])
	if n < rowTerms || n > blockTerms || in.Len() == 0 {
		return false
	}
	x, sums := Slice[float32](in), Slice[float32](out)
	if parts := ws.partsOf(in.Len()*sumTerm, len(sums), 1); parts > 1 {
		ws.sumRowsShared(parts, sums, x, n)
	} else {
		kernel.RowSums(sums, x, n)
	}
	return true
}

// sumRowsShared is RowSums by several threads. What it hands them is on the heap.
func (ws *Workspace) sumRowsShared(parts int, sums, x []float32, n int) {
	ws.inParts(parts, len(sums), 1, func(_ *Workspace, first, next int) { kernel.RowSums(sums[first:next], x[first*n:next*n], n) })
}

// sumTerm is what a term takes, in picoseconds.
const sumTerm = 100
