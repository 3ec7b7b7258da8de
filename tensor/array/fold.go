package array

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
