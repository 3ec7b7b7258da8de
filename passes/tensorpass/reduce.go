package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

var onReduce = []rewrite.Track{rewrite.TrackType[tensor.Reduce]()}

// reduceOf returns the op of a reduction and the dimensions that it folds.
func reduceOf(n *apply) (tensor.Reduce, array.Axes) {
	op := n.Op().(tensor.Reduce)
	return op, op.Over(typ(n.Inputs()[0]).NDim())
}

// reduceOver applies a reduction over a set of dimensions.
func reduceOver(op array.Reduction, x *vari, axes array.Axes) *vari {
	if axes == 1<<typ(x).NDim()-1 {
		return tensor.MustApply(tensor.Reduce{Op: op, All: true}, x)
	}
	return tensor.MustApply(tensor.Reduce{Op: op, Axes: axes}, x)
}

// sumAllToNone is local_sum_all_to_none.
func sumAllToNone() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_sum_all_to_none", Doc: "a reduction over all dimensions does not list them: sum{axis=0,1}(X) → sum(X)", On: onReduce, Depth: 1,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, axes := reduceOf(n)
			x := n.Inputs()[0]
			if op.All || axes != 1<<typ(x).NDim()-1 {
				return c.Miss("it does not list all dimensions"), nil
			}
			return replace(c, n, reduceOver(op.Op, x, axes))
		},
	}
}

// sumSum is local_sum_sum.
func sumSum() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_sum_sum", Doc: "a sum of sums is one sum, and so for every reduction: sum{axis=0}(sum{axis=0}(t)) → sum{axis=0,1}(t)", On: onReduce, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, outer := reduceOf(n)
			v := n.Inputs()[0]
			a, inner, ok := owner[tensor.Reduce](v)
			if !ok || inner.Op != op.Op || !alone(v) {
				return c.Miss("the argument is no such reduction that is used here only"), nil
			}
			x := a.Inputs()[0]
			axes := inner.Over(typ(x).NDim())
			kept := 0
			for d := range typ(x).NDim() {
				if axes.Has(d) {
					continue
				}
				if outer.Has(kept) {
					axes |= 1 << d
				}
				kept++
			}
			return replace(c, n, reduceOver(op.Op, x, axes))
		},
	}
}

// cutUselessReduce is local_cut_useless_reduce.
func cutUselessReduce() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_cut_useless_reduce", Doc: "a reduction over no dimension is its argument", On: onReduce, Depth: 1,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, axes := reduceOf(n)
			if axes != 0 || op.Op == array.All || op.Op == array.Any {
				return c.Miss("it folds dimensions, or makes a bool"), nil
			}
			return replace(c, n, n.Inputs()[0])
		},
	}
}

// reduceBroadcastable is local_reduce_broadcastable.
func reduceBroadcastable() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_reduce_broadcastable", Doc: "dimensions of size 1 are dropped, not folded: sum(row, axis=0) → DimShuffle{1}(row)", On: onReduce, Depth: 1,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, axes := reduceOf(n)
			x := n.Inputs()[0]
			var rest array.Axes
			var order []int
			for d := range typ(x).NDim() {
				if axes.Has(d) && typ(x).Dim(d) == 1 {
					continue
				}
				if axes.Has(d) {
					rest |= 1 << len(order)
				}
				order = append(order, d)
			}
			if len(order) == typ(x).NDim() {
				return c.Miss("no dimension that is folded is known to have size 1"), nil
			}
			y := tensor.DimShuffle(x, order...)
			if rest != 0 {
				return replace(c, n, reduceOver(op.Op, y, rest))
			}
			return replace(c, n, y)
		},
	}
}

// reduceJoin is local_reduce_join.
func reduceJoin() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_reduce_join", Doc: "folding what was stacked is computing element by element: sum(stack([x, y]), axis=0) → x + y", On: onReduce, Depth: 3,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, axes := reduceOf(n)
			a, join, ok := owner[tensor.JoinOp](n.Inputs()[0])
			if !ok || join.Axis != 0 || axes != 1 || op.Op > array.Min {
				return c.Miss("it does not fold the dimension of a stack"), nil
			}
			rows := make([]*vari, len(a.Inputs()))
			for i, v := range a.Inputs() {
				b, ds, ok := owner[tensor.DimShuffleOp](v)
				if !ok || typ(v).NDim() != typ(b.Inputs()[0]).NDim()+1 || !ds.PadsLeft(typ(b.Inputs()[0]).NDim()) {
					return c.Miss("input %d of the join was not given a new dimension for it", i), nil
				}
				if !samePattern(v, a.Inputs()[0]) {
					return c.Miss("not all inputs have one shape"), nil
				}
				rows[i] = b.Inputs()[0]
			}
			if len(rows) > 2 && op.Op != array.Sum && op.Op != array.Prod {
				return c.Miss("more than two inputs"), nil
			}
			return replace(c, n, tensor.Map(op.Op.Opcode(), rows...))
		},
	}
}

// sumDivDimShuffle is local_sum_div_dimshuffle.
func sumDivDimShuffle() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_sum_div_dimshuffle", Doc: "a divisor that is repeated along the folded dimensions divides the sum: sum(X/c, axis=0) → sum(X, axis=0)/c; where c is 0 or infinite one of the two may be NaN", On: onReduce, Depth: 3,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, axes := reduceOf(n)
			v := n.Inputs()[0]
			q := elem(v, array.TrueDiv)
			if op.Op != array.Sum || q == nil || !alone(v) || axes == 0 {
				return c.Miss("it is not the sum of a quotient that is used here only"), nil
			}
			num, den := q.Inputs()[0], q.Inputs()[1]
			kept, ok := withoutAxes(den, axes)
			if !ok {
				return c.Miss("the divisor varies along the folded dimensions"), nil
			}
			if !samePattern(num, v) {
				return c.Miss("the numerator has not the shape of the quotient"), nil
			}
			return replace(c, n, tensor.TrueDiv(reduceOver(array.Sum, castTo(num, typ(v).DType()), axes), kept))
		},
	}
}

// withoutAxes drops dimensions of v, if they are known to have size 1.
func withoutAxes(v *vari, axes array.Axes) (*vari, bool) {
	var order []int
	for d := range typ(v).NDim() {
		if !axes.Has(d) {
			order = append(order, d)
		} else if typ(v).Dim(d) != 1 {
			return nil, false
		}
	}
	if a := tensor.ConstantOf(v); a != nil {
		return tensor.Constant(a.Transpose(order...).Clone()), true
	}
	if a, inner, ok := owner[tensor.DimShuffleOp](v); ok {
		return tensor.DimShuffle(a.Inputs()[0], tensor.NewDimShuffle(order...).Compose(inner).NewOrder()...), true
	}
	return tensor.DimShuffle(v, order...), true
}

// sumMulByScalar is local_sum_mul_by_scalar.
func sumMulByScalar() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_sum_mul_by_scalar", Doc: "a factor that is a scalar multiplies the sum: sum(s*x) → s*sum(x), sum(-x) → -sum(x); where s is 0 or infinite one of the two may be NaN", On: onReduce, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, axes := reduceOf(n)
			v := n.Inputs()[0]
			if op.Op != array.Sum || !alone(v) {
				return c.Miss("it is not the sum of something that is used here only"), nil
			}
			if a := elem(v, array.Neg); a != nil {
				return replace(c, n, tensor.Neg(reduceOver(array.Sum, a.Inputs()[0], axes)))
			}
			a := elem(v, array.Mul)
			if a == nil {
				return c.Miss("the argument is no product"), nil
			}
			var scalars, rest []*vari
			for _, f := range a.Inputs() {
				if isScalar(f) {
					scalars = append(scalars, scalarOf(stripPadding(f)))
				} else {
					rest = append(rest, f)
				}
			}
			if len(scalars) == 0 || len(rest) == 0 {
				return c.Miss("no factor, or all, are scalars"), nil
			}
			x := rest[0]
			if len(rest) > 1 {
				x = computeAs(v, array.Mul, rest...)
			}
			if !samePattern(x, v) {
				return c.Miss("the factors that are no scalars have not the shape of the product"), nil
			}
			sum := reduceOver(array.Sum, castTo(x, typ(v).DType()), axes)
			if k, ok := uniform(scalars[0]); ok && k == -1 && len(scalars) == 1 {
				return replace(c, n, tensor.Neg(sum))
			}
			return replace(c, n, tensor.Mul(append(scalars, sum)...))
		},
	}
}

// sumMulDimShuffle is the part of PyTensor's local_sum_prod_of_mul_or_div that is none of Theano's.
func sumMulDimShuffle() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_sum_mul_dimshuffle", Doc: "a factor that is repeated along the folded dimensions multiplies the sum: sum(X*c[:, None], axis=1) → sum(X, axis=1)*c; where c is 0 or infinite one of the two may be NaN", On: onReduce, Depth: 3,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, axes := reduceOf(n)
			v := n.Inputs()[0]
			a := elem(v, array.Mul)
			if op.Op != array.Sum || a == nil || !alone(v) || axes == 0 {
				return c.Miss("it is not the sum of a product that is used here only"), nil
			}
			for i, f := range a.Inputs() {
				if _, _, dims := owner[tensor.DimShuffleOp](f); !dims || !alone(f) {
					continue
				}
				kept, ok := withoutAxes(f, axes)
				if !ok {
					continue
				}
				if _, _, dims := owner[tensor.DimShuffleOp](kept); dims {
					continue // there would be as much to do as before
				}
				rest := slices.Delete(slices.Clone(a.Inputs()), i, i+1)
				x := rest[0]
				if len(rest) > 1 {
					x = tensor.Mul(rest...)
				}
				if !samePattern(x, v) || typ(x).DType() != typ(n.Out()).DType() || typ(v).DType() != typ(x).DType() {
					continue
				}
				return replace(c, n, tensor.Mul(reduceOver(array.Sum, x, axes), kept))
			}
			return c.Miss("no factor is repeated along the folded dimensions, by a DimShuffle that would be saved"), nil
		},
	}
}

// reduceMakeVector is PyTensor's local_sum_make_vector, for other reductions as well.
func reduceMakeVector() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_reduce_make_vector", Doc: "folding a vector that is put together is computing with its elements: sum(MakeVector(a, b)) → a + b", On: onReduce, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, axes := reduceOf(n)
			a, _, ok := owner[tensor.MakeVectorOp](n.Inputs()[0])
			if !ok || axes == 0 || len(a.Inputs()) == 0 || op.Op > array.Min {
				return c.Miss("it does not fold a MakeVector"), nil
			}
			in := a.Inputs()
			switch {
			case len(in) == 1:
				return replace(c, n, in[0])
			case len(in) > 2 && op.Op != array.Sum && op.Op != array.Prod:
				return c.Miss("more than two elements"), nil
			}
			return replace(c, n, tensor.Map(op.Op.Opcode(), in...))
		},
	}
}

// sumAlloc is local_sum_alloc.
func sumAlloc() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_sum_alloc", Doc: "the sum of a filled tensor is a multiple of the value, and its product a power: sum(Alloc(v, m, n)) → v*(m*n); where v is NaN or infinite and a size 0 the multiple is NaN", On: onReduce,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, axes := reduceOf(n)
			a, _, ok := owner[tensor.AllocOp](n.Inputs()[0])
			if !ok || op.Op > array.Min || axes == 0 {
				return c.Miss("it is not the reduction of an Alloc"), nil
			}
			v := a.Inputs()[0]
			if !isScalar(v) {
				return c.Miss("the value is no scalar"), nil
			}
			var kept, folded []*vari
			for d, size := range a.Inputs()[1:] {
				if axes.Has(d) {
					folded = append(folded, size)
				} else {
					kept = append(kept, size)
				}
			}
			v = scalarOf(v)
			switch op.Op {
			case array.Sum:
				return replace(c, n, refilled(combined(array.Mul, v, folded, n.Out()), kept))
			case array.Prod:
				return replace(c, n, refilled(combined(array.Pow, v, folded, n.Out()), kept))
			case array.Max, array.Min: // an error where a size is 0
				for _, size := range folded {
					if x, ok := uniform(size); !ok || x <= 0 {
						return c.Miss("a size may be 0"), nil
					}
				}
				return replace(c, n, refilled(v, kept))
			}
			return none, nil
		},
	}
}

// combined combines a value with the product of sizes.
func combined(op array.Opcode, v *vari, sizes []*vari, out *vari) *vari {
	dtype := typ(out).DType()
	total := tensor.Int(1)
	for _, s := range sizes {
		x, known := uniform(total)
		y, known2 := uniform(s)
		switch {
		case known && known2 && x*y < 1<<53:
			total = tensor.Int(int(x * y))
		case known && x == 1:
			total = s
		default:
			total = tensor.Mul(total, s)
		}
	}
	return tensor.Map(op, castTo(v, dtype), castTo(total, dtype))
}

// refilled spreads a scalar over sizes again.
func refilled(v *vari, sizes []*vari) *vari {
	if len(sizes) == 0 {
		return v
	}
	return tensor.Alloc(v, sizes...)
}

// maxToMin is local_max_to_min.
func maxToMin() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_max_to_min", Doc: "the minimum is written as such: -max(-x) → min(x)", On: append(on(array.Neg), on(array.Mul)...), Depth: 3,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			v := negated(n)
			if v == nil || !isFloat(v) { // the negation of the smallest integer is itself
				return c.Miss("it is no negation of floats"), nil
			}
			a, op, ok := owner[tensor.Reduce](v)
			if !ok || !alone(v) || op.Op != array.Max && op.Op != array.Min || a.Inputs()[0].Owner() == nil {
				return c.Miss("the argument is no maximum that is used here only"), nil
			}
			x := negated(a.Inputs()[0].Owner())
			if x == nil {
				return c.Miss("the maximum is not that of a negation"), nil
			}
			op.Op = map[array.Reduction]array.Reduction{array.Max: array.Min, array.Min: array.Max}[op.Op]
			return replace(c, n, tensor.MustApply(op, x))
		},
	}
}

// negated returns x if n computes -x, as a negation or as a product with -1.
func negated(n *apply) *vari {
	switch op, _ := elemOf(n); {
	case op == array.Neg:
		return n.Inputs()[0]
	case op == array.Mul && len(n.Inputs()) == 2 && is(n.Inputs()[0], -1) && samePattern(n.Inputs()[1], n.Out()):
		return n.Inputs()[1]
	}
	return nil
}

// argmaxPushdown is local_argmax_pushdown for the softmax.
func argmaxPushdown() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_argmax_pushdown", Doc: "the place of the largest probability is that of the largest argument: argmax(softmax(x)) → argmax(x); all probabilities are NaN where an argument is infinite", Depth: 2,
		On: []rewrite.Track{rewrite.TrackType[tensor.ArgmaxOp]()},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op := n.Op().(tensor.ArgmaxOp)
			a, _, ok := owner[tensor.SoftmaxOp](n.Inputs()[0])
			last := typ(n.Inputs()[0]).NDim() - 1
			if !ok || (tensor.Reduce{Axes: op.Axes, All: op.All}).Over(last+1) != 1<<last {
				return c.Miss("it is not over the dimension of a softmax"), nil
			}
			return replace(c, n, tensor.MustApply(op, a.Inputs()[0]))
		},
	}
}
