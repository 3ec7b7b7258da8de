package component

import "slices"

// Express returns a convolution if the offsets are a grid and the rows are evenly spaced, and otherwise
// what the filters make of the patches at all times and heights.
func (c *timeHeightConvolutionComponent) Express(f *Formula, a Operands) Term {
	pre, ok := a.Pre.(*offsetRows)
	if !ok || !pre.fits(len(c.times), f.rows(a.X), a.Rows) {
		return f.misfit(c)
	}
	if y, ok := c.convolve(f, a, pre); ok {
		return y
	}
	var patches []Term
	at := Term(0)
	for k, o := range c.offsets {
		if t := slices.Index(c.times, o[0]); k == 0 || o[0] != c.offsets[k-1][0] {
			at = f.Reshape(f.Take(a.X, 0, pre.offset(t)), a.Rows, c.heightIn, c.filtersIn)
		}
		heights := make([]int32, c.heightOut)
		for h := range heights {
			heights[h] = int32(h*c.heightSubsample) + o[1]
			if heights[h] < 0 || int(heights[h]) >= c.heightIn {
				heights[h] = -1
			}
		}
		patches = append(patches, f.Take(at, 1, heights))
	}
	return f.Reshape(f.Affine(f.Concat(2, patches...), c.elements(), c.bias), a.Rows, c.OutputDim())
}

// convolve returns the output as a convolution. It reports false if it is none.
func (c *timeHeightConvolutionComponent) convolve(f *Formula, a Operands, pre *offsetRows) (Term, bool) {
	heights, dh, ok := c.grid()
	if !ok {
		return 0, false
	}
	first, step, dt, ok := pre.spacing()
	if !ok {
		return 0, false
	}
	w := Window{Size: [2]int{len(c.times), heights}, Stride: [2]int{step, c.heightSubsample}, Dilation: [2]int{dt, dh}}
	x := f.Reshape(a.X, f.rows(a.X), c.heightIn, c.filtersIn)
	// What lies in the window of the first and the last place: zeros are put around where that is more
	// than there is, and the rest is cut off.
	for axis, from := range []int{first, int(c.offsets[0][1])} {
		size, places := f.Dims(x)[axis], []int{a.Rows, c.heightOut}[axis]
		last := from + (w.Size[axis]-1)*w.Dilation[axis] + (places-1)*w.Stride[axis]
		w.Before[axis], w.After[axis] = max(-from, 0), max(last-size+1, 0)
		begin, end := max(from, 0), min(last+1, size)
		if begin >= end {
			return 0, false
		}
		x = f.Slice(x, axis, begin, end-begin)
	}
	y := f.Convolve(f.Transpose(x, 2, 0, 1), w, c.elements(), c.bias)
	return f.Reshape(f.Transpose(y, 1, 2, 0), a.Rows, c.OutputDim()), true
}

// grid reports whether all times have the same heights, evenly spaced, and returns their number and
// distance.
func (c *timeHeightConvolutionComponent) grid() (heights, step int, ok bool) {
	n := len(c.offsets) / len(c.times)
	step = 1
	if n > 1 {
		step = int(c.offsets[1][1] - c.offsets[0][1])
	}
	for k, o := range c.offsets {
		if n*len(c.times) != len(c.offsets) || o[0] != c.times[k/n] || int(o[1]) != int(c.offsets[0][1])+k%n*step {
			return 0, 0, false
		}
	}
	return n, step, step > 0
}

// spacing reports whether output row i has at offset k the row first + i*step + k*apart, or none where
// there is no such row.
func (p *offsetRows) spacing() (first, step, apart int, ok bool) {
	outputs := len(p.rows) / max(p.offsets, 1)
	step, apart = 1, 1
	at := func(i, k int) int { return int(p.rows[i*p.offsets+k]) }
	// Two neighbors that are there tell the distance, and one row where it all begins.
	i0, k0, found := 0, 0, false
	for i := range outputs {
		for k := range p.offsets {
			if at(i, k) < 0 {
				continue
			}
			if !found {
				i0, k0, found = i, k, true
			}
			if i > 0 && at(i-1, k) >= 0 {
				step = at(i, k) - at(i-1, k)
			}
			if k > 0 && at(i, k-1) >= 0 {
				apart = at(i, k) - at(i, k-1)
			}
		}
	}
	if !found || step <= 0 || apart <= 0 {
		return 0, 0, 0, false
	}
	first = at(i0, k0) - i0*step - k0*apart
	for i := range outputs {
		for k := range p.offsets {
			want := first + i*step + k*apart
			if want < 0 || want >= p.inRows {
				want = -1
			}
			if at(i, k) != want {
				return 0, 0, 0, false
			}
		}
	}
	return first, step, apart, true
}

// offset returns, for each output row, the input row at an offset, or -1.
func (p *offsetRows) offset(k int) []int32 {
	rows := make([]int32, 0, len(p.rows)/p.offsets)
	for i := k; i < len(p.rows); i += p.offsets {
		rows = append(rows, p.rows[i])
	}
	return rows
}
