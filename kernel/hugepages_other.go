//go:build !linux

package kernel

// preferHugePages does nothing here.
func preferHugePages([]float32) {}
