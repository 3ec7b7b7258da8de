//go:build !amd64

package kernel

// halvesVectors reports false: there is no AVX-512.
func halvesVectors() bool { return false }

// secondCache returns 0: the size of the second-level cache is not known.
func secondCache() int { return 0 }

// convertsHalves reports false: F16C is of other processors.
func convertsHalves() bool { return false }
