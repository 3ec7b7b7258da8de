package kernel

import "golang.org/x/sys/cpu"

// supportedSets returns the sets that this processor can execute, the best last.
func supportedSets() []kernelSet {
	switch {
	case !cpu.X86.HasAVX2 || !cpu.X86.HasFMA:
		return []kernelSet{goSet, blasSet}
	case !cpu.X86.HasAVX512F:
		return []kernelSet{blasSet, goSet, avx2Set}
	}
	return []kernelSet{blasSet, goSet, avx2Set, avx512Set}
}

//go:noescape
func tileAVX512(t *tile)

//go:noescape
func tileAVX2(t *tile)

// tile runs a kernel. It calls directly, so that t can stay on the stack.
func (s kernelSet) tile(t *tile) {
	switch s {
	case avx512Set:
		tileAVX512(t)
	case avx2Set:
		tileAVX2(t)
	default:
		s.tileGo(t)
	}
}

//go:noescape
func dotLanesAVX512(t *laneTile)

//go:noescape
func dotLanesAVX2(t *laneTile)

// dotLanes runs a kernel of narrow products, for at most laneRows rows.
func (s kernelSet) dotLanes(t *laneTile) {
	switch s {
	case avx512Set:
		dotLanesAVX512(t)
	case avx2Set:
		dotLanesAVX2(t)
	default:
		dotLanesGo(t)
	}
}

// squares returns how many squares of n×n elements the assembly transposes: of n rows of src with
// the given number of columns, to n columns of dst.
func squares[T float32 | float64](s kernelSet, n int, dst []T, stride int, src []T, srcStride, cols int) int {
	count := cols / n
	if s < avx2Set || count == 0 {
		return 0
	}
	_, _ = dst[(n*count-1)*stride+n-1], src[(n-1)*srcStride+n*count-1]
	return count
}

//go:noescape
func transpose8AVX2(dst *float32, dstRow uintptr, src *float32, srcRow uintptr, n int)

// transpose8 sets 8 columns of dst to rows of src. It returns how many columns of src it has done.
func (s kernelSet) transpose8(dst []float32, stride int, src []float32, srcStride, cols int) int {
	n := squares(s, 8, dst, stride, src, srcStride, cols)
	if n > 0 {
		transpose8AVX2(&dst[0], uintptr(stride)*4, &src[0], uintptr(srcStride)*4, n)
	}
	return 8 * n
}

//go:noescape
func transpose4AVX2(dst *float64, dstRow uintptr, src *float64, srcRow uintptr, n int)

// transpose4 sets 4 columns of dst to rows of src. It returns how many columns of src it has done.
func (s kernelSet) transpose4(dst []float64, stride int, src []float64, srcStride, cols int) int {
	n := squares(s, 4, dst, stride, src, srcStride, cols)
	if n > 0 {
		transpose4AVX2(&dst[0], uintptr(stride)*8, &src[0], uintptr(srcStride)*8, n)
	}
	return 4 * n
}
