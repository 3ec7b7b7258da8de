package array

import "github.com/nnopt/nnopt/internal/kernel"

// directLastForward computes a convolution of groups with one channel of the input, row by row of
// the result. Sums have the order of directForward.
func directLastForward[T float](c *lastConvolution) error {
	if c.byPlanes() {
		return c.planesLast()
	}
	s := c.slide
	m, end := c.groups*c.out, c.rows/s.out[2]
	down, below := s.stride[1]*s.in[2]*c.groups, s.out[2]*m // from a line of x and of y to the next
	taps := make([]kernel.Tap, 0, s.window())
	// What is left of the epilogue finds some lines in a cache.
	most := end
	if c.complete.left != nil {
		most = max(epilogueBytes/(8*below), 4)
	}
	for line := c.first / s.out[2]; line < end; {
		item, at := line/(s.out[0]*s.out[1]), line%(s.out[0]*s.out[1])
		x := Slice[T](c.x)[item*s.inputs()*c.groups:][:s.inputs()*c.groups]
		y := Slice[T](c.y)[line*below:]
		lines := min(s.alike(at), end-line, most)
		for _, r := range c.runs {
			p := kernel.Positions{Lines: lines, Each: r.n, DstLine: below, DstStep: m, XLine: down, XStep: s.stride[2] * c.groups}
			// Several positions are faster than one at a time. At the edges they are one below the other.
			if r.sharesColumns(lines) {
				p = kernel.Positions{Lines: r.n, Each: lines, DstLine: p.DstStep, DstStep: p.DstLine, XLine: p.XStep, XStep: p.XLine}
			}
			taps = c.taps(taps[:0], at, r.first, r.lo, r.hi)
			directLastRun(c, y[r.first*m:], x, taps, p)
		}
		c.complete.run(line*below, lines*below)
		line += lines
	}
	return nil
}

// sharesColumns reports whether positions of a run are computed with those of the next lines.
func (r *positionRun) sharesColumns(lines int) bool { return r.n < 4 && r.n < lines }

// alike returns how many lines of the result from one on have all elements of the window in the input, but
// for columns, or 1.
func (s *slide) alike(line int) int {
	first, last := s.rangeOf(1, 0), s.rangeOf(1, s.size[1]-1)
	if s.out[0] > 1 || s.size[0] > 1 || line < max(first.lo, last.lo) {
		return 1
	}
	return max(min(first.hi, last.hi)-line, 1)
}

// taps appends the elements of the window that are in the input at a position: elements lo to hi of
// the last dimension.
func (c *lastConvolution) taps(list []kernel.Tap, line, k, lo, hi int) []kernel.Tap {
	s, m := c.slide, c.groups*c.out
	s.rows(line, func(in, w int) {
		for e := lo; e < hi; e++ {
			at := in*s.in[2] + k*s.stride[2] - s.before[2] + e*s.dilation[2]
			list = append(list, kernel.Tap{X: at * c.groups, W: (w + e) * m})
		}
	})
	return list
}

// directLastRun sets positions of y to the sums over the taps, which are those of the first. For float32s the input
// has a channel for each of the result.
func directLastRun[T float](c *lastConvolution, y, x []T, taps []kernel.Tap, p kernel.Positions) {
	m := c.groups * c.out
	w := Slice[T](c.w)
	if y, ok := any(y).([]float32); ok {
		kernel.Depthwise(y, any(x).([]float32), any(w).([]float32), taps, p, m, c.complete.steps.Bias, c.complete.steps.ReLU)
		return
	}
	for k := range p.Lines * p.Each {
		line, at := k/p.Each, k%p.Each
		row, x := y[line*p.DstLine+at*p.DstStep:][:m], x[line*p.XLine+at*p.XStep:]
		for i := range row {
			sum := T(0)
			for _, t := range taps {
				sum += T(x[t.X+i/c.out] * w[t.W+i])
			}
			row[i] = sum
		}
	}
}

// leastChannels fill the vectors of the kernel. Vectors of fewer channels are of positions.
const leastChannels = 8

// byPlanes reports whether sums of all positions of a channel are computed together.
func (c *lastConvolution) byPlanes() bool {
	return c.groups*c.out < leastChannels && byPlanes(c.w)
}

// byKernel reports whether the kernel of sums computes all of it.
func (c *lastConvolution) byKernel() bool {
	return directLast(c.in, c.out) && c.x.dtype == Float32 && !c.byPlanes()
}

// repeatChannels makes the input one that has as many channels as the result.
func (c *lastConvolution) repeatChannels() error {
	n, t, v, d := c.x.Len(), &c.copies[2], &c.some[0], &c.some[1]
	if err := c.ws.New(t, Float32, n*c.out); err != nil {
		return err
	}
	if !c.x.ReshapeTo(v, n, 1) || !t.ReshapeTo(d, n, c.out) {
		panic("array: an input that is not contiguous")
	}
	c.ws.Copy(d, v)
	c.x, c.groups, c.out = t, c.groups*c.out, 1
	return nil
}
