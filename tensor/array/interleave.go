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
func (ws *Workspace) interleave(dst, x *Array) bool {
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
	blocks := (pixels + block - 1) / block // of an image
	j := interleaving{to, from, pixels, channels, step, steps[1], block, blocks}
	if parts := ws.partsOf(2*moved*4*x.Len(), images*blocks, 1); parts > 1 {
		j.shared(ws, parts, images*blocks)
	} else {
		j.run(0, images*blocks)
	}
	return true
}

// interleaving is what interleave does.
type interleaving struct {
	to, from         []float32
	pixels, channels int
	image, channel   int // distances in from
	block, blocks    int // elements of a block, and blocks of an image
}

// shared is run by several threads, for a copy that may be on the heap.
func (j interleaving) shared(ws *Workspace, parts, blocks int) {
	ws.inParts(parts, blocks, 1, func(_ *Workspace, first, next int) { j.run(first, next) })
}

// run interleaves some blocks.
func (j *interleaving) run(first, next int) {
	for b := first; b < next; b++ {
		i, at := b/j.blocks, b%j.blocks*j.block
		n := min(j.block, j.pixels-at)
		interleaveBlock(j.to[(i*j.pixels+at)*j.channels:][:n*j.channels], j.from[i*j.image+at:], j.channel, j.channels, n)
	}
}

// interleaveBlock interleaves n elements of vectors that begin step elements apart.
func interleaveBlock(dst, from []float32, step, vectors, n int) {
	c := 0
	for ; c+3 <= vectors; c += 3 { // the channels of a picture, for example
		x, y, z := from[c*step:][:n], from[(c+1)*step:][:n], from[(c+2)*step:][:n]
		for i, v := range x {
			row := dst[i*vectors+c:][:3]
			row[0], row[1], row[2] = v, y[i], z[i]
		}
	}
	for ; c < vectors; c++ {
		at := c
		for _, v := range from[c*step:][:n] {
			dst[at] = v
			at += vectors
		}
	}
}
