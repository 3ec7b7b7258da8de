//go:build !amd64

package kernel

func haveFourDots() bool { return false }

func fourDotsBlocks(a, b, c, d, x *float32, blocks int, sums *[4]float32) { panic(errNoAssembly) }
