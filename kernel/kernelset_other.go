//go:build !amd64 && !arm64

package kernel

// supportedSets returns the sets that this processor can execute, the best last.
func supportedSets() []kernelSet { return []kernelSet{goSet, blasSet} }
