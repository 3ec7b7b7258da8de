//go:build !amd64

package kernel

func (s kernelSet) dotLanes(t *laneTile) { dotLanesGo(t) }

func (s kernelSet) transpose8(dst []float32, stride int, src []float32, srcStride, cols int) int {
	return 0
}

// packFour does nothing here.
func (s kernelSet) packFour(dst, src []float64, srcStride, cols, width int) int { return 0 }
