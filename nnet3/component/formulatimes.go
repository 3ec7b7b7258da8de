package component

import "slices"

// Express returns count, sum and sum of squares.
func (c *statisticsExtractionComponent) Express(f *Formula, a Operands) Term {
	sets, ok := a.sets(f)
	if !ok {
		return f.misfit(c)
	}
	counts := make([]float32, len(sets))
	for i, s := range sets {
		counts[i] = float32(len(s))
	}
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
