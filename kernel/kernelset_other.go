//go:build !amd64 && !arm64

package kernel

// supportedSets returns the sets that this processor can execute, the best last.
func supportedSets() []kernelSet { return []kernelSet{goSet, blasSet} }

func (s kernelSet) tile(t *tile)         { s.tileGo(t) }
func (s kernelSet) dotLanes(t *laneTile) { dotLanesGo(t) }

func (s kernelSet) transpose8(dst []float32, stride int, src []float32, srcStride, cols, ahead int) int {
	return 0
}

func (s kernelSet) transpose4(dst []float64, stride int, src []float64, srcStride, cols int) int {
	return 0
}

func stripes[T float32 | float64](s kernelSet, dst []T, apart int, src []T, at, stride, rows, n, width int) bool {
	return false
}

func (s kernelSet) dTile(alpha float64, a, b []float64, depth int, c []float64, stride int) {
	s.checkTile(a, b, depth, c, stride)
	s.dTileGo(alpha, a, b, depth, c, stride)
}
