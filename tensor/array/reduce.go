package array

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/kernel"
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
// dimensions and the type r.Result, and is contiguous. Floats are summed in double precision, integers
// in 64 bits. A long sum of floats is made in blocks of a fixed number of terms, so its bits depend on the
// shape and the strides of in alone. The error wraps ErrEmpty.
func (ws *Workspace) Reduce(r Reduction, out, in *Array, axes Axes) error {
	if r == Sum && ws.sumRows(out, in, axes) || ws.reduceStraight(r, out, in, axes) {
		return nil
	}
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
		ws.extreme(r, out, v, reduced)
	case All, Any:
		ws.truth(r, out, v, reduced)
	case LogSumExp:
		ws.logSumExp(out, v, reduced)
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

func (ws *Workspace) accumulate(r Reduction, out, v *Array, red reducedDims) {
	switch v.dtype {
	case Bool:
		f := each(0, func(acc int64, x bool) int64 {
			if x {
				acc++
			}
			return acc
		})
		f.join = sums[int64, int64]().join
		if r == Prod {
			f = each(1, func(acc int64, x bool) int64 {
				if !x {
					acc = 0
				}
				return acc
			})
			f.join = products[int64, int64]().join
		}
		f.exact = true
		fold(ws, r, Slice[int64](out), v, red, f)
	case Int8:
		accumulateInts[int8, int64](ws, r, out, v, red)
	case Int16:
		accumulateInts[int16, int64](ws, r, out, v, red)
	case Int32:
		accumulateInts[int32, int64](ws, r, out, v, red)
	case Int64:
		accumulateInts[int64, int64](ws, r, out, v, red)
	case Uint8:
		accumulateInts[uint8, uint64](ws, r, out, v, red)
	case Uint16:
		accumulateInts[uint16, uint64](ws, r, out, v, red)
	case Uint32:
		accumulateInts[uint32, uint64](ws, r, out, v, red)
	case Uint64:
		accumulateInts[uint64, uint64](ws, r, out, v, red)
	case Float32:
		// Sums of float32s are made in float64s and rounded once: so they don't lose digits with
		// the number of terms.
		acc := ws.accumulators(out.Len())
		fold(ws, r, acc, v, red, float32Folders[r])
		castBlock(Slice[float32](out), acc)
	case Float64:
		fold(ws, r, Slice[float64](out), v, red, float64Folders[r])
	}
}

func accumulateInts[T, A integer](ws *Workspace, r Reduction, out, v *Array, red reducedDims) {
	fold(ws, r, Slice[A](out), v, red, pick(r, sums[T, A], products[T, A]))
}

// The folders of the most common reductions, which would be made anew in each call otherwise.
var (
	float32Folders  = [...]folder[float32, float64]{Sum: rowSums32(), Prod: products[float32, float64]()}
	float64Folders  = [...]folder[float64, float64]{Sum: rowSums64(), Prod: products[float64, float64]()}
	float32Extremes = [...]folder[float32, float32]{Max: quickExtremes(Max), Min: quickExtremes(Min)}
	float64Extremes = [...]folder[float64, float64]{Max: extremes(Max, math.Inf(-1), math.Inf(1)), Min: extremes(Min, math.Inf(-1), math.Inf(1))}
	lowest32        = float32(math.Inf(-1))
)

func pick[T, A any](r Reduction, sum, prod func() folder[T, A]) folder[T, A] {
	if r == Sum {
		return sum()
	}
	return prod()
}

func (ws *Workspace) extreme(r Reduction, out, v *Array, red reducedDims) {
	switch v.dtype {
	case Bool:
		ws.truth(map[Reduction]Reduction{Max: Any, Min: All}[r], out, v, red)
	case Int8:
		fold(ws, r, Slice[int8](out), v, red, extremes[int8](r, math.MinInt8, math.MaxInt8))
	case Int16:
		fold(ws, r, Slice[int16](out), v, red, extremes[int16](r, math.MinInt16, math.MaxInt16))
	case Int32:
		fold(ws, r, Slice[int32](out), v, red, extremes[int32](r, math.MinInt32, math.MaxInt32))
	case Int64:
		fold(ws, r, Slice[int64](out), v, red, extremes[int64](r, math.MinInt64, math.MaxInt64))
	case Uint8:
		fold(ws, r, Slice[uint8](out), v, red, extremes[uint8](r, 0, math.MaxUint8))
	case Uint16:
		fold(ws, r, Slice[uint16](out), v, red, extremes[uint16](r, 0, math.MaxUint16))
	case Uint32:
		fold(ws, r, Slice[uint32](out), v, red, extremes[uint32](r, 0, math.MaxUint32))
	case Uint64:
		fold(ws, r, Slice[uint64](out), v, red, extremes[uint64](r, 0, math.MaxUint64))
	case Float32:
		fold(ws, r, Slice[float32](out), v, red, float32Extremes[r])
	case Float64:
		fold(ws, r, Slice[float64](out), v, red, float64Extremes[r])
	}
}

func extremes[T number](r Reduction, lowest, highest T) folder[T, T] {
	if r == Max {
		return exactly(lowest, larger[T])
	}
	return exactly(highest, smaller[T])
}

func larger[T number](acc, x T) T {
	if acc >= x || acc != acc {
		return acc
	}
	return x
}

func smaller[T number](acc, x T) T {
	if acc <= x || acc != acc {
		return acc
	}
	return x
}

// quickTerms is how many terms are worth a call of assembly.
const quickTerms = 32

// quickExtremes is extremes of float32s, of which several are compared at a time.
func quickExtremes(r Reduction) folder[float32, float32] {
	f := extremes(r, lowest32, -lowest32)
	of := map[Reduction]Opcode{Max: Maximum, Min: Minimum}[r]
	f.rows = func(acc, x []float32) { float32Kernels[of](acc, acc, x[:len(acc)]) }
	f.join = f.rows
	slow := f.run
	f.run = func(acc float32, x []float32, step int) float32 {
		if step != 1 || len(x) < quickTerms {
			return slow(acc, x, step)
		}
		low, high, finite := kernel.Extremes(x)
		if !finite {
			return slow(acc, x, 1)
		}
		v, choose := high, larger[float32]
		if r == Min {
			v, choose = low, smaller[float32]
		}
		if v == 0 { // of zeros, the first one has the sign
			v = x[slices.Index(x, 0)]
		}
		return choose(acc, v)
	}
	return f
}

func (ws *Workspace) truth(r Reduction, out, v *Array, red reducedDims) {
	if r == All {
		fold(ws, r, Slice[bool](out), v, red, exactly(true, func(acc, x bool) bool { return acc && x }))
		return
	}
	fold(ws, r, Slice[bool](out), v, red, exactly(false, func(acc, x bool) bool { return acc || x }))
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
	case []string:
		return math.NaN()
	}
	return a.data.([]float64)[at]
}
