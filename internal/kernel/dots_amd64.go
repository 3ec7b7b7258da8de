package kernel

// haveFourDots reports whether fourDotsBlocks may be called: it needs AVX.
func haveFourDots() bool { return bestSet >= avx2Set }

// fourDotsBlocks continues the sums of products of four vectors and x, for a number of blocks.
//
//go:noescape
func fourDotsBlocks(a, b, c, d, x *float32, blocks int, sums *[4]float32)
