package array

const (
	// fewChannels is up to how many channels an image is interleaved by channels: a line of a cache is
	// written by all of them while it is in the first-level cache.
	fewChannels = 16
	// interleavedBytes is what is written of an image before the next pixels.
	interleavedBytes = 16 << 10
)

// interleave copies x to dst, which is contiguous, if x is images of few channels one after the
// other, seen with channels last. It reports false if not.
func interleave(dst, x *Array) bool {
	var shape, steps [MaxDims]int
	k := x.joined(&shape, &steps)
	images, step := 1, 0
	if k == 3 {
		images, step = shape[0], steps[0]
		copy(shape[:], shape[1:])
		copy(steps[:], steps[1:])
		k = 2
	}
	if k != 2 || steps[0] != 1 || shape[1] > fewChannels || x.dtype != Float32 {
		return false
	}
	pixels, channels := shape[0], shape[1]
	to, from := Slice[float32](dst), dataOf[float32](x)[x.offset:]
	block := interleavedBytes / (4 * channels)
	for i := range images {
		for first := 0; first < pixels; first += block {
			n := min(block, pixels-first)
			out := to[(i*pixels+first)*channels:][:n*channels]
			plane := func(c int) []float32 { return from[i*step+c*steps[1]+first:][:n] }
			c := 0
			for ; c+3 <= channels; c += 3 { // those of a picture, for example
				three(out[c:], channels, plane(c), plane(c+1), plane(c+2))
			}
			for ; c < channels; c++ {
				at := c
				for _, v := range plane(c) {
					out[at] = v
					at += channels
				}
			}
		}
	}
	return true
}

// three copies three vectors to rows that are step elements apart.
func three(out []float32, step int, a, b, c []float32) {
	b, c = b[:len(a)], c[:len(a)]
	for i, v := range a {
		row := out[i*step:][:3]
		row[0], row[1], row[2] = v, b[i], c[i]
	}
}
