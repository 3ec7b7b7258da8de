package component

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
