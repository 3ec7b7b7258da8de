package array

import "github.com/nnopt/nnopt/internal/kernel"

// The three products of package array's convolution for groups with one channel of the input, row by
// row of the result. Each sum takes the elements of the window in order.

// directRowsOf calls f for each row of the result that a channel of the input has a part in: with
// the row of the input, the row of the result, and the row of the window. Channels of the result are
// independent in a product forward or of the weights, and groups in one backward: several threads
// compute some of them at a time if that is worth it. A result that is to be cleared is so channel by
// channel: large memory that is touched for the first time takes longer than the product.
func directRowsOf[T float](c *convolution, unit int, cleared bool, f func(x, y, w []T)) {
	s := c.slide
	xs, ys, ws := Slice[T](c.x), Slice[T](c.y), Slice[T](c.w)
	lines, size := s.out[0]*s.out[1], s.window()
	c.ws.pieces(c.y.Len()*size*multipliedDirectly, c.groups*c.out, unit, func(_ *Workspace, first, next int) {
		for item := range c.x.shape[0] {
			for channel := first; channel < next; channel++ { // of the result
				plane := xs[c.inputAt(item, channel/c.out):][:s.inputs()]
				window := ws[channel*size:][:size]
				result := ys[(item*c.groups*c.out+channel)*c.columns:][:c.columns]
				if cleared {
					clear(result)
				}
				for line := range lines {
					y := result[line*s.out[2]:][:s.out[2]]
					s.rows(line, func(in, k int) { f(plane[in*s.in[2]:][:s.in[2]], y, window[k:][:s.size[2]]) })
				}
			}
		}
	})
}

func directForward[T float](c *convolution) {
	s := c.slide
	directRowsOf(c, 1, true, func(x, y, w []T) {
		for k, v := range w {
			r := s.ranges[k]
			if r.lo >= r.hi {
				continue
			}
			part := y[r.lo:r.hi]
			at, step := s.column(k, r.lo)
			if step == 1 {
				addFused(part, v, x[at:][:len(part)])
				continue
			}
			var buf [blockSize]T
			for len(part) > 0 {
				some := buf[:min(len(part), len(buf))]
				for i := range some {
					some[i] = x[at]
					at += step
				}
				addFused(part[:len(some)], v, some)
				part = part[len(some):]
			}
		}
	})
}

// addFused adds v·y to x; a float32 is rounded once, as in products of matrices.
func addFused[T float](x []T, v T, y []T) {
	if x, ok := any(x).([]float32); ok {
		kernel.FMAVec(x, float32(v), any(y).([]float32))
		return
	}
	addScaled(x, v, y)
}

func directBackward[T float](c *convolution) {
	s := c.slide
	directRowsOf(c, c.out, false, func(x, y, w []T) {
		for k, v := range w {
			r := s.ranges[k]
			if r.lo >= r.hi {
				continue
			}
			part := y[r.lo:r.hi]
			at, step := s.column(k, r.lo)
			if step == 1 {
				addScaled(x[at:][:len(part)], v, part)
				continue
			}
			for _, g := range part {
				x[at] += T(v * g)
				at += step
			}
		}
	})
}

func directWeights[T float](c *convolution) {
	s := c.slide
	directRowsOf(c, 1, false, func(x, y, w []T) {
		for k := range w {
			r := s.ranges[k]
			if r.lo >= r.hi {
				continue
			}
			// In double precision: a weight sums up whole rows.
			at, sum := r.lo*s.stride[2]-s.before[2]+k*s.dilation[2], 0.0
			for _, g := range y[r.lo:r.hi] {
				sum += float64(float64(g) * float64(x[at]))
				at += s.stride[2]
			}
			w[k] += T(sum)
		}
	})
}
