package component

import "github.com/nnopt/nnopt/internal/kernel"

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
	return f.runs(f.bias(c.bias), a.X, c.products, x)
}

// bias returns a bias as a row, or 0 if there is none.
func (f *Formula) bias(b []float32) Term {
	if len(b) == 0 {
		return 0
	}
	return f.Row(b)
}

// plus returns x + y, or the one that is there.
func (f *Formula) plus(x, y Term) Term {
	switch {
	case x == 0:
		return y
	case y == 0:
		return x
	}
	return f.Binary(OpAdd, x, y)
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

// runs adds the products of blocks to a sum, which may be missing, in the order in which Kaldi adds
// them up: there are networks that magnify each rounding by a thousand.
func (f *Formula) runs(sum, x Term, blocks []productBlock, pre *tdnnIndexes) Term {
	for i, b := range blocks {
		rows := make([]int32, pre.OutputRows)
		for _, r := range pre.Runs[i] {
			for k := range r.Count {
				rows[r.Out+k*r.OutStep] = r.In + k*r.InStep
			}
		}
		part := f.Columns(f.Take(x, 0, rows), b.col, b.w.m.Cols)
		sum = f.plus(sum, f.Affine(part, b.w.elements(), nil))
	}
	return sum
}

// Express returns the product with all operations on its result.
func (p *product) Express(f *Formula, a Operands) Term {
	if p.precision != kernel.Float32 {
		return f.Fail(p.base, "is multiplied in integers, whose steps ONNX has no operator for; leave out +int8 and +int16")
	}
	var sum, v Term
	if p.adds {
		sum = a.Y
	}
	bias := f.bias(p.bias)
	if p.simple {
		v = f.plus(sum, f.Affine(f.Columns(a.X, p.blocks[0].col, p.blocks[0].w.m.Cols), p.blocks[0].w.elements(), nil))
	} else {
		x, ok := a.Pre.(*tdnnIndexes)
		if !ok || !x.fits(len(p.blocks), f.rows(a.X), a.Rows) {
			return f.misfit(p.base)
		}
		// A TDNN begins with its bias, other products end with it.
		if !p.base.Properties().Has(Simple) {
			sum, bias = f.plus(bias, sum), 0
		}
		v = f.runs(sum, a.X, p.blocks, x)
	}
	v = f.plus(v, bias)
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
		parts[b] = f.Affine(f.Columns(a.X, b*w.Cols, w.Cols), w, nil)
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
