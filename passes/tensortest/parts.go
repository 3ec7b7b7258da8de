package tensortest

import (
	"slices"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// A picker returns a random part that the function accepts, or nil.
type picker func(func(item) bool) *variable

func anything(it item) bool { return !it.value.IsCSR() }

func hasDims(least, most int) func(item) bool {
	return func(it item) bool {
		n := it.value.NDim()
		return n >= least && n <= most && !it.value.IsCSR()
	}
}

func isFloat(it item) bool { return it.value.DType().IsFloat() && !it.value.IsCSR() }

// part makes a part of a random kind.
func (g *Generator) part(pick picker) *variable {
	if len(g.Motifs) > 0 && g.rng.IntN(3) == 0 {
		return g.motif(pick)
	}
	if len(g.Patterns) > 0 && g.rng.IntN(3) == 0 {
		return g.instance(pick)
	}
	parts := []func(picker) *variable{
		g.unary, g.unary, g.binary, g.binary, g.binary, g.several, g.choice, g.cast, g.reduce, g.reduce, g.dimShuffle, g.subtensor, g.incSubtensor,
		g.take, g.join, g.dot, g.reshape, g.fill, g.shape, g.softmax, g.crossentropy, g.sparse, g.along, g.products,
	}
	return parts[g.rng.IntN(len(parts))](pick)
}

// motif makes a part of a motif. Parts with the shapes and types of its variables may replace them.
func (g *Generator) motif(pick picker) *variable {
	m := g.Motifs[g.rng.IntN(len(g.Motifs))]
	named := make(map[string]*variable)
	for _, in := range g.scope.Inputs() {
		named[in.Name()] = in
		if g.rng.IntN(2) == 0 {
			continue
		}
		// The indexes and products of a motif were written for these sizes.
		if v := pick(func(it item) bool { return in.Type() == it.v.Type() && array.SameShape(it.value, g.values[in]) }); v != nil {
			named[in.Name()] = v
		}
	}
	out, err := expr.Default().NewScopeOf(named).Parse(string(m))
	if err != nil {
		return nil
	}
	return out[0]
}

func (g *Generator) unary(pick picker) *variable {
	op := array.Opcode(g.rng.IntN(int(array.NumOpcodes)))
	if op.NumArgs() != 1 || op == array.Cast {
		return nil
	}
	if x := pick(anything); x != nil {
		return tensor.Map(op, x)
	}
	return nil
}

// fits accepts the parts that broadcast with x, by what is known before computing.
func (g *Generator) fits(x *variable) func(item) bool {
	a, t := g.values[x], tensor.TypeOf(x)
	return func(y item) bool {
		if y.value.IsCSR() {
			return false
		}
		b, u := y.value, tensor.TypeOf(y.v)
		// From the end, as broadcasting goes. A size of 1 repeats only if the type says that it is 1.
		for d := 1; d <= min(a.NDim(), b.NDim()); d++ {
			i, j := a.NDim()-d, b.NDim()-d
			if a.Dim(i) != b.Dim(j) && t.Dim(i) != 1 && u.Dim(j) != 1 {
				return false
			}
		}
		return true
	}
}

// pickLike picks a part that broadcasts with x, or makes a number.
func (g *Generator) pickLike(pick picker, x *variable) *variable {
	if g.rng.IntN(4) == 0 {
		v := []float64{0, 1, -1, 2, 0.5, -2, 3}[g.rng.IntN(7)]
		if !tensor.TypeOf(x).DType().IsFloat() {
			return tensor.Int(int(v))
		}
		return tensor.Constant(array.Full(tensor.TypeOf(x).DType(), v))
	}
	return pick(g.fits(x))
}

func (g *Generator) binary(pick picker) *variable {
	op := array.Opcode(g.rng.IntN(int(array.NumOpcodes)))
	if op.NumArgs() != 2 && op.NumArgs() != -1 || g.rng.IntN(3) == 0 {
		op = []array.Opcode{array.Add, array.Mul, array.Sub, array.TrueDiv}[g.rng.IntN(4)]
	}
	x := pick(anything)
	if x == nil {
		return nil
	}
	y := g.pickLike(pick, x)
	if y == nil {
		return nil
	}
	if g.rng.IntN(2) == 0 {
		x, y = y, x
	}
	return tensor.Map(op, x, y)
}

func (g *Generator) several(pick picker) *variable {
	x := pick(anything)
	if x == nil {
		return nil
	}
	in := []*variable{x}
	for range g.rng.IntN(4) {
		y := pick(func(it item) bool {
			return g.fits(x)(it) && it.value.NDim() == g.values[x].NDim()
		})
		if y == nil {
			return nil
		}
		in = append(in, y)
	}
	return tensor.Map([]array.Opcode{array.Add, array.Mul}[g.rng.IntN(2)], in...)
}

func (g *Generator) choice(pick picker) *variable {
	x := pick(anything)
	if x == nil {
		return nil
	}
	y := g.pickLike(pick, x)
	cond := pick(func(it item) bool {
		return it.value.DType() == array.Bool && g.fits(x)(it)
	})
	if y == nil || cond == nil {
		return nil
	}
	return tensor.Switch(cond, x, y)
}

func (g *Generator) cast(pick picker) *variable {
	if x := pick(anything); x != nil {
		return tensor.Cast(x, array.DType(g.rng.IntN(int(array.Float16))))
	}
	return nil
}

// axes returns random dimensions.
func (g *Generator) axes(ndim int) []int {
	var axes []int
	for d := range ndim {
		if g.rng.IntN(2) == 0 {
			axes = append(axes, d)
		}
	}
	return axes
}

func (g *Generator) reduce(pick picker) *variable {
	x := pick(hasDims(1, 8))
	if x == nil {
		return nil
	}
	axes := g.axes(tensor.TypeOf(x).NDim())
	if g.rng.IntN(6) == 0 {
		return tensor.Argmax(x, axes...)
	}
	r := array.Reduction(g.rng.IntN(int(array.NumReductions)))
	return tensor.ReduceOver(r, x, axes...)
}

func (g *Generator) dimShuffle(pick picker) *variable {
	x := pick(hasDims(0, 4))
	if x == nil {
		return nil
	}
	t := tensor.TypeOf(x)
	var order []int
	for _, d := range g.rng.Perm(t.NDim()) {
		// Only a dimension whose type says 1 can be dropped. That its size is 1 now is not enough.
		if t.Dim(d) == 1 && g.rng.IntN(2) == 0 {
			continue
		}
		order = append(order, d)
	}
	if g.rng.IntN(2) == 0 {
		slices.Sort(order)
	}
	for range g.rng.IntN(2) {
		order = slices.Insert(order, g.rng.IntN(len(order)+1), array.NewAxis)
	}
	return tensor.DimShuffle(x, order...)
}

// indexes returns random indexes of the first dimensions.
func (g *Generator) indexes(x *variable) []tensor.Index {
	value := g.values[x]
	var list []tensor.Index
	for d := range 1 + g.rng.IntN(value.NDim()) {
		n := value.Dim(d)
		if n == 0 {
			return nil
		}
		bound := func() *variable {
			switch g.rng.IntN(4) {
			case 0:
				return nil
			case 1:
				return tensor.ShapeI(x, d)
			}
			return tensor.Int(g.rng.IntN(2*n+1) - n)
		}
		switch g.rng.IntN(3) {
		case 0:
			list = append(list, tensor.At(tensor.Int(g.rng.IntN(2*n)-n)))
		default:
			list = append(list, tensor.SliceOf(bound(), bound(), []int{1, 1, 1, 2, -1}[g.rng.IntN(5)]))
		}
	}
	return list
}

func (g *Generator) subtensor(pick picker) *variable {
	x := pick(hasDims(1, 4))
	if x == nil {
		return nil
	}
	list := g.indexes(x)
	if list == nil {
		return nil
	}
	return tensor.RawSubtensor(x, list...)
}

func (g *Generator) incSubtensor(pick picker) *variable {
	x := pick(hasDims(1, 3))
	if x == nil {
		return nil
	}
	list := g.indexes(x)
	if list == nil {
		return nil
	}
	y := tensor.Subtensor(x, list...)
	switch g.rng.IntN(3) {
	case 0:
		y = tensor.Constant(array.Full(tensor.TypeOf(x).DType(), float64(g.rng.IntN(2))))
	case 1:
		y = tensor.Mul(y, y)
	}
	if g.rng.IntN(2) == 0 {
		return tensor.SetSubtensor(x, y, list...)
	}
	return tensor.IncSubtensor(x, y, list...)
}

func (g *Generator) take(pick picker) *variable {
	x := pick(hasDims(1, 3))
	i := pick(func(it item) bool { return it.value.DType() == array.Int64 && it.value.NDim() == 1 })
	if x == nil || i == nil {
		return nil
	}
	if g.rng.IntN(2) == 0 {
		i = tensor.ARange(tensor.Int(0), tensor.ShapeI(x, 0), tensor.Int(1))
	}
	y := tensor.Take(x, i)
	switch g.rng.IntN(4) {
	case 0:
		return tensor.IncTake(x, y, i)
	case 1:
		return tensor.SetTake(x, y, i)
	}
	return y
}

func (g *Generator) join(pick picker) *variable {
	x := pick(hasDims(0, 3))
	if x == nil {
		return nil
	}
	in := []*variable{x}
	for range g.rng.IntN(3) {
		if y := pick(func(it item) bool { return array.SameShape(it.value, g.values[x]) && !it.value.IsCSR() }); y != nil {
			in = append(in, y)
		}
	}
	n := tensor.TypeOf(x).NDim()
	if n == 0 || g.rng.IntN(2) == 0 {
		for i := range in {
			in[i] = tensor.Cast(in[i], tensor.TypeOf(x).DType())
		}
		return tensor.Stack(0, in...)
	}
	return tensor.Join(g.rng.IntN(n), in...)
}

func (g *Generator) dot(pick picker) *variable {
	x := pick(hasDims(1, 2))
	if x == nil {
		return nil
	}
	a := g.values[x]
	y := pick(func(it item) bool {
		return hasDims(1, 2)(it) && it.value.Dim(0) == a.Dim(a.NDim()-1) && it.value.DType() == a.DType()
	})
	if y == nil {
		return nil
	}
	return tensor.Dot(x, y)
}

func (g *Generator) reshape(pick picker) *variable {
	x := pick(hasDims(0, 3))
	if x == nil {
		return nil
	}
	a := g.values[x]
	n := a.Len()
	switch g.rng.IntN(4) {
	case 0:
		return tensor.Reshape(x, tensor.Int(-1))
	case 1:
		return tensor.Reshape(x, tensor.Int(1), tensor.Int(n))
	case 2:
		if a.NDim() < 1 {
			return nil
		}
		return tensor.Reshape(x, tensor.ShapeI(x, 0), tensor.Int(-1))
	}
	return tensor.ReshapeTo(x, tensor.Shape(x), a.NDim())
}

func (g *Generator) fill(pick picker) *variable {
	x := pick(hasDims(0, 2))
	model := pick(anything)
	if x == nil || model == nil {
		return nil
	}
	switch g.rng.IntN(4) {
	case 0:
		return tensor.FillLike(model, float64(g.rng.IntN(3)-1))
	case 1:
		dims := []*variable{tensor.Int(1 + g.rng.IntN(3))}
		for d := range tensor.TypeOf(x).NDim() {
			dims = append(dims, tensor.ShapeI(x, d))
		}
		return tensor.Alloc(x, dims...)
	case 2:
		n := pick(func(it item) bool {
			return it.value.DType() == array.Int64 && it.value.NDim() == 0 && it.value.Int(0) > 0 && it.value.Int(0) < 5
		})
		s := pick(hasDims(0, 0))
		if n == nil || s == nil {
			return nil
		}
		return tensor.Alloc(s, n, tensor.Int(2))
	}
	y := pick(g.fits(model))
	if y == nil {
		return nil
	}
	return tensor.Second(model, y)
}

func (g *Generator) shape(pick picker) *variable {
	x := pick(hasDims(1, 3))
	if x == nil {
		return nil
	}
	if g.rng.IntN(2) == 0 {
		return tensor.Shape(x)
	}
	return tensor.ShapeI(x, g.rng.IntN(tensor.TypeOf(x).NDim()))
}

func (g *Generator) softmax(pick picker) *variable {
	x := pick(func(it item) bool { return hasDims(1, 2)(it) && isFloat(it) })
	if x == nil {
		return nil
	}
	if g.rng.IntN(2) == 0 {
		return tensor.LogSoftmax(x)
	}
	return tensor.Softmax(x)
}

func (g *Generator) crossentropy(pick picker) *variable {
	x := pick(func(it item) bool { return hasDims(2, 2)(it) && isFloat(it) })
	i := pick(func(it item) bool { return it.value.DType() == array.Int64 && it.value.NDim() == 1 })
	if x == nil || i == nil {
		return nil
	}
	return tensor.CrossentropyCategorical1Hot(tensor.Softmax(x), i)
}

func (g *Generator) sparse(pick picker) *variable {
	s := pick(func(it item) bool { return it.value.IsCSR() })
	x := pick(func(it item) bool {
		return it.value.NDim() == 2 && it.value.Dim(0) == size && it.value.DType() == array.Float64 && !it.value.IsCSR()
	})
	if s == nil || x == nil {
		return nil
	}
	return tensor.SparseDot(s, x)
}
