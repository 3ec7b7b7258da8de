package component

import (
	"slices"

	"github.com/nnopt/nnopt/kernel"
)

// Express returns x·Wᵀ + b.
func (c *affineMap) Express(f *Formula, a Operands) Term {
	return f.Affine(a.X, c.elements(), c.bias)
}

// Express returns the sum over time offsets.
func (c *tdnnComponent) Express(f *Formula, a Operands) Term {
	x, ok := a.Pre.(*tdnnIndexes)
	if !ok || !x.fits(len(c.times), f.rows(a.X), a.Rows) {
		return f.misfit(c)
	}
	y := f.runs(a.X, c.products, x)
	if len(c.bias) == 0 {
		return y
	}
	return f.Binary(OpAdd, y, f.Row(c.bias))
}

// rows returns the number of rows of a value.
func (f *Formula) rows(x Term) int {
	if d := f.Dims(x); len(d) > 0 {
		return d[0]
	}
	return 0
}

func (f *Formula) misfit(c Component) Term {
	return f.Fail(c, "has precomputed indexes that do not fit its rows")
}

// runs returns the sum of products of blocks.
func (f *Formula) runs(x Term, blocks []productBlock, pre *tdnnIndexes) Term {
	factors := make([]Factor, len(blocks))
	for i, b := range blocks {
		rows := make([]int32, pre.OutputRows)
		for _, r := range pre.Runs[i] {
			for k := range r.Count {
				rows[r.Out+k*r.OutStep] = r.In + k*r.InStep
			}
		}
		factors[i] = Factor{Rows: rows, Col: b.col, W: b.w.elements()}
	}
	return f.Product(slices.Repeat([]Term{x}, len(blocks)), factors)
}

// Express returns the product with all operations on its result.
func (p *product) Express(f *Formula, a Operands) Term {
	if p.precision != kernel.Float32 {
		return f.Fail(p.base, "is multiplied in integers, whose steps ONNX has no operator for; leave out +int8 and +int16")
	}
	var v Term
	if p.simple {
		v = f.Product([]Term{a.X}, []Factor{{Col: p.blocks[0].col, W: p.blocks[0].w.elements()}})
	} else {
		x, ok := a.Pre.(*tdnnIndexes)
		if !ok || !x.fits(len(p.blocks), f.rows(a.X), a.Rows) {
			return f.misfit(p.base)
		}
		v = f.runs(a.X, p.blocks, x)
	}
	if p.adds && a.Y != 0 {
		v = f.Binary(OpAdd, v, a.Y)
	}
	if len(p.bias) > 0 {
		v = f.Binary(OpAdd, v, f.Row(p.bias))
	}
	if p.relu {
		v = f.Map(OpReLU, v)
	}
	if p.scale != nil {
		v = f.Binary(OpAdd, f.Binary(OpMultiply, v, f.Row(p.scale)), f.Row(p.offset))
	}
	for _, c := range p.tail {
		v = f.Express(c, Operands{X: v, Rows: a.Rows})
	}
	if p.alpha != 0 && a.Y != 0 {
		v = f.Binary(OpAdd, v, f.Scale(a.Y, p.alpha))
	}
	return v
}

// Express returns what the base computes.
func (o *overwriting) Express(f *Formula, a Operands) Term {
	return f.Express(o.base, Operands{X: a.X, Rows: a.Rows, Pre: a.Pre})
}

// Express returns what the base computes.
func (a *adding) Express(f *Formula, o Operands) Term { return f.Express(a.base, o) }

// Express returns the positive parts.
func (c *maskedReLU) Express(f *Formula, a Operands) Term { return f.Express(c.relu, a) }

// Express returns x·Vᵀ.
func (c *inputColumns) Express(f *Formula, a Operands) Term {
	return f.Affine(a.X, c.w.elements(), nil)
}

// Express returns x_b·W_bᵀ + b_b of all blocks.
func (c *blockAffineComponent) Express(f *Formula, a Operands) Term {
	parts := make([]Term, len(c.blocks))
	for b := range parts {
		w := c.blocks[b].elements()
		parts[b] = f.Product([]Term{a.X}, []Factor{{Col: b * w.Cols, W: w}})
	}
	return f.Binary(OpAdd, f.Concat(1, parts...), f.Row(c.bias))
}

// Express returns x·Wᵀ + b of each block.
func (c *repeatedAffineComponent) Express(f *Formula, a Operands) Term {
	w := c.elements()
	y := f.Affine(f.Reshape(a.X, a.Rows, c.numRepeats, w.Cols), w, c.bias)
	return f.Reshape(y, a.Rows, c.OutputDim())
}

// Express returns what the filters make of the patches at all places.
func (c *convolutionComponent) Express(f *Formula, a Operands) Term {
	w := c.elements()
	patches := f.Reshape(f.Take(a.X, 1, c.columns), a.Rows, c.steps(), w.Cols)
	return f.Reshape(f.Affine(patches, w, c.bias), a.Rows, c.OutputDim())
}

// Express returns what the filters make of the patches at all times and heights.
func (c *timeHeightConvolutionComponent) Express(f *Formula, a Operands) Term {
	pre, ok := a.Pre.(*offsetRows)
	if !ok || !pre.fits(len(c.times), f.rows(a.X), a.Rows) {
		return f.misfit(c)
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

// offset returns, for each output row, the input row at an offset, or -1.
func (p *offsetRows) offset(k int) []int32 {
	rows := make([]int32, 0, len(p.rows)/p.offsets)
	for i := k; i < len(p.rows); i += p.offsets {
		rows = append(rows, p.rows[i])
	}
	return rows
}
