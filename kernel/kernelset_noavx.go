//go:build !amd64

package kernel

func (s kernelSet) tile(t *tile)         { s.tileGo(t) }
func (s kernelSet) dotLanes(t *laneTile) { dotLanesGo(t) }

func (s kernelSet) transpose8(dst []float32, stride int, src []float32, srcStride, cols int) int {
	return 0
}

func (s kernelSet) transpose4(dst []float64, stride int, src []float64, srcStride, cols int) int {
	return 0
}
