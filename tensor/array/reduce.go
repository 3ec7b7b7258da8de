package array

import (
	"errors"
	"fmt"
	"math"

	"github.com/nnopt/nnopt/kernel/elementary"
)

// A Reduction combines elements into one.
type Reduction uint8

// The reductions.
const (
	Sum Reduction = iota
	Prod
	Max // NaN if an element is NaN
	Min
	All
	Any
	LogSumExp // log of the sum of the exponentials, without overflow
	NumReductions
)

var reductionNames = [NumReductions]string{"sum", "prod", "max", "min", "all", "any", "logsumexp"}

// String returns the name of the reduction.
func (r Reduction) String() string { return reductionNames[r] }

// Result returns the type of the result for elements of type d.
func (r Reduction) Result(d DType) DType {
	switch r {
	case Sum, Prod:
		return d.Sum()
	case All, Any:
		return Bool
	case LogSumExp:
		return d.Float()
	}
	return d
}

// Opcode returns the operation on two elements that the reduction repeats.
func (r Reduction) Opcode() Opcode {
	return [NumReductions]Opcode{Add, Mul, Maximum, Minimum, And, Or, LogAddExp}[r]
}

// ErrEmpty is wrapped by the error of a reduction that has no value for no elements, such as a
// maximum.
var ErrEmpty = errors.New("reduction of no elements")

// Axes is a set of dimensions, as bits.
type Axes uint8

// Has reports whether dimension d is in the set.
func (x Axes) Has(d int) bool { return x>>d&1 != 0 }

// Reduce sets out to the reduction of in over the dimensions in axes. Out has the remaining
// dimensions and the type r.Result, and is contiguous. Floats are summed in double precision, integers in 64 bits. The
// error wraps ErrEmpty.
func (ws *Workspace) Reduce(r Reduction, out, in *Array, axes Axes) error {
	switch {
	// Copies in the type of the accumulators: there is no loop for every pair of types.
	case r == LogSumExp && !in.dtype.IsFloat():
		in = in.Cast(Float64)
	case (r == All || r == Any) && in.dtype != Bool:
		in = in.Cast(Bool)
	}
	v := &ws.sorted
	reduced := in.sortAxesTo(v, axes)
	if n := reduced.len(); n == 0 && (r == Max || r == Min) && out.Len() > 0 {
		return fmt.Errorf("%w: %v of shape %v", ErrEmpty, r, in.Shape())
	}
	if !ws.reduceShared(r, out, v, reduced) {
		ws.reduce(r, out, v, reduced)
	}
	return nil
}

// reduce is Reduce for what sortAxes has returned.
func (ws *Workspace) reduce(r Reduction, out, v *Array, reduced reducedDims) {
	switch r {
	case Sum, Prod:
		ws.accumulate(r, out, v, reduced)
	case Max, Min:
		extreme(r, out, v, reduced)
	case All, Any:
		truth(r, out, v, reduced)
	case LogSumExp:
		logSumExp(out, v, reduced)
	}
}

// reducedDims are the dimensions of a view that are reduced.
type reducedDims struct{ shape, strides []int }

func (d reducedDims) len() int {
	n := 1
	for _, k := range d.shape {
		n *= k
	}
	return n
}

// sortAxes returns the view with only the dimensions that are not in axes, and the others.
func (a *Array) sortAxes(axes Axes) (*Array, reducedDims) {
	v := new(Array)
	return v, a.sortAxesTo(v, axes)
}

// sortAxesTo is sortAxes for a view that is there.
func (a *Array) sortAxesTo(v *Array, axes Axes) reducedDims {
	var order [MaxDims]int
	// The dimensions that stay come first, in their order, then those that are reduced: the view
	// has an element of the result for each index of the first, and terms for each index of the
	// others.
	kept := 0
	for d := range int(a.ndim) {
		if !axes.Has(d) {
			order[kept] = d
			kept++
		}
	}
	n := kept
	for d := range int(a.ndim) {
		if axes.Has(d) {
			order[n] = d
			n++
		}
	}
	if err := a.TransposeTo(v, order[:n]...); err != nil {
		panic(err) // no dimension is dropped
	}
	v.ndim = uint8(kept)
	return reducedDims{v.shape[kept:n], v.strides[kept:n]}
}

// A folder adds elements of type T to accumulators of type A.
type folder[T, A any] struct {
	first A
	run   func(acc A, x []T, step int) A // len(x) may exceed what step leads to by less than step
	rows  func(acc []A, x []T)           // element by element
}

// fold reduces v, which sortAxes returned, along memory as far as possible.
func fold[T Element, A any](acc []A, v *Array, red reducedDims, f folder[T, A]) {
	fill(acc, f.first)
	n := red.len()
	if len(acc) == 0 || n == 0 {
		return
	}
	data := dataOf[T](v)
	keptShape, keptSteps := v.shape[:v.ndim], v.strides[:v.ndim]
	// The strides decide the order of the loops. If neighbours belong to different results, as in
	// column sums of a matrix, a whole row of results is accumulated at a time, term by term.
	// Otherwise results are computed one after the other, along their terms. In either order, a
	// result sees its terms in row-major order; which partial sums they make depends on shape and
	// strides, never on the processor.
	if k := int(v.ndim); k > 0 && keptShape[k-1] > 1 && keptSteps[k-1] == 1 && (len(red.strides) == 0 || red.strides[len(red.strides)-1] != 1) {
		var w walker
		w.start(v.offset, red.shape, red.strides, 0)
		for i := 0; i < n; i++ {
			if keptShape[k-1] == len(acc) { // one run, most of the time, and often a short one
				f.rows(acc, data[w.at:][:len(acc)])
				w.advance(1)
				continue
			}
			var kept walker
			kept.start(w.at, keptShape, keptSteps, 0)
			for k := 0; k < len(acc); {
				m, _ := kept.run(len(acc) - k)
				f.rows(acc[k:k+m], data[kept.at:][:m])
				k += m
				kept.advance(m)
			}
			w.advance(1)
		}
		return
	}
	var kept walker
	kept.start(v.offset, keptShape, keptSteps, 0)
	for k := range acc {
		var w walker
		w.start(kept.at, red.shape, red.strides, 0)
		for i := 0; i < n; {
			m, step := w.run(n - i)
			switch {
			case step == 1 || m == 1:
				acc[k] = f.run(acc[k], data[w.at:][:m], 1)
			case step > 0:
				acc[k] = f.run(acc[k], data[w.at:][:(m-1)*step+1], step)
			default: // repeated or reversed elements
				for j := range m {
					acc[k] = f.run(acc[k], data[w.at+j*step:][:1], 1)
				}
			}
			i += m
			w.advance(m)
		}
		kept.advance(1)
	}
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
		}}
}

// sums returns the folder of a sum. Eight partial sums, which depend only on the length, reduce
// rounding and time.
func sums[T, A number]() folder[T, A] {
	f := each(0, func(acc A, x T) A { return acc + A(x) })
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

func products[T, A number]() folder[T, A] { return each(1, func(acc A, x T) A { return acc * A(x) }) }

func (ws *Workspace) accumulate(r Reduction, out, v *Array, red reducedDims) {
	switch v.dtype {
	case Bool:
		if r == Sum {
			fold(Slice[int64](out), v, red, each(0, func(acc int64, x bool) int64 {
				if x {
					acc++
				}
				return acc
			}))
			return
		}
		fold(Slice[int64](out), v, red, each(1, func(acc int64, x bool) int64 {
			if !x {
				acc = 0
			}
			return acc
		}))
	case Int8:
		accumulateInts[int8, int64](r, out, v, red)
	case Int16:
		accumulateInts[int16, int64](r, out, v, red)
	case Int32:
		accumulateInts[int32, int64](r, out, v, red)
	case Int64:
		accumulateInts[int64, int64](r, out, v, red)
	case Uint8:
		accumulateInts[uint8, uint64](r, out, v, red)
	case Uint16:
		accumulateInts[uint16, uint64](r, out, v, red)
	case Uint32:
		accumulateInts[uint32, uint64](r, out, v, red)
	case Uint64:
		accumulateInts[uint64, uint64](r, out, v, red)
	case Float32:
		// Sums of float32s are made in float64s and rounded once: so they don't lose digits with
		// the number of terms.
		acc := ws.accumulators(out.Len())
		fold(acc, v, red, float32Folders[r])
		castBlock(Slice[float32](out), acc)
	case Float64:
		fold(Slice[float64](out), v, red, float64Folders[r])
	}
}

func accumulateInts[T, A integer](r Reduction, out, v *Array, red reducedDims) {
	fold(Slice[A](out), v, red, pick(r, sums[T, A], products[T, A]))
}

// The folders of the most common reductions, which would be made anew in each call otherwise.
var (
	float32Folders  = [...]folder[float32, float64]{Sum: rowSums32(), Prod: products[float32, float64]()}
	float64Folders  = [...]folder[float64, float64]{Sum: rowSums64(), Prod: products[float64, float64]()}
	float32Extremes = [...]folder[float32, float32]{Max: extremes(Max, lowest32, -lowest32), Min: extremes(Min, lowest32, -lowest32)}
	float64Extremes = [...]folder[float64, float64]{Max: extremes(Max, math.Inf(-1), math.Inf(1)), Min: extremes(Min, math.Inf(-1), math.Inf(1))}
	lowest32        = float32(math.Inf(-1))
)

func pick[T, A any](r Reduction, sum, prod func() folder[T, A]) folder[T, A] {
	if r == Sum {
		return sum()
	}
	return prod()
}

func extreme(r Reduction, out, v *Array, red reducedDims) {
	switch v.dtype {
	case Bool:
		truth(map[Reduction]Reduction{Max: Any, Min: All}[r], out, v, red)
	case Int8:
		fold(Slice[int8](out), v, red, extremes[int8](r, math.MinInt8, math.MaxInt8))
	case Int16:
		fold(Slice[int16](out), v, red, extremes[int16](r, math.MinInt16, math.MaxInt16))
	case Int32:
		fold(Slice[int32](out), v, red, extremes[int32](r, math.MinInt32, math.MaxInt32))
	case Int64:
		fold(Slice[int64](out), v, red, extremes[int64](r, math.MinInt64, math.MaxInt64))
	case Uint8:
		fold(Slice[uint8](out), v, red, extremes[uint8](r, 0, math.MaxUint8))
	case Uint16:
		fold(Slice[uint16](out), v, red, extremes[uint16](r, 0, math.MaxUint16))
	case Uint32:
		fold(Slice[uint32](out), v, red, extremes[uint32](r, 0, math.MaxUint32))
	case Uint64:
		fold(Slice[uint64](out), v, red, extremes[uint64](r, 0, math.MaxUint64))
	case Float32:
		fold(Slice[float32](out), v, red, float32Extremes[r])
	case Float64:
		fold(Slice[float64](out), v, red, float64Extremes[r])
	}
}

func extremes[T number](r Reduction, lowest, highest T) folder[T, T] {
	if r == Max {
		return each(lowest, func(acc, x T) T {
			if acc >= x || acc != acc {
				return acc
			}
			return x
		})
	}
	return each(highest, func(acc, x T) T {
		if acc <= x || acc != acc {
			return acc
		}
		return x
	})
}

func truth(r Reduction, out, v *Array, red reducedDims) {
	if r == All {
		fold(Slice[bool](out), v, red, each(true, func(acc, x bool) bool { return acc && x }))
		return
	}
	fold(Slice[bool](out), v, red, each(false, func(acc, x bool) bool { return acc || x }))
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

func logSumExp(out, v *Array, red reducedDims) {
	acc := make([]scaledSum, out.Len())
	first := scaledSum{m: math.Inf(-1)}
	if v.dtype == Float32 {
		fold(acc, v, red, each(first, func(a scaledSum, x float32) scaledSum { return a.add(float64(x)) }))
	} else {
		fold(acc, v, red, each(first, func(a scaledSum, x float64) scaledSum { return a.add(x) }))
	}
	for i, a := range acc {
		v := a.m
		if a.s > 0 {
			v += elementary.Log(a.s)
		}
		out.SetFloat(i, v)
	}
}

// elementAt returns the element at an offset of the memory.
func elementAt(a *Array, at int) float64 {
	switch d := a.data.(type) {
	case []bool:
		if d[at] {
			return 1
		}
		return 0
	case []int8:
		return float64(d[at])
	case []int16:
		return float64(d[at])
	case []int32:
		return float64(d[at])
	case []int64:
		return float64(d[at])
	case []uint8:
		return float64(d[at])
	case []uint16:
		return float64(d[at])
	case []uint32:
		return float64(d[at])
	case []uint64:
		return float64(d[at])
	case []F16:
		return float64(d[at].Float32())
	case []BF16:
		return float64(d[at].Float32())
	case []float32:
		return float64(d[at])
	}
	return a.data.([]float64)[at]
}
