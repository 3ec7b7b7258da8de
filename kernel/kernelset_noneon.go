//go:build !arm64

package kernel

func (s kernelSet) chains(x0, x1 *float32, xStep uintptr, w *float32, cols, k int, sums *chainSums) {
	chainsGo(x0, x1, xStep, w, cols, k, sums)
}
