package component

import (
	"github.com/nnopt/nnopt/internal/lists"
	"slices"
)

// Express returns count, sum and sum of squares.
func (c *statisticsExtractionComponent) Express(f *Formula, a Operands) Term {
	sets, ok := a.sets(f)
	if !ok {
		return f.misfit(c)
	}
	counts := lists.Map(sets, func(s []int32) float32 { return float32(len(s)) })
	parts := []Term{f.Constant(counts, len(counts), 1), f.SumSets(a.X, 0, sets)}
	if c.includeVariance {
		parts = append(parts, f.SumSets(f.Binary(OpMultiply, a.X, a.X), 0, sets))
	}
	return f.Concat(1, parts...)
}

// sets returns the input rows of each output row.
func (a Operands) sets(f *Formula) ([][]int32, bool) {
	s, ok := a.Pre.(*rowSets)
	if !ok || !s.fits(f.rows(a.X), a.Rows) {
		return nil, false
	}
	sets := make([][]int32, a.Rows)
	for i := range sets {
		sets[i] = s.set(i)
	}
	return sets, true
}

// Express returns logarithms, means and standard deviations.
func (c *statisticsPoolingComponent) Express(f *Formula, a Operands) Term {
	sets, ok := a.sets(f)
	if !ok {
		return f.misfit(c)
	}
	sums := f.SumSets(a.X, 0, sets)
	count := f.Columns(sums, 0, 1)
	y := f.Binary(OpDivide, f.Columns(sums, 1, c.inputDim-1), count)
	if c.outputStddevs {
		half := (c.inputDim - 1) / 2
		mean, squares := f.Columns(y, 0, half), f.Columns(y, half, half)
		variance := f.Binary(OpSubtract, squares, f.Binary(OpMultiply, mean, mean))
		y = f.Concat(1, mean, f.Map(OpSqrt, f.Binary(OpMaximum, variance, f.Number(c.varianceFloor))))
	}
	if c.logCounts == 0 {
		return y
	}
	log := f.Map(OpLog, count)
	return f.Concat(1, append(slices.Repeat([]Term{log}, c.logCounts), y)...)
}

// Express returns the blocks as rows.
func (c *distributeComponent) Express(f *Formula, a Operands) Term {
	s, ok := a.Pre.(*blockSources)
	if !ok || !s.fits(f.rows(a.X), a.Rows) {
		return f.misfit(c)
	}
	blocks := c.inputDim / c.outputDim
	rows := make([]int32, a.Rows)
	for i, from := range s.from {
		rows[i] = from[0]*int32(blocks) + from[1]/int32(c.outputDim)
	}
	return f.Take(f.Reshape(a.X, f.rows(a.X)*blocks, c.outputDim), 0, rows)
}

// Express returns the weighted values of each head and, with outputContext, the weights.
func (c *restrictedAttentionComponent) Express(f *Formula, a Operands) Term {
	n := c.contextDim()
	pre, ok := a.Pre.(*offsetRows)
	if !ok || !pre.fits(n, f.rows(a.X), a.Rows) {
		return f.misfit(c)
	}
	heads := f.Reshape(a.X, f.rows(a.X), c.numHeads, c.headIn())
	own := f.Take(heads, 0, pre.offset(c.numLeft))
	// A row for each frame that an output attends to; those that are missing are zeros, so that
	// neither their key nor their value counts.
	context := func(first, dim int) Term {
		rows := f.Take(f.Columns(heads, first, dim), 0, pre.rows)
		return f.Reshape(rows, a.Rows, n, c.numHeads, dim)
	}
	query := f.Reshape(f.Columns(own, c.keyDim+c.valueDim, c.keyDim), a.Rows, 1, c.numHeads, c.keyDim)
	dots := f.Reduce(OpSum, f.Binary(OpMultiply, context(0, c.keyDim), query), 3)
	extra := f.Transpose(f.Columns(own, 2*c.keyDim+c.valueDim, n), 0, 2, 1)
	logits := f.Binary(OpAdd, f.Scale(f.Reshape(dots, a.Rows, n, c.numHeads), c.keyScale), extra)
	weights := f.Softmax(OpSoftmax, logits, 1)
	weighted := f.Binary(OpMultiply, context(c.keyDim, c.valueDim), f.Reshape(weights, a.Rows, n, c.numHeads, 1))
	y := f.Reshape(f.Reduce(OpSum, weighted, 1), a.Rows, c.numHeads, c.valueDim)
	if c.outputContext {
		y = f.Concat(2, y, f.Transpose(weights, 0, 2, 1))
	}
	return f.Reshape(y, a.Rows, c.OutputDim())
}

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
