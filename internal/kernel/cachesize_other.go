//go:build !amd64

package kernel

// secondCache returns 0: the size of the second-level cache is not known.
func secondCache() int { return 0 }
