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

// dTileAVX2 adds alpha·a·b to a tile of c. a and b are packed.
//
//go:noescape
func dTileAVX2(a, b *float64, k int, c *float64, stride uintptr, alpha float64)

//go:noescape
func dTileAVX512(a, b *float64, k int, c *float64, stride uintptr, alpha float64)

// dTile adds alpha·a·b to a whole tile of c.
func (s kernelSet) dTile(alpha float64, a, b []float64, depth int, c []float64, stride int) {
	s.checkTile(a, b, depth, c, stride)
	switch s {
	case avx512Set:
		dTileAVX512(&a[0], &b[0], depth, &c[0], uintptr(8*stride), alpha)
	case avx2Set:
		dTileAVX2(&a[0], &b[0], depth, &c[0], uintptr(8*stride), alpha)
	default:
		s.dTileGo(alpha, a, b, depth, c, stride)
	}
}
