package array

import (
	"math"
	"unsafe"
)

// A numeric is what is computed with elements of one type.
type numeric interface {
	// Of blocks, see loop.
	run(op Opcode, dst, a, b *lane, n int)
	compare(op Opcode, dst, a, b *lane, n int)
	cast(to DType, dst, a *lane, n int)

	fold(op Opcode, total *Array, xs []*Array)                                 // see Fold
	accumulate(ws *Workspace, r Reduction, out, v *Array, reduced reducedDims) // sums and products
	extreme(ws *Workspace, r Reduction, out, v *Array, reduced reducedDims)    // Max and Min
	multiply(c, a, b *Array)                                                   // matrices
}

// numerics has none for half floats, which become float32s before something is computed with them.
var numerics = [numDTypes]numeric{
	Bool:    truths{&numbers[uint8, int64]{field[uint8](unsafe.Offsetof(lane{}.b)), truthTable(), predicateTable[uint8](), folders[uint8, int64](), extremes[uint8](0, 1)}},
	Int8:    intNumbers[int8, int64](math.MinInt8, math.MaxInt8),
	Int16:   intNumbers[int16, int64](math.MinInt16, math.MaxInt16),
	Int32:   intNumbers[int32, int64](math.MinInt32, math.MaxInt32),
	Int64:   intNumbers[int64, int64](math.MinInt64, math.MaxInt64),
	Uint8:   intNumbers[uint8, uint64](0, math.MaxUint8),
	Uint16:  intNumbers[uint16, uint64](0, math.MaxUint16),
	Uint32:  intNumbers[uint32, uint64](0, math.MaxUint32),
	Uint64:  intNumbers[uint64, uint64](0, math.MaxUint64),
	Float32: singles{numbersOf(&float32Kernels, float32Folders, float32Extremes)},
	Float64: numbersOf(&float64Kernels, float64Folders, float64Extremes),
}

// numbers are elements of type T, with sums of type A.
type numbers[T, A number] struct {
	field[T]
	kernels    *[NumOpcodes]blockFunc[T]
	predicates *[NumOpcodes]predicate[T]
	sums       []folder[T, A] // and products
	extremes   []folder[T, T]
}

func numbersOf[T, A number](kernels *[NumOpcodes]blockFunc[T], sums []folder[T, A], extremes []folder[T, T]) *numbers[T, A] {
	return &numbers[T, A]{kinds[dtypeOf[T]()].(*kindOf[T]).field, kernels, predicateTable[T](), sums, extremes}
}

func intNumbers[T, A integer](least, most T) *numbers[T, A] {
	kernels := intTable[T]()
	return numbersOf(&kernels, folders[T, A](), extremes(least, most))
}

func folders[T, A integer]() []folder[T, A] {
	return []folder[T, A]{Sum: sums[T, A](), Prod: products[T, A]()}
}

func (k *numbers[T, A]) run(op Opcode, dst, a, b *lane, n int) {
	k.kernels[op]((*k.block(dst))[:n], (*k.block(a))[:n], (*k.block(b))[:n])
}

func (k *numbers[T, A]) compare(op Opcode, dst, a, b *lane, n int) {
	k.predicates[op](dst.b[:n], (*k.block(a))[:n], (*k.block(b))[:n])
}

func (k *numbers[T, A]) cast(to DType, dst, a *lane, n int) {
	castNumbers(to, dst, (*k.block(a))[:n])
}

func (k *numbers[T, A]) fold(op Opcode, total *Array, xs []*Array) {
	foldNumbers(dataOf[T](total), k.kernels[op], xs)
}

func (k *numbers[T, A]) accumulate(ws *Workspace, r Reduction, out, v *Array, reduced reducedDims) {
	fold(ws, r, Slice[A](out), v, reduced, k.sums[r])
}

func (k *numbers[T, A]) extreme(ws *Workspace, r Reduction, out, v *Array, reduced reducedDims) {
	fold(ws, r, Slice[T](out), v, reduced, k.extremes[r])
}

// multiply is MatMul of integers, which wraps around.
func (k *numbers[T, A]) multiply(c, a, b *Array) {
	left, right, dst := dataOf[T](a), dataOf[T](b), Slice[T](c)
	fill(dst, 0)
	for i := range c.shape[0] {
		row := dst[i*c.shape[1]:][:c.shape[1]]
		for k := range a.shape[1] {
			v, at := left[a.offset+i*a.strides[0]+k*a.strides[1]], b.offset+k*b.strides[0]
			for j := range row {
				row[j] += T(v * right[at])
				at += b.strides[1]
			}
		}
	}
}

// singles are float32s. Their sums are made in float64s and rounded once: so they don't lose digits with the
// number of terms.
type singles struct{ *numbers[float32, float64] }

func (k singles) accumulate(ws *Workspace, r Reduction, out, v *Array, reduced reducedDims) {
	acc := ws.accumulators(out.Len())
	fold(ws, r, acc, v, reduced, k.sums[r])
	castBlock(Slice[float32](out), acc)
}

func (k singles) cast(to DType, dst, a *lane, n int) { castFloats(to, dst, a.f[:n]) }

// truths are bools. In memory they are the numbers 0 and 1, and are computed with as such.
type truths struct{ *numbers[uint8, int64] }

// ones returns an array of bools as these numbers.
func (a *Array) ones() *Array {
	b, data := *a, dataOf[bool](a)
	b.dtype, b.data = Uint8, unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(data))), len(data))
	return &b
}

func (k truths) accumulate(ws *Workspace, r Reduction, out, v *Array, reduced reducedDims) {
	k.numbers.accumulate(ws, r, out, v.ones(), reduced)
}

func (k truths) extreme(ws *Workspace, r Reduction, out, v *Array, reduced reducedDims) {
	k.numbers.extreme(ws, r, out.ones(), v.ones(), reduced)
}

func (truths) multiply(c, a, b *Array) {
	for i := range c.shape[0] {
		for j := range c.shape[1] {
			// "Or" of "and"s is true if the sum of products of ones and zeros is not 0.
			var sum int64
			for k := range a.shape[1] {
				sum += a.Int(i*a.shape[1]+k) * b.Int(k*b.shape[1]+j)
			}
			c.SetFloat(i*c.shape[1]+j, float64(sum))
		}
	}
}

// Fold computes op(op(start, xs[0]), xs[1]) and so on in an element type. The arrays have one
// element each; the result has as many dimensions as any of them. It reports false if an array has
// more elements, or the operation is not defined for such numbers.
func Fold(op Opcode, dtype DType, start float64, xs []*Array) (*Array, bool) {
	compute, result, ok := op.Types(dtype, dtype)
	if !ok || compute != dtype || result != dtype || dtype == Bool || op.NumArgs() != 2 && op.NumArgs() >= 0 {
		return nil, false
	}
	ndim := 0
	for _, x := range xs {
		if x.IsCSR() || x.Len() != 1 || !dtype.IsFloat() && x.dtype.IsFloat() {
			return nil, false
		}
		ndim = max(ndim, x.NDim())
	}
	var ones [MaxDims]int
	for i := range ones {
		ones[i] = 1
	}
	total := Full(dtype, start, ones[:ndim]...)
	if dtype.IsHalf() { // each result is rounded
		var sum [1]float32
		for _, x := range xs {
			sum[0] = convert[float32](total)
			foldNumbers(sum[:], float32Kernels[op], []*Array{x.Cast(dtype)})
			total.SetFloat(0, float64(sum[0]))
		}
		return total, true
	}
	numerics[dtype].fold(op, total, xs)
	return total, true
}

func foldNumbers[T number](total []T, op blockFunc[T], xs []*Array) {
	var x [1]T
	for _, a := range xs {
		x[0] = convert[T](a)
		op(total, total, x[:])
	}
}

// convert returns the only element of an array as a number.
func convert[T number](a *Array) T {
	if d, ok := a.data.([]uint64); ok {
		return T(d[a.offset])
	}
	if a.dtype.IsFloat() {
		return T(elementAt(a, a.offset))
	}
	return T(a.Int(0))
}
