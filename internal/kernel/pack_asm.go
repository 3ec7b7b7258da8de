package kernel

import "unsafe"

// squares returns how many squares of n×n elements the assembly transposes: of n rows of src with
// the given number of columns, to n columns of dst.
func squares[T float32 | float64](s kernelSet, n int, dst []T, stride int, src []T, srcStride, cols int) int {
	count := cols / n
	if !s.assembly() || count == 0 {
		return 0
	}
	_, _ = dst[(n*count-1)*stride+n-1], src[(n-1)*srcStride+n*count-1]
	return count
}

// transpose8 sets 8 columns of dst to rows of src. It returns how many columns of src it has done.
// What comes next is this many elements ahead of src, and it may be outside.
func (s kernelSet) transpose8(dst []float32, stride int, src []float32, srcStride, cols, ahead int) int {
	n := squares(s, 8, dst, stride, src, srcStride, cols)
	if n > 0 {
		transpose8Blocks(&dst[0], uintptr(stride)*4, &src[0], uintptr(srcStride)*4, n, uintptr(ahead)*4)
	}
	return 8 * n
}

// transpose4 sets 4 columns of dst to rows of src. It returns how many columns of src it has done.
func (s kernelSet) transpose4(dst []float64, stride int, src []float64, srcStride, cols int) int {
	n := squares(s, 4, dst, stride, src, srcStride, cols)
	if n > 0 {
		transpose4Blocks(&dst[0], uintptr(stride)*8, &src[0], uintptr(srcStride)*8, n)
	}
	return 4 * n
}

// stripes copies n stripes of width columns from some rows of src, the first of which begins at at,
// with the given stride. In dst a stripe begins apart elements after the one before. It reports
// false if the assembly can't.
func stripes[T float32 | float64](s kernelSet, dst []T, apart int, src []T, at, stride, rows, n, width int) bool {
	const unit = 32
	size := int(unsafe.Sizeof(*new(T)))
	if !s.assembly() || width*size%unit != 0 {
		return false
	}
	if rows == 0 || n == 0 {
		return true
	}
	last := at + (rows-1)*stride
	_, _, _, _ = src[at], src[last], src[at+n*width-1], src[last+n*width-1]
	_ = dst[(n-1)*apart+rows*width-1]
	copyStripes(unsafe.Pointer(&dst[0]), uintptr(apart*size), unsafe.Pointer(&src[at]), uintptr(stride*size), rows, n, width*size/unit)
	return true
}
