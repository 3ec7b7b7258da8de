// Package interleave copies images of few channels, which lie one after the other, to pixels of which
// the channels lie side by side.
package interleave

import "github.com/nnopt/nnopt/internal/kernel"

const (
	// fewChannels is up to how many channels an image is interleaved by channels: a line of a cache is
	// written by all of them while it is in the first-level cache.
	fewChannels = 16
	// interleavedBytes is what is written of an image before the next pixels.
	interleavedBytes = 16 << 10
)

// Images are where the elements of images are.
type Images struct {
	Blocks           int // of all images, into which the work may be divided
	pixels, channels int
	image, channel   int // distances in what is read
	block, blocks    int // elements of a block, and blocks of an image
}

// Of returns the images of few channels that dimensions are, seen with channels last: (images,) pixels and
// channels, with the distances of their elements. It reports false if they are something else.
func Of(shape, steps []int) (m Images, ok bool) {
	images := 1
	if len(shape) == 3 {
		images, m.image = shape[0], steps[0]
		shape, steps = shape[1:], steps[1:]
	}
	if len(shape) != 2 || steps[0] != 1 || shape[1] > fewChannels {
		return m, false
	}
	m.pixels, m.channels, m.channel = shape[0], shape[1], steps[1]
	m.block = interleavedBytes / (4 * m.channels)
	m.blocks = (m.pixels + m.block - 1) / m.block
	m.Blocks = images * m.blocks
	return m, true
}

// Run interleaves blocks first to next.
func (m *Images) Run(to, from []float32, first, next int) {
	for b := first; b < next; b++ {
		i, at := b/m.blocks, b%m.blocks*m.block
		n := min(m.block, m.pixels-at)
		Block(to[(i*m.pixels+at)*m.channels:][:n*m.channels], from[i*m.image+at:], m.channel, m.channels, n)
	}
}

// Block interleaves n elements of vectors that begin step elements apart.
func Block[T any](dst, from []T, step, vectors, n int) {
	if x, ok := any(from).([]float32); ok && vectors == 2 {
		kernel.Interleave(any(dst).([]float32), x[:n], x[step:][:n])
		return
	} else if ok && vectors == 3 { // the channels of a picture, for example
		kernel.Interleave3(any(dst).([]float32), x[:n], x[step:][:n], x[2*step:][:n])
		return
	}
	c := 0
	for ; c+3 <= vectors; c += 3 {
		x, y, z := from[c*step:][:n], from[(c+1)*step:][:n], from[(c+2)*step:][:n]
		for i, v := range x {
			row := dst[i*vectors+c:][:3]
			row[0], row[1], row[2] = v, y[i], z[i]
		}
	}
	for ; c < vectors; c++ {
		spread(dst[c:], from[c*step:][:n], vectors)
	}
}

// spread copies x to elements that are step apart.
func spread[T any](dst, x []T, step int) {
	at := 0
	for _, v := range x {
		dst[at] = v
		at += step
	}
}
