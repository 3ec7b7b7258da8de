package kernel

// dotBlock is the number of elements that fourDots takes at a time: a line of a cache.
const dotBlock = cacheLine

// FourDots returns the scalar products of four vectors and x. The terms of each are added one after the
// other. It reads long vectors ahead of their use, each from its place.
func FourDots(a, b, c, d, x []float32) (sums [4]float32) {
	n := len(x)
	a, b, c, d = head(a, n), head(b, n), head(c, n), head(d, n)
	done := 0
	if haveFourDots() && n >= dotBlock {
		done = n &^ (dotBlock - 1)
		fourDotsBlocks(&a[0], &b[0], &c[0], &d[0], &x[0], done/dotBlock, &sums)
	}
	// Sums go on in order. So these are the bits of all of them in Go.
	x = x[done:]
	a, b, c, d = a[done:][:len(x)], b[done:][:len(x)], c[done:][:len(x)], d[done:][:len(x)]
	for i, v := range x {
		sums[0] += float32(a[i] * v)
		sums[1] += float32(b[i] * v)
		sums[2] += float32(c[i] * v)
		sums[3] += float32(d[i] * v)
	}
	return sums
}
