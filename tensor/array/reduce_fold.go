package array

import (
	"math"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/kernel/elementary"
)

// Sums of many terms are made block by block: each block by itself, as a short sum is, and the sums
// of the blocks one after the other. Blocks have a fixed number of terms. So several threads may make
// those of one sum, the bits don't depend on their number, and what is added to a long sum is not
// much smaller than it.
const (
	blockTerms = 1 << 14 // of a result that is computed along memory, as the longest chain in products
	// blockRows is for results that are accumulated by rows, which have one partial sum and not
	// eight. A block of 2000 columns takes 30 µs.
	blockRows = 256
)

// A folder adds elements of type T to accumulators of type A.
type folder[T, A any] struct {
	first A
	run   func(acc A, x []T, step int) A // len(x) may exceed what step leads to by less than step
	rows  func(acc []A, x []T)           // element by element
	four  func(acc []A, x [4][]T)        // run for four results side by side; nil if that gains nothing
	join  func(acc, x []A)               // adds what a block of terms adds up to; nil if there are no blocks
	exact bool                           // what blocks there are does not matter
}

// A foldLoop reduces v, which sortAxes returned.
type foldLoop[T Element, A any] struct {
	folder[T, A]
	v      *Array
	red    reducedDims
	n      int  // terms of a result
	byRows bool // see reducedByRows
}

// reducedByRows reports in which order the loops go that reduce v, as the strides decide. If
// neighbours belong to different results, as in column sums of a matrix, a whole row of results is
// accumulated at a time, term by term. Otherwise results are computed one after the other, along
// their terms. In either order, a result sees its terms in row-major order.
func reducedByRows(v *Array, red *reducedDims) bool {
	k := int(v.ndim)
	return k > 0 && v.shape[k-1] > 1 && v.strides[k-1] == 1 && (len(red.strides) == 0 || red.strides[len(red.strides)-1] != 1)
}

// blockOf returns how many terms a block has.
func (r Reduction) blockOf(byRows bool) int {
	if byRows {
		return blockRows
	}
	return blockTerms
}

// fold reduces v, which sortAxes returned, along memory as far as possible.
func fold[T Element, A any](ws *Workspace, r Reduction, acc []A, v *Array, red reducedDims, f folder[T, A]) {
	fill(acc, f.first)
	d := foldLoop[T, A]{f, v, red, red.len(), reducedByRows(v, &red)}
	if len(acc) == 0 || d.n == 0 {
		return
	}
	few := fewTerms
	if f.exact {
		few = fewExactTerms
	}
	if d.n < few && !d.byRows && len(acc) >= leastMoved && d.byTerms(ws, acc) {
		return
	}
	block := r.blockOf(d.byRows)
	if f.join == nil || d.n <= block {
		d.terms(acc, 0, d.n)
		return
	}
	if ws.Threads != nil {
		blocks := (d.n + block - 1) / block
		if parts := min(ws.Threads.Parts(r.takes(len(acc), d.n)), blocks); parts > 1 {
			d.shared(ws, acc, block, blocks, parts)
			return
		}
	}
	if f.exact {
		d.terms(acc, 0, d.n)
		return
	}
	d.terms(acc, 0, block)
	sums := scratch[A](ws, len(acc))
	for lo := block; lo < d.n; lo += block {
		d.block(acc, sums, lo, block)
	}
}

// block joins a block, which begins at term lo, to acc.
func (d *foldLoop[T, A]) block(acc, sums []A, lo, block int) {
	fill(sums, d.first)
	d.terms(sums, lo, min(lo+block, d.n))
	d.join(acc, sums[:len(acc)])
}

// mostSums bounds how many sums of blocks are kept at a time, unless one block has more.
const mostSums = 1 << 16

// shared is fold by several threads, each of which makes some blocks.
// It has a loop of its own, since what threads look at is on the heap.
func (d foldLoop[T, A]) shared(ws *Workspace, acc []A, block, blocks, parts int) {
	most := min(max(mostSums/len(acc), parts), blocks)
	sums := scratch[A](ws, most*len(acc))
	for begin := 0; begin < blocks; begin += most {
		n := min(most, blocks-begin)
		ws.inParts(min(parts, n), n, 1, func(_ *Workspace, first, next int) {
			for b := first; b < next; b++ {
				sum := sums[b*len(acc):][:len(acc)]
				fill(sum, d.first)
				lo := (begin + b) * block
				d.terms(sum, lo, min(lo+block, d.n))
			}
		})
		for b := range n {
			d.join(acc, sums[b*len(acc):][:len(acc)])
		}
	}
}

// scratch returns memory of a workspace for n sums of blocks.
func scratch[A any](ws *Workspace, n int) []A {
	if _, ok := any(*new(A)).(float64); !ok {
		return make([]A, n)
	}
	if len(ws.blockSums) < n {
		ws.blockSums = make([]float64, n)
	}
	return any(ws.blockSums[:n]).([]A)
}

// terms adds the terms from lo to hi of each result.
func (d *foldLoop[T, A]) terms(acc []A, lo, hi int) {
	v, red := d.v, &d.red
	data := dataOf[T](v)
	var shape, steps [MaxDims]int
	dims := v.joined(&shape, &steps)
	keptShape, keptSteps := shape[:dims], steps[:dims]
	if d.byRows {
		row := keptShape[len(keptShape)-1]
		w := walk(v.offset, red.shape, red.strides, lo)
		for range hi - lo {
			if row == len(acc) { // one run, most of the time, and often a short one
				d.rows(acc, data[w.at:][:len(acc)])
				w.advance(1)
				continue
			}
			kept := walk(w.at, keptShape, keptSteps, 0)
			for k := 0; k < len(acc); {
				m, _ := kept.run(len(acc) - k)
				d.rows(acc[k:k+m], data[kept.at:][:m])
				k += m
				kept.advance(m)
			}
			w.advance(1)
		}
		return
	}
	kept := walk(v.offset, keptShape, keptSteps, 0)
	inRuns := len(red.shape) == 1 && red.strides[0] == 1
	for k := 0; k < len(acc); k++ {
		if inRuns && d.four != nil && k+4 <= len(acc) {
			var x [4][]T
			for i := range x {
				x[i] = data[kept.at+lo:][:hi-lo]
				kept.advance(1)
			}
			d.four(acc[k:][:4], x)
			k += 3
			continue
		}
		if inRuns { // and often short ones
			acc[k] = d.run(acc[k], data[kept.at+lo:][:hi-lo], 1)
			kept.advance(1)
			continue
		}
		w := walk(kept.at, red.shape, red.strides, lo)
		for i := lo; i < hi; {
			m, step := w.run(hi - i)
			switch {
			case step == 1 || m == 1:
				acc[k] = d.run(acc[k], data[w.at:][:m], 1)
			case step > 0:
				acc[k] = d.run(acc[k], data[w.at:][:(m-1)*step+1], step)
			default: // repeated or reversed elements
				for j := range m {
					acc[k] = d.run(acc[k], data[w.at+j*step:][:1], 1)
				}
			}
			i += m
			w.advance(m)
		}
		kept.advance(1)
	}
}

// fewTerms is the number of terms from which on sums are made of several: see sums. The order of fewer ones does not
// depend on what else is computed. The least of 49 terms took 42 ns from each run, and 28 ns so (Zen 4, 2026-12-01).
const fewTerms, fewExactTerms = 16, 64

// byTerms is terms for few of them, which take less time than to look for those of each result: a term of many
// results is gathered at a time, or all of float32s that lie in memory. It reports false if there is no memory for them.
func (d *foldLoop[T, A]) byTerms(ws *Workspace, acc []A) bool {
	var shape, steps [MaxDims]int
	k, data, terms := d.v.joined(&shape, &steps), dataOf[T](d.v), 1
	x, turns := any(data).([]float32)
	if turns = turns && k == 1 && len(d.red.shape) == 1 && d.red.strides[0] == 1 && steps[0] >= d.n; turns {
		terms = d.n
	}
	memory, n := &ws.rowParts[0], min(blockSize, len(acc))
	if ws.New(memory, d.v.dtype, terms*n) != nil {
		return false
	}
	defer ws.Release(memory)
	block := Slice[T](memory)
	for at := 0; turns && at < len(acc); at += n {
		some := acc[at:][:min(n, len(acc)-at)]
		m := kernel.Matrix{Rows: len(some), Cols: terms, Stride: steps[0], Data: x[d.v.offset+at*steps[0]:][:(len(some)-1)*steps[0]+terms]}
		kernel.Transpose(any(block).([]float32), n, m)
		for i := range terms {
			d.rows(some, block[i*n:][:len(some)])
		}
	}
	if turns {
		return true
	}
	w := walk(d.v.offset, d.red.shape, d.red.strides, 0)
	for range d.n {
		for at := 0; at < len(acc); at += n {
			some := block[:min(n, len(acc)-at)]
			gather(some, data, w.at, shape[:k], steps[:k], at)
			d.rows(acc[at:][:len(some)], some)
		}
		w.advance(1)
	}
	return true
}

// each returns the folder of a function of two elements.
func each[T, A any](first A, f func(acc A, x T) A) folder[T, A] {
	return folder[T, A]{first,
		func(acc A, x []T, step int) A {
			for i := 0; i < len(x); i += step {
				acc = f(acc, x[i])
			}
			return acc
		},
		func(acc []A, x []T) {
			for i, v := range x {
				acc[i] = f(acc[i], v)
			}
		},
		nil, nil, false,
	}
}

// exactly returns the folder of a function of two elements of one type, for which terms may be
// bracketed in any way.
func exactly[A any](first A, f func(acc, x A) A) folder[A, A] {
	d := each(first, f)
	d.join, d.exact = d.rows, true
	return d
}

// sums returns the folder of a sum. Eight partial sums, which depend only on the length, reduce
// rounding and time.
func sums[T, A number]() folder[T, A] {
	f := each(0, func(acc A, x T) A { return acc + A(x) })
	f.join, f.exact = each(0, func(acc, x A) A { return acc + x }).rows, A(1)/2 == 0
	f.rows = func(acc []A, x []T) {
		x = x[:len(acc)]
		for i := range acc {
			acc[i] += A(x[i])
		}
	}
	slow := f.run
	f.run = func(acc A, x []T, step int) A {
		if step != 1 || len(x) < 16 {
			return slow(acc, x, step)
		}
		// Additions to one sum wait for each other; eight sums don't. The rest, fewer than eight,
		// is added to their sum.
		blocks, rest := x[:len(x)&^7], x[len(x)&^7:]
		var s0, s1, s2, s3, s4, s5, s6, s7 A
		for len(blocks) >= 4 { // two halves with a test between, so that the compiler keeps all sums in registers
			s0 += A(blocks[0])
			s1 += A(blocks[1])
			s2 += A(blocks[2])
			s3 += A(blocks[3])
			if blocks = blocks[4:]; len(blocks) < 4 {
				break
			}
			s4 += A(blocks[0])
			s5 += A(blocks[1])
			s6 += A(blocks[2])
			s7 += A(blocks[3])
			blocks = blocks[4:]
		}
		return slow(acc+((s0+s1)+(s2+s3)+((s4+s5)+(s6+s7))), rest, 1)
	}
	return f
}

// products returns the folder of a product. Those of floats are not made in blocks: if one of them
// overflowed and another one underflowed, there would be a NaN.
func products[T, A number]() folder[T, A] {
	f := each(1, func(acc A, x T) A { return acc * A(x) })
	f.rows = func(acc []A, x []T) {
		x = x[:len(acc)]
		for i := range acc {
			acc[i] *= A(x[i])
		}
	}
	f.four = func(acc []A, x [4][]T) { // multiplications of one product wait for each other
		p, q, r, s := acc[0], acc[1], acc[2], acc[3]
		a, b, c, d := x[0], x[1][:len(x[0])], x[2][:len(x[0])], x[3][:len(x[0])]
		for i, v := range a {
			p, q, r, s = p*A(v), q*A(b[i]), r*A(c[i]), s*A(d[i])
		}
		acc[0], acc[1], acc[2], acc[3] = p, q, r, s
	}
	if A(1)/2 == 0 {
		f.join, f.exact = each(1, func(acc, x A) A { return acc * x }).rows, true
	}
	return f
}

// A scaledSum is the number s·exp(m).
type scaledSum struct{ m, s float64 }

func (a scaledSum) add(x float64) scaledSum {
	switch {
	case x != x:
		a.m, a.s = x, 1
	// exp(-Inf) is 0, which adds nothing. The difference x - m would be NaN if m is -Inf, too.
	case x == math.Inf(-1):
	case x == a.m:
		a.s++
	case x < a.m:
		a.s += elementary.Exp(x - a.m)
	// A new maximum scales down what has been added. All exponents are negative, so nothing
	// overflows.
	case x > a.m:
		a.m, a.s = x, float64(a.s*elementary.Exp(a.m-x))+1
	}
	return a
}

// plus returns the sum of a and b.
func (a scaledSum) plus(b scaledSum) scaledSum {
	switch {
	case a.m != a.m || b.s == 0: // NaN, or nothing to add
		return a
	case a.s == 0 || b.m != b.m:
		return b
	case a.m == b.m: // both may be infinite
		return scaledSum{a.m, a.s + b.s}
	case a.m > b.m:
		return scaledSum{a.m, a.s + float64(b.s*elementary.Exp(b.m-a.m))}
	}
	return scaledSum{b.m, float64(a.s*elementary.Exp(a.m-b.m)) + b.s}
}

func (ws *Workspace) logSumExp(out, v *Array, red reducedDims) {
	acc := make([]scaledSum, out.Len())
	first := scaledSum{m: math.Inf(-1)}
	plus := each(first, scaledSum.plus).rows
	if v.dtype == Float32 {
		f := each(first, func(a scaledSum, x float32) scaledSum { return a.add(float64(x)) })
		f.join = plus
		fold(ws, LogSumExp, acc, v, red, f)
	} else {
		f := each(first, scaledSum.add)
		f.join = plus
		fold(ws, LogSumExp, acc, v, red, f)
	}
	for i, a := range acc {
		v := a.m
		if a.s > 0 {
			v += elementary.Log(a.s)
		}
		out.SetFloat(i, v)
	}
}
