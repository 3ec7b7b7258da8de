package array

import (
	"slices"

	"github.com/nnopt/nnopt/internal/divide"
)

// A small op that runs again and again, in the steps of a loop for example, takes longer to find out what it has to do
// than to do it. If its arrays stay where they are, it finds that out once: see Workspace.Again.

// MapAgain returns what computes Map(p, out, in) for the same headers, whose elements may be others, nil if that is not
// one block of operands in order.
func (ws *Workspace) MapAgain(p *Program, out, in []*Array) func() {
	n := out[0].Len()
	if n == 0 || n > blockSize || ws.Threads != nil && divide.Always.Load() {
		return nil
	}
	// Only the lanes belong to the op. What others leave in the memory that all ops compute in is filled again.
	lp := &loop{scratch: ws.loop.scratch}
	if !lp.straight(p, n, out, in) {
		return nil
	}
	ws.loop.scratch = lp.scratch
	var numbers []int
	for k, a := range in {
		if a.Len() != n {
			numbers = append(numbers, k)
		}
	}
	in, lanes := slices.Clone(in), lp.lanes
	return func() {
		for _, k := range numbers {
			kinds[in[k].dtype].fill(&lanes[k], in[k])
		}
		for _, c := range p.fixed {
			kinds[c.data.dtype].fill(&lanes[c.value], c.data)
		}
		for i := range p.placed {
			p.placed[i].run(lanes, n)
		}
	}
}

// MulRowsAgain returns what computes MulRows for the same headers, whose elements may be others, nil if that is not a
// product of few rows with what was prepared.
func (ws *Workspace) MulRowsAgain(c, a *Array, prepared *Factor, e *Epilogue, args []*Array) func() {
	if !prepared.fits(a, c) || !a.Contiguous() || !c.Contiguous() {
		return nil
	}
	done := new(completion)
	if ws.complete(done, e, c, args, true) != nil {
		return nil
	}
	defer done.end()
	var left func()
	if done.left != nil {
		left = ws.MapAgain(done.left, ws.args[:1], ws.args)
	}
	// A copy would be one of what is there now.
	if done.left != nil && left == nil || done.copies != [4]*Array{} {
		return nil
	}
	x, y := general32(a), general32(c)
	product := done.of(0, c.shape[0], 0, c.shape[1]).Repeat(&x, &prepared.weights, &y)
	switch {
	case product == nil:
		return nil
	case left == nil:
		return product.Run
	}
	return func() {
		product.Run()
		left()
	}
}

// RowTo sets dst to element i of src along its first dimension, which has the shape of dst.
func RowTo(dst, src *Array, i int) {
	if to, from := dst.row(), src.rowAt(i, dst); to != nil && from != nil {
		copy(to, from)
		return
	}
	var part Array
	src.RangeTo(&part, Range{Start: i, Drop: true})
	CopyTo(dst, &part)
}

// ToRow sets element i of dst along its first dimension to src, which has its shape.
func ToRow(dst *Array, i int, src *Array) {
	if to, from := dst.rowAt(i, src), src.row(); to != nil && from != nil {
		copy(to, from)
		return
	}
	var part Array
	dst.RangeTo(&part, Range{Start: i, Drop: true})
	CopyTo(&part, src)
}

// row returns the elements of floats that lie in order, otherwise nil.
func (a *Array) row() []float32 {
	if f, ok := a.data.([]float32); ok && a.Contiguous() {
		return f[a.offset:][:a.Len()]
	}
	return nil
}

// rowAt is row for element i along the first dimension, which has the shape of row.
func (a *Array) rowAt(i int, row *Array) []float32 {
	f, ok := a.data.([]float32)
	if !ok || a.ndim != row.ndim+1 {
		return nil
	}
	step := 1
	for d := int(row.ndim); d > 0; d-- {
		size := row.shape[d-1]
		if a.shape[d] != size || size != 1 && a.strides[d] != step {
			return nil
		}
		step *= size
	}
	if step == 0 {
		return nil
	}
	return f[a.offset+i*a.strides[0]:][:step]
}
