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

//go:noescape
func transpose8AVX2(dst *float32, dstRow uintptr, src *float32, srcRow uintptr, n int)

// transpose8 sets 8 columns of dst to rows of src. It takes 8 columns of src at a time, and returns
// how many columns it has done.
func (s kernelSet) transpose8(dst []float32, stride int, src []float32, srcStride, cols int) int {
	n := cols / 8
	if s < avx2Set || n == 0 {
		return 0
	}
	_, _ = dst[(8*n-1)*stride+7], src[7*srcStride+8*n-1]
	transpose8AVX2(&dst[0], uintptr(stride)*4, &src[0], uintptr(srcStride)*4, n)
	return 8 * n
}

//go:noescape
func packFourAVX2(dst *float64, dstStep uintptr, src *float64, srcRow uintptr, n int)

// packFour sets elements 0 to 3 of each width elements of dst to a column of 4 rows of src. It
// takes 4 columns of src at a time, and returns how many columns it has done.
func (s kernelSet) packFour(dst, src []float64, srcStride, cols, width int) int {
	n := cols / 4
	if s < avx2Set || n == 0 {
		return 0
	}
	_, _ = dst[(4*n-1)*width+3], src[3*srcStride+4*n-1]
	packFourAVX2(&dst[0], uintptr(width)*8, &src[0], uintptr(srcStride)*8, n)
	return 4 * n
}
