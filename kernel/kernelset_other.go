//go:build !amd64 && !arm64

package kernel

// supportedSets returns the sets that this processor can execute, the best last.
func supportedSets() []kernelSet { return []kernelSet{goSet, blasSet} }

func (s kernelSet) tile(t *tile) { s.tileGo(t) }

func (s kernelSet) chains(x0, x1 *float32, xStep uintptr, w *float32, cols, k int, sums *chainSums) {
	chainsGo(x0, x1, xStep, w, cols, k, sums)
}
