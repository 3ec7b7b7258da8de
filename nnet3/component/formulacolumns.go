package component

import (
	"slices"

	"github.com/nnopt/nnopt/internal/kernel/elementary"
)

// Express returns the function of each element or row.
func (c *nonlinearity) Express(f *Formula, a Operands) Term {
	switch c.function {
	case &sigmoid:
		return f.Map(OpSigmoid, a.X)
	case &tanh:
		return f.Map(OpTanh, a.X)
	case &rectifiedLinear:
		return f.Map(OpReLU, a.X)
	case &softmax:
		return f.Binary(OpMaximum, f.Softmax(OpSoftmax, a.X, 1), f.Number(softmaxFloor))
	case &logSoftmax:
		return f.Softmax(OpLogSoftmax, a.X, 1)
	}
	return f.Fail(c, "has no formula")
}

// Express returns (x - mean)·targetRMS/√(variance + epsilon). In training the mean and the variance
// are those of all rows of all sequences.
func (c *batchNorm) Express(f *Formula, a Operands) Term {
	if c.test {
		return f.Binary(OpAdd, f.Binary(OpMultiply, a.X, f.Row(c.scale)), f.Row(c.offset))
	}
	// Blocks of columns are normalized as one, so they become rows for a while.
	blocks := c.dim / c.blockDim
	x := f.Reshape(a.X, a.Rows*blocks, c.blockDim)
	mean := f.BatchMean(x)
	variance := f.Binary(OpSubtract, f.BatchMean(f.Binary(OpMultiply, x, x)), f.Binary(OpMultiply, mean, mean))
	floored := f.Binary(OpAdd, f.Binary(OpMaximum, variance, f.Number(0)), f.Number(c.epsilon))
	scale := f.Scale(f.Map(OpReciprocal, f.Map(OpSqrt, floored)), c.targetRMS)
	y := f.Binary(OpMultiply, f.Binary(OpSubtract, x, mean), scale)
	return f.Reshape(y, a.Rows, c.dim)
}

// normFloor is the least mean square, relative to the target, that normalizing divides by.
const normFloor = 1.0 / (1 << 33) / (1 << 33)

// Express returns f·x with f = targetRMS/rms(x), and log(rms(x)).
func (c *normalizeComponent) Express(f *Formula, a Operands) Term {
	blocks := c.dim / c.blockDim
	x := f.Reshape(a.X, a.Rows, blocks, c.blockDim)
	square := f.Scale(f.Reduce(OpMean, f.Binary(OpMultiply, x, x), 2), 1/(c.targetRMS*c.targetRMS))
	root := f.Map(OpSqrt, f.Binary(OpMaximum, square, f.Constant([]float32{normFloor}, 1, 1, 1)))
	y := f.Binary(OpDivide, x, root)
	if c.addLogStddev {
		target := float32(elementary.Log(float64(c.targetRMS)))
		y = f.Concat(2, y, f.Binary(OpAdd, f.Map(OpLog, root), f.Constant([]float32{target}, 1, 1, 1)))
	}
	return f.Reshape(y, a.Rows, c.OutputDim())
}

// Express returns x∘s.
func (c *scaling) Express(f *Formula, a Operands) Term {
	return f.Binary(OpMultiply, a.X, f.Row(c.scales))
}

// Express returns x + b.
func (c *offsetting) Express(f *Formula, a Operands) Term {
	return f.Binary(OpAdd, a.X, f.Row(repeated32(c.offsets, c.dim)))
}

// repeated32 repeats a vector until it has n elements.
func repeated32(v []float32, n int) []float32 {
	if len(v) == n {
		return v
	}
	return slices.Repeat(v, n/len(v))
}

// Express returns x∘s + o.
func (c *scaleAndOffsetComponent) Express(f *Formula, a Operands) Term {
	s := slices.Clone(c.scales)
	for j, v := range s {
		s[j] = awayFromZero(v)
	}
	y := f.Binary(OpMultiply, a.X, f.Row(repeated32(s, c.dim)))
	return f.Binary(OpAdd, y, f.Row(repeated32(c.offsets, c.dim)))
}

// Express returns x with its columns in another order.
func (c *permuteComponent) Express(f *Formula, a Operands) Term {
	return f.Take(a.X, 1, c.columnMap)
}

// Express returns the 2-norms of the groups.
func (c *pnormComponent) Express(f *Formula, a Operands) Term {
	x := f.Reshape(a.X, a.Rows, c.outputDim, c.inputDim/c.outputDim)
	y := f.Map(OpSqrt, f.Reduce(OpSum, f.Binary(OpMultiply, x, x), 2))
	return f.Reshape(y, a.Rows, c.outputDim)
}

// Express returns x₁∘x₂∘…
func (c *elementwiseProductComponent) Express(f *Formula, a Operands) Term {
	y := f.Columns(a.X, 0, c.outputDim)
	for b := c.outputDim; b < c.inputDim; b += c.outputDim {
		y = f.Binary(OpMultiply, y, f.Columns(a.X, b, c.outputDim))
	}
	return y
}

// Express returns scale·Σx_b.
func (c *sumBlockComponent) Express(f *Formula, a Operands) Term {
	x := f.Reshape(a.X, a.Rows, c.inputDim/c.outputDim, c.outputDim)
	return f.Scale(f.Reshape(f.Reduce(OpSum, x, 1), a.Rows, c.outputDim), c.scale)
}

// Express returns the sums of the groups.
func (c *sumGroupComponent) Express(f *Formula, a Operands) Term {
	sets, first := make([][]int32, len(c.sizes)), int32(0)
	for i, n := range c.sizes {
		for k := range n {
			sets[i] = append(sets[i], first+k)
		}
		first += n
	}
	return f.SumSets(a.X, 1, sets)
}

// Express returns the largest element in each window.
func (c *maxpoolingComponent) Express(f *Formula, a Operands) Term {
	size := c.pool[0] * c.pool[1] * c.pool[2]
	var columns []int32
	c.eachWindow(func(_, first int) {
		for x := range c.pool[0] {
			for y := range c.pool[1] {
				at := first + (x*c.input[1]+y)*c.input[2]
				for z := range c.pool[2] {
					columns = append(columns, int32(at+z))
				}
			}
		}
	})
	x := f.Reshape(f.Take(a.X, 1, columns), a.Rows, len(columns)/size, size)
	return f.Reshape(f.Reduce(OpLargest, x, 2), a.Rows, c.OutputDim())
}

// Express returns the input, scaled.
func (c *backpropTruncationComponent) Express(f *Formula, a Operands) Term {
	return f.Scale(a.X, c.scale)
}

// Express returns the input.
func (c *clipGradientComponent) Express(_ *Formula, a Operands) Term { return a.X }

// Express returns the input, scaled as in test mode.
func (c *dropoutComponent) Express(f *Formula, a Operands) Term {
	return f.Scale(a.X, 1-c.proportion)
}

// Express returns the mask of test mode.
func (c *dropoutMaskComponent) Express(f *Formula, a Operands) Term {
	v := 1 - c.proportion
	if c.continuous {
		v = 1
	}
	return f.Take(f.Row(slices.Repeat([]float32{v}, c.dim)), 0, make([]int32, a.Rows))
}

// Express returns the vector for each row.
func (c *constant) Express(f *Formula, a Operands) Term {
	return f.Take(f.Row(c.output), 0, make([]int32, a.Rows))
}

// Express sends the rows through the chain.
func (c *compositeComponent) Express(f *Formula, a Operands) Term {
	x := a.X
	for _, part := range c.components {
		if bn, ok := part.(*batchNorm); ok && !bn.test && c.maxRows > 0 {
			return f.Fail(c, "normalizes %d rows at a time, since its BatchNormComponent is not in test mode", c.maxRows)
		}
		x = f.Express(part, Operands{X: x, Rows: a.Rows})
	}
	return x
}

// gates cuts the input of a cell into parts.
type gates struct {
	f    *Formula
	x    Term
	next int
}

func (g *gates) take(n int) Term {
	g.next += n
	return g.f.Columns(g.x, g.next-n, n)
}

// Express returns c and m.
func (c *lstmNonlinearityComponent) Express(f *Formula, a Operands) Term {
	d := c.params.Cols
	g := gates{f: f, x: a.X}
	i, fg, content, o, prev := g.take(d), g.take(d), g.take(d), g.take(d), g.take(d)
	peephole := func(x Term, row int, state Term) Term {
		w := f.Row(c.params.Data[row*c.params.Stride:][:d])
		return f.Map(OpSigmoid, f.Binary(OpAdd, x, f.Binary(OpMultiply, state, w)))
	}
	scaled := func(x Term) Term {
		if !c.useDropout {
			return x
		}
		return f.Binary(OpMultiply, x, g.take(1))
	}
	// The scales follow in the order i, f, o, so each is taken when its gate is complete.
	i = scaled(peephole(i, 0, prev))
	fg = scaled(peephole(fg, 1, prev))
	state := f.Binary(OpAdd, f.Binary(OpMultiply, fg, prev), f.Binary(OpMultiply, i, f.Map(OpTanh, content)))
	o = scaled(peephole(o, 2, state))
	return f.Concat(1, state, f.Binary(OpMultiply, o, f.Map(OpTanh, state)))
}

// mixed returns (1-z)∘h + z∘prev.
func (f *Formula) mixed(z, h, prev Term) Term {
	return f.Binary(OpAdd, f.Binary(OpMultiply, f.Binary(OpSubtract, f.Number(1), z), h), f.Binary(OpMultiply, z, prev))
}

// Express returns h and c.
func (c *gruNonlinearityComponent) Express(f *Formula, a Operands) Term {
	n, r := c.cellDim(), c.recurrentDim()
	g := gates{f: f, x: a.X}
	z, reset, part, prev := g.take(n), g.take(r), g.take(n), g.take(n)
	s := f.Columns(a.X, c.InputDim()-r, r)
	h := f.Map(OpTanh, f.Binary(OpAdd, part, f.Affine(f.Binary(OpMultiply, s, reset), c.w.elements(), nil)))
	return f.Concat(1, h, f.mixed(z, h, prev))
}

// Express returns h and c.
func (c *outputGruNonlinearityComponent) Express(f *Formula, a Operands) Term {
	n := len(c.w)
	g := gates{f: f, x: a.X}
	z, part, prev := g.take(n), g.take(n), g.take(n)
	h := f.Map(OpTanh, f.Binary(OpAdd, part, f.Binary(OpMultiply, prev, f.Row(c.w))))
	return f.Concat(1, h, f.mixed(z, h, prev))
}
