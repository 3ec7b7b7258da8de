package array

import "github.com/nnopt/nnopt/kernel"

// A line is the positions of a result along its last dimension. The patches of a line that belong to
// one line of the window are runs of one line of the input, which begin a stride apart and overlap: a
// matrix that needs no gathering. So a line of the result is the sum of a few products, one for each
// line of the window, which continue each other's sums.
const (
	// Each line reads all weights, so lines must be long, or the weights stay in the second-level
	// cache. Below this, gathering patches of several lines takes less time.
	longLine   = 24
	shortLine  = 12
	lineBytes  = 256 << 10 // of weights
	chunkBytes = 128 << 10 // of padded input

	// Weights that take more than manyBytes are not in the second-level cache when the next line needs
	// them. Then some of their columns are multiplied with all lines of a chunk before the others, and a
	// chunk may be larger.
	manyBytes      = 1 << 20
	manyChunkBytes = 512 << 10
	blockCols      = 64 // a panel of products, or several
)

// blockOfColumns returns how many columns of the weights, from one on, are multiplied with all lines of
// a chunk. The last block has what is left, and so is not narrow, which would change bits.
func blockOfColumns(out, terms, from int) int {
	n := max(manyBytes/(4*terms*blockCols), 1) * blockCols
	if left := out - from; 4*terms*out <= manyBytes || left < 2*n {
		return left
	}
	return n
}

// inLines reports whether products of lines take less time than those of patches, and have their bits.
func (c *lastConvolution) inLines() bool {
	s := c.slide
	if c.prepared == nil || c.groups != 1 || c.x.dtype != Float32 || s.size[2] > 1 && s.dilation[2] != 1 || !kernel.Divisible(c.out, c.terms) {
		return false
	}
	n := s.out[2]
	if c.even() {
		n *= s.out[1]
	}
	return n >= longLine || n >= shortLine && 4*c.terms*c.out <= lineBytes
}

// reach returns how many elements of the input and its padding belong to n positions of dimension d.
func (s *slide) reach(d, n int) int { return (n-1)*s.stride[d] + (s.size[d]-1)*s.dilation[d] + 1 }

// inside reports whether no padding belongs to the result, and nothing is cut off.
func (s *slide) inside() bool {
	for d := range MaxSpatial {
		if s.before[d] != 0 || s.reach(d, s.out[d]) > s.in[d] {
			return false
		}
	}
	return true
}

// even reports whether lines follow each other in the input like positions in a line.
func (c *lastConvolution) even() bool {
	s := c.slide
	width := s.reach(2, s.out[2])
	if s.inside() {
		width = s.in[2]
	}
	return width*s.stride[1] == s.out[2]*s.stride[2]
}

// lines is gathered for lines.
func (c *lastConvolution) lines() error {
	s := c.slide
	inside := s.inside()
	width := s.reach(2, s.out[2]) * c.in // of a line of the padded input
	// A chunk is some lines of the result. What they read is padded in a cache.
	chunk := s.out[1]
	if c.complete.left != nil {
		chunk = min(chunk, max(epilogueBytes/(4*s.out[2]*c.out), 1))
	}
	memory := new(Array)
	if inside {
		width = s.in[2] * c.in
	} else {
		bytes := chunkBytes
		if 4*c.terms*c.out > manyBytes {
			bytes = manyChunkBytes
		}
		chunk = min(chunk, max((bytes/(4*width*s.size[0])-s.reach(1, 1))/s.stride[1], 4))
		if err := c.ws.New(memory, Float32, s.size[0]*s.reach(1, chunk)*width); err != nil {
			return err
		}
		defer c.ws.Release(memory)
	}
	x := Slice[float32](c.x)
	factors := c.prepared.lines()
	for row := 0; row < c.rows; {
		i, j := row/s.out[2]/s.out[1]%s.out[0], row/s.out[2]%s.out[1]
		item := row / s.positions()
		n := min(chunk, s.out[1]-j)
		plane := s.in[1] * width // the distance of the planes of the window
		from := x
		if inside {
			from = x[((item*s.in[0]+i*s.stride[0])*s.in[1]+j*s.stride[1])*width:]
			plane *= s.dilation[0]
		} else {
			from = Slice[float32](memory)
			plane = s.reach(1, n) * width
			c.padLines(from, x, item, i, j, n, width)
		}
		c.multiplyLines(factors, from, plane, width, row, n)
		c.complete.run(row*c.out, n*s.out[2]*c.out)
		row += n * s.out[2]
	}
	return nil
}

// padLines copies the lines of the input that belong to n lines of the result, with their padding.
func (c *lastConvolution) padLines(dst, x []float32, item, i, j, n, width int) {
	s := c.slide
	left := min(max(s.before[2], 0)*c.in, width)
	skip := max(-s.before[2], 0)
	count := min(max(s.in[2]-skip, 0)*c.in, width-left)
	for a := range s.size[0] {
		y, ok := s.place(0, i, a)
		for r := range s.reach(1, n) {
			line := dst[:width]
			dst = dst[width:]
			z := j*s.stride[1] - s.before[1] + r
			if !ok || z < 0 || z >= s.in[1] || count <= 0 {
				clear(line)
				continue
			}
			clear(line[:left])
			copy(line[left:], x[(((item*s.in[0]+y)*s.in[1]+z)*s.in[2]+skip)*c.in:][:count])
			clear(line[left+count:])
		}
	}
}

// multiplyLines sets n lines of the result, from a position on, to their products. The lines of the
// input that belong to them begin at from; lines are width elements apart, and planes of the window plane.
func (c *lastConvolution) multiplyLines(factors []*Factor, from []float32, plane, width, first, n int) {
	s := c.slide
	count, rows := n, s.out[2]
	if c.even() {
		count, rows = 1, n*rows
	}
	run, step := s.size[2]*c.in, s.stride[2]*c.in
	result := Slice[float32](c.y)
	lines := s.size[0] * s.size[1]
	for at := 0; at < c.out; {
		n := blockOfColumns(c.out, c.terms, at)
		segments := c.ws.segments[:0]
		for k, f := range factors[:lines] {
			segments = append(segments, kernel.Segment{W: &f.weights, Continue: k > 0})
		}
		c.ws.segments = segments
		y := kernel.Matrix{Rows: rows, Cols: n, Stride: c.out}
		for line := range count {
			for k := range segments {
				x := k/s.size[1]*plane + (line*s.stride[1]+k%s.size[1]*s.dilation[1])*width
				segments[k].X = kernel.Matrix{Rows: rows, Cols: run, Stride: step, Data: from[x:][:(rows-1)*step+run]}
			}
			row := first + line*rows
			y.Data = result[row*c.out+at:][:(rows-1)*c.out+n]
			kernel.MulSegments(segments, c.complete.of(row, rows, at, n), y)
		}
		clear(segments)
		at, factors = at+n, factors[lines:]
	}
}
