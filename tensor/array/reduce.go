package array

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
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
	// A sum of one element is that element, as it is where its type says so: 0 + -0 is another zero.
	if (r <= Min || r == LogSumExp) && in.dtype == out.dtype && in.Len() == out.Len() {
		in.sortAxesTo(&ws.sorted, axes)
		ws.Copy(out, &ws.sorted)
		return nil
	}
	if r == Sum && ws.sumRows(out, in, axes) || ws.reduceStraight(r, out, in, axes) || ws.reduceInMemory(r, out, in, axes) {
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
	if r != Sum && r != LogSumExp { // of which the order of terms may not depend on the strides
		reduced = reduced.joined()
	}
	if n := reduced.len(); n == 0 && (r == Max || r == Min) && out.Len() > 0 {
		return fmt.Errorf("%w: %v of shape %v", ErrEmpty, r, in.Shape())
	}
	if !ws.reduceShared(r, out, v, reduced) {
		ws.reduce(r, out, v, reduced)
	}
	return nil
}

// reduceInMemory is Reduce for the least or the greatest of all float32s of what lies in one piece, perhaps in another
// order, as images with the channels last. It reports false if in does not, and does nothing.
func (ws *Workspace) reduceInMemory(r Reduction, out, in *Array, axes Axes) bool {
	x, ok := in.data.([]float32)
	if !ok || r != Max && r != Min || in.Len() == 0 || axes != 1<<in.ndim-1 || in.ndim < 2 {
		return false
	}
	m := in.InMemoryOrder()
	if !m.Contiguous() || ws.Reduce(r, out, m.Reshape(in.Len()), 1) != nil {
		return false
	}
	y := &Slice[float32](out)[0]
	if *y != 0 && *y == *y {
		return true
	}
	// Only the sign of a zero, and which NaN it is, depend on the order: those of the first one in the view. The least of what
	// was rectified is a zero mostly, and the first one is not far.
	var index [MaxDims]int
	for at := in.offset; ; {
		if v := x[at]; v == *y || v != v {
			*y = v
			return true
		}
		d := in.ndim - 1
		for at += in.strides[d]; index[d] == in.shape[d]-1; at += in.strides[d] {
			at, index[d] = at-in.shape[d]*in.strides[d], 0
			d--
		}
		index[d]++
	}
}

// reduce is Reduce for what sortAxes has returned.
func (ws *Workspace) reduce(r Reduction, out, v *Array, reduced reducedDims) {
	switch r {
	case Sum, Prod:
		numerics[v.dtype].accumulate(ws, r, out, v, reduced)
	case Max, Min:
		numerics[v.dtype].extreme(ws, r, out, v, reduced)
	case All:
		numerics[Bool].extreme(ws, Min, out, v, reduced)
	case Any:
		numerics[Bool].extreme(ws, Max, out, v, reduced)
	case LogSumExp:
		ws.logSumExp(out, v, reduced)
	}
}

// reducedDims are the dimensions of a view that are reduced.
type reducedDims struct{ shape, strides []int }

func (d reducedDims) len() int { return product(d.shape) }

// joined makes one dimension of neighbours that lie in one piece: runs are longer then.
func (d reducedDims) joined() reducedDims {
	n := 0
	for i, size := range d.shape {
		switch {
		case size == 1:
			continue
		case n > 0 && d.strides[n-1] == size*d.strides[i]:
			d.shape[n-1], d.strides[n-1] = d.shape[n-1]*size, d.strides[i]
			continue
		}
		d.shape[n], d.strides[n] = size, d.strides[i]
		n++
	}
	return reducedDims{d.shape[:n], d.strides[:n]}
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

// The folders of the most common reductions, which would be made anew in each call otherwise.
var (
	float32Folders  = []folder[float32, float64]{Sum: rowSums32(), Prod: products[float32, float64]()}
	float64Folders  = []folder[float64, float64]{Sum: rowSums64(), Prod: products[float64, float64]()}
	float32Extremes = []folder[float32, float32]{Max: quickExtremes(Max), Min: quickExtremes(Min)}
	float64Extremes = extremes(math.Inf(-1), math.Inf(1))
	lowest32        = float32(math.Inf(-1))
)

// extremes returns the folders for Max and Min.
func extremes[T number](lowest, highest T) []folder[T, T] {
	return []folder[T, T]{Max: exactly(lowest, larger[T]), Min: exactly(highest, smaller[T])}
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
	f := extremes(lowest32, -lowest32)[r]
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

// elementAt returns the element at an offset of the memory.
func elementAt(a *Array, at int) float64 {
	switch d := a.data.(type) {
	case []float32: // most are
		return float64(d[at])
	case []float64:
		return d[at]
	case []string:
		return math.NaN()
	}
	return kinds[a.dtype].at(a.data, at)
}

// ArgMax sets out to the positions of the largest elements, counted in row-major order over the
// dimensions in axes. Of equal ones it takes the first, and a NaN is larger than any number. The
// error wraps ErrEmpty.
func (ws *Workspace) ArgMax(out, in *Array, axes Axes) error {
	return ws.argExtreme(out, in, axes, 1)
}

// ArgMin is ArgMax for the smallest elements. A NaN is smaller than any number.
func (ws *Workspace) ArgMin(out, in *Array, axes Axes) error {
	return ws.argExtreme(out, in, axes, -1)
}

// argExtreme finds the largest products of elements and sign, which is 1 or -1.
func (ws *Workspace) argExtreme(out, in *Array, axes Axes, sign int64) error {
	v, red := in.sortAxes(axes)
	n, dst := red.len(), Slice[int64](out)
	if n == 0 && len(dst) > 0 {
		return fmt.Errorf("%w: the position of an extreme of shape %v", ErrEmpty, in.Shape())
	}
	size := ws.Threads.Size()
	// Few results don't keep all threads busy. Then they share the elements of each.
	if blocks := (n + blockTerms - 1) / blockTerms; blocks > 1 && len(dst) < 2*size {
		if parts := ws.partsOf(len(dst)*n*compared, blocks, 1); parts > 1 {
			ws.argShared(dst, in, v, red, n, blocks, parts, sign)
			return nil
		}
	}
	ws.pieces(len(dst)*n*compared, len(dst), 1, func(_ *Workspace, first, next int) {
		for k := first; k < next; k++ {
			e := extremeOf{in: in, sign: sign}
			e.look(v.place(k), &red, 0, n)
			dst[k] = int64(e.where)
		}
	})
	return nil
}

// argShared finds the positions of few extremes, each among blocks of elements at a time.
func (ws *Workspace) argShared(dst []int64, in, v *Array, red reducedDims, n, blocks, parts int, sign int64) {
	found := make([]extremeOf, blocks)
	for k := range dst {
		ws.inParts(parts, blocks, 1, func(_ *Workspace, first, next int) {
			for b := first; b < next; b++ {
				found[b] = extremeOf{in: in, sign: sign}
				found[b].look(v.place(k), &red, b*blockTerms, min((b+1)*blockTerms, n))
			}
		})
		e := extremeOf{in: in, sign: sign}
		// In the order of the elements, so that of equal ones the first wins, as it does without blocks.
		for _, f := range found {
			e.offer(f.best, f.at, f.where)
		}
		dst[k] = int64(e.where)
	}
}

// compared is what an element takes to be compared with the largest one so far, in picoseconds.
const compared = 3000

// extremeOf is the largest product of sign and an element so far.
type extremeOf struct {
	in    *Array
	sign  int64
	any   bool
	best  float64
	at    int // offset
	where int // position
}

// look looks at elements lo to hi of those that are reduced, of which the first has the offset at.
func (e *extremeOf) look(at int, red *reducedDims, lo, hi int) {
	if d, ok := e.in.data.([]float32); ok && len(red.strides) == 1 {
		e.lookAtFloats(d, at, red.strides[0], lo, hi)
		return
	}
	w := walk(at, red.shape, red.strides, lo)
	// Nothing is larger than a NaN: behind the first one, no element can change the result.
	for i := lo; i < hi && e.best == e.best; i++ {
		e.offer(float64(e.sign)*elementAt(e.in, w.at), w.at, i)
		w.advance(1)
	}
}

// lookAtFloats is look for elements that are step apart.
func (e *extremeOf) lookAtFloats(d []float32, at, step, lo, hi int) {
	if step == 1 && lo < hi {
		// First how large, by vectors, and then where: that is quicker, without NaN and infinities.
		row := d[at+lo : at+hi]
		if v, high, finite := kernel.Extremes(row); finite {
			if e.sign > 0 {
				v = high
			}
			i := slices.Index(row, v)
			e.offer(float64(e.sign)*float64(v), at+lo+i, lo+i)
			return
		}
	}
	sign := float32(e.sign)
	at += lo * step
	for i := lo; i < hi && e.best == e.best; i++ {
		if x := float64(sign * d[at]); !e.any || !(x <= e.best) {
			e.offer(x, at, i)
		}
		at += step
	}
}

// offer takes an element if it is larger. The first NaN is larger than any number.
func (e *extremeOf) offer(x float64, at, where int) {
	switch {
	case !e.any, x > e.best, x != x && e.best == e.best:
	// Integers of more than 53 bits may be equal as floats, and are then compared as integers.
	case x == e.best && (e.in.dtype == Int64 || e.in.dtype == Uint64) && compareInts(e.in, at, e.at)*int(e.sign) > 0:
	default:
		return
	}
	e.any, e.best, e.at, e.where = true, x, at, where
}

// compareInts compares two integers of 64 bits by their offsets.
func compareInts(a *Array, i, j int) int {
	if d, ok := a.data.([]uint64); ok {
		return cmp.Compare(d[i], d[j])
	}
	d := dataOf[int64](a)
	return cmp.Compare(d[i], d[j])
}
