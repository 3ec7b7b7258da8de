package kernel

// supportedSets returns the sets that this processor can execute, the best last.
func supportedSets() []kernelSet { return []kernelSet{blasSet, goSet, neonSet} }

// chains continues the sums of two rows.
func (s kernelSet) chains(x0, x1 *float32, xStep uintptr, w *float32, cols, k int, sums *chainSums) {
	switch {
	case s != neonSet:
		chainsGo(x0, x1, xStep, w, cols, k, sums)
	case cols == 8:
		chains8NEON(x0, x1, xStep, w, k, sums)
	default:
		chains16NEON(x0, x1, xStep, w, k, sums)
	}
}

//go:noescape
func chains8NEON(x0, x1 *float32, xStep uintptr, w *float32, k int, sums *chainSums)

//go:noescape
func chains16NEON(x0, x1 *float32, xStep uintptr, w *float32, k int, sums *chainSums)
