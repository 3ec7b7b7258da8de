package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// reductionRules lists the rules of reductions.
func reductionRules() []Local {
	onReduce := onType[tensor.Reduce]()
	return []Local{
		rule(Canonicalize, "local_sum_all_to_none", onReduce, 1, sumAllToNone,
			"a reduction over all dimensions does not list them: sum{axis=0,1}(X) → sum(X)"),
		rule(Canonicalize|Specialize, "local_sum_sum", onReduce, 2, sumSum,
			"a sum of sums is one sum, as for every reduction: sum{axis=0}(sum{axis=0}(t)) → sum{axis=0,1}(t)"),
		rule(Canonicalize, "local_cut_useless_reduce", onReduce, 1, cutUselessReduce,
			"a reduction over no dimension is its argument"),
		rule(Canonicalize|Uncanonicalize, "local_reduce_join", onReduce, 3, reduceJoin,
			"the reduction of a stack is computed element by element: sum(stack([x, y]), axis=0) → x + y"),
		rule(Canonicalize|Specialize|Uncanonicalize, "local_reduce_broadcastable", onReduce, 1, reduceBroadcastable,
			"dimensions of size 1 are dropped instead of reduced: sum(row, axis=0) → DimShuffle{1}(row)"),
		rule(Canonicalize|Specialize|unsafe, "local_sum_div_dimshuffle", onReduce, 3, sumDivDimShuffle,
			"a divisor that is repeated along the reduced dimensions divides the sum: sum(X/c, axis=0) → sum(X, axis=0)/c; "+
				"where c is 0 or infinite one of the two may be NaN"),
		rule(Canonicalize|Specialize|unsafe, "local_sum_mul_by_scalar", onReduce, 2, sumMulByScalar,
			"a scalar factor multiplies the sum: sum(s*x) → s*sum(x), sum(-x) → -sum(x); "+
				"where s is 0 or infinite one of the two may be NaN"),
		rule(Canonicalize|Specialize|unsafe, "local_sum_mul_dimshuffle", onReduce, 3, sumMulDimShuffle,
			"a factor that is repeated along the reduced dimensions multiplies the sum: sum(X*c[:, None], axis=1) → sum(X, axis=1)*c; "+
				"where c is 0 or infinite one of the two may be NaN"),
		rule(Canonicalize|Specialize, "local_reduce_make_vector", onReduce, 2, reduceMakeVector,
			"the reduction of a MakeVector is computed from its elements: sum(MakeVector(a, b)) → a + b"),
		rule(Specialize|unsafe, "local_sum_alloc", onReduce, 0, sumAlloc,
			"the sum of a filled tensor is a multiple of the value, and its product is a power: sum(Alloc(v, m, n)) → v*(m*n); "+
				"where v is NaN or infinite and a size is 0 the multiple is NaN"),
		rule(Specialize|unsafe, "local_argmax_pushdown", onType[tensor.ArgmaxOp](), 2, argmaxPushdown,
			"the largest probability is at the largest argument: argmax(softmax(x)) → argmax(x); "+
				"all probabilities are NaN where an argument is infinite"),
		rule(Uncanonicalize, "local_max_to_min", on(array.Neg, array.Mul), 3, maxToMin,
			"a minimum is written as one: -max(-x) → min(x)"),
	}
}

// reduceOf returns the operation of a reduction and the dimensions that it reduces.
func reduceOf(n *apply) (array.Reduction, array.Axes) {
	op := opOf[tensor.Reduce](n)
	return op.Op, op.Over(typeOf(n.Inputs()[0]).NDim())
}

// sumArgument returns the argument of a reduction, and the apply that computes it if the reduction
// is a sum, op computes the argument, and nothing else uses it. Otherwise the apply is nil.
func sumArgument(n *apply, op array.Opcode) (v *variable, a *apply) {
	v = n.Inputs()[0]
	if r, _ := reduceOf(n); r == array.Sum && usedOnce(v) {
		a = elem(v, op)
	}
	return v, a
}

// reduceOver applies a reduction over a set of dimensions.
func reduceOver(op array.Reduction, x *variable, axes array.Axes) *variable {
	if axes == 1<<typeOf(x).NDim()-1 {
		return tensor.MustApply(tensor.Reduce{Op: op, All: true}, x)
	}
	return tensor.MustApply(tensor.Reduce{Op: op, Axes: axes}, x)
}

// reduceList combines variables as a reduction combines elements, or returns nil if there is no
// single op for that.
func reduceList(r array.Reduction, list []*variable) *variable {
	switch {
	case r > array.Min, len(list) == 0, len(list) > 2 && r != array.Sum && r != array.Prod:
		return nil
	case len(list) == 1:
		return list[0]
	}
	return tensor.Map(r.Opcode(), list...)
}

func sumAllToNone(c *rewrite.Context, n *apply) (result, error) {
	op, axes := reduceOf(n)
	x := n.Inputs()[0]
	if opOf[tensor.Reduce](n).All || axes != 1<<typeOf(x).NDim()-1 {
		return c.Miss("it does not list all dimensions"), nil
	}
	return replace(c, n, reduceOver(op, x, axes))
}

func sumSum(c *rewrite.Context, n *apply) (result, error) {
	op, outer := reduceOf(n)
	v := n.Inputs()[0]
	a, inner, ok := owner[tensor.Reduce](v)
	if !ok || inner.Op != op || !usedOnce(v) {
		return c.Miss("the argument is not such a reduction, with a single use"), nil
	}
	x := a.Inputs()[0]
	axes := inner.Over(typeOf(x).NDim())
	kept := 0
	for d := range typeOf(x).NDim() {
		if axes.Has(d) {
			continue
		}
		if outer.Has(kept) {
			axes |= 1 << d
		}
		kept++
	}
	return replace(c, n, reduceOver(op, x, axes))
}

func cutUselessReduce(c *rewrite.Context, n *apply) (result, error) {
	if op, axes := reduceOf(n); axes != 0 || op == array.All || op == array.Any {
		return c.Miss("it reduces dimensions, or makes a bool"), nil
	}
	return replace(c, n, n.Inputs()[0])
}

func reduceBroadcastable(c *rewrite.Context, n *apply) (result, error) {
	op, axes := reduceOf(n)
	x := n.Inputs()[0]
	var rest array.Axes
	var order []int
	for d := range typeOf(x).NDim() {
		if axes.Has(d) && typeOf(x).Dim(d) == 1 {
			continue
		}
		if axes.Has(d) {
			rest |= 1 << len(order)
		}
		order = append(order, d)
	}
	if len(order) == typeOf(x).NDim() {
		return c.Miss("no reduced dimension is known to have size 1"), nil
	}
	y := tensor.DimShuffle(x, order...)
	if rest != 0 {
		y = reduceOver(op, y, rest)
	}
	return replace(c, n, y)
}

func reduceJoin(c *rewrite.Context, n *apply) (result, error) {
	op, axes := reduceOf(n)
	a, join, ok := owner[tensor.JoinOp](n.Inputs()[0])
	if !ok || join.Axis != 0 || axes != 1 || op > array.Min {
		return c.Miss("it does not reduce the dimension of a stack"), nil
	}
	rows := make([]*variable, len(a.Inputs()))
	for i, v := range a.Inputs() {
		rows[i] = stripPadding(v)
		if typeOf(v).NDim() != typeOf(rows[i]).NDim()+1 {
			return c.Miss("input %d of the join did not get a new dimension for it", i), nil
		}
		if !samePattern(v, a.Inputs()[0]) {
			return c.Miss("the inputs do not have one shape"), nil
		}
	}
	y := reduceList(op, rows)
	if y == nil {
		return c.Miss("there are more than two inputs"), nil
	}
	return replace(c, n, y)
}

func reduceMakeVector(c *rewrite.Context, n *apply) (result, error) {
	op, axes := reduceOf(n)
	a, _, ok := owner[tensor.MakeVectorOp](n.Inputs()[0])
	if !ok || axes == 0 {
		return c.Miss("it does not reduce a MakeVector"), nil
	}
	y := reduceList(op, a.Inputs())
	if y == nil {
		return c.Miss("there is no op for that many elements"), nil
	}
	return replace(c, n, y)
}

func sumDivDimShuffle(c *rewrite.Context, n *apply) (result, error) {
	_, axes := reduceOf(n)
	v, q := sumArgument(n, array.TrueDiv)
	if q == nil || axes == 0 {
		return c.Miss("it is not the sum of a quotient with a single use"), nil
	}
	num, den := q.Inputs()[0], q.Inputs()[1]
	kept := withoutAxes(den, axes)
	if kept == nil {
		return c.Miss("the divisor varies along the reduced dimensions"), nil
	}
	if !samePattern(num, v) {
		return c.Miss("the numerator does not have the shape of the quotient"), nil
	}
	return replace(c, n, tensor.TrueDiv(reduceOver(array.Sum, castTo(num, dtypeOf(v)), axes), kept))
}

// withoutAxes drops dimensions of v, or returns nil if one is not known to have size 1.
func withoutAxes(v *variable, axes array.Axes) *variable {
	var order []int
	for d := range typeOf(v).NDim() {
		if !axes.Has(d) {
			order = append(order, d)
		} else if typeOf(v).Dim(d) != 1 {
			return nil
		}
	}
	if a := tensor.ConstantOf(v); a != nil {
		return tensor.Constant(a.Transpose(order...).Clone())
	}
	return shuffled(v, tensor.NewDimShuffle(order...))
}

func sumMulByScalar(c *rewrite.Context, n *apply) (result, error) {
	_, axes := reduceOf(n)
	if _, a := sumArgument(n, array.Neg); a != nil {
		return replace(c, n, tensor.Neg(reduceOver(array.Sum, a.Inputs()[0], axes)))
	}
	v, a := sumArgument(n, array.Mul)
	if a == nil {
		return c.Miss("it is not the sum of a product with a single use"), nil
	}
	scalars, rest := partition(a.Inputs(), isScalar)
	if len(scalars) == 0 || len(rest) == 0 {
		return c.Miss("all factors are scalars, or none"), nil
	}
	x := rest[0]
	if len(rest) > 1 {
		x = computeAs(v, array.Mul, rest...)
	}
	if !samePattern(x, v) {
		return c.Miss("the other factors do not have the shape of the product"), nil
	}
	scalars = mapped(scalars, scalarFactor)
	sum := reduceOver(array.Sum, castTo(x, dtypeOf(v)), axes)
	if len(scalars) == 1 && is(scalars[0], -1) {
		return replace(c, n, tensor.Neg(sum))
	}
	return replace(c, n, tensor.Mul(append(scalars, sum)...))
}

// sumMulDimShuffle is the part of PyTensor's local_sum_prod_of_mul_or_div that Theano does not
// have.
func sumMulDimShuffle(c *rewrite.Context, n *apply) (result, error) {
	_, axes := reduceOf(n)
	v, a := sumArgument(n, array.Mul)
	if a == nil || axes == 0 {
		return c.Miss("it is not the sum of a product with a single use"), nil
	}
	isDimShuffle := func(v *variable) bool { _, _, ok := owner[tensor.DimShuffleOp](v); return ok }
	for i, f := range a.Inputs() {
		if !isDimShuffle(f) || !usedOnce(f) {
			continue
		}
		kept := withoutAxes(f, axes)
		if kept == nil || isDimShuffle(kept) { // a DimShuffle would be as much to do as before
			continue
		}
		x := product(without(a.Inputs(), i)...)
		if samePattern(x, v) && dtypeOf(x) == dtypeOf(n.Out()) && dtypeOf(v) == dtypeOf(x) {
			return replace(c, n, tensor.Mul(reduceOver(array.Sum, x, axes), kept))
		}
	}
	return c.Miss("no factor is repeated along the reduced dimensions by a DimShuffle that is not needed then"), nil
}

func sumAlloc(c *rewrite.Context, n *apply) (result, error) {
	op, axes := reduceOf(n)
	a, _, ok := owner[tensor.AllocOp](n.Inputs()[0])
	if !ok || op > array.Min || axes == 0 {
		return c.Miss("it is not the reduction of an Alloc"), nil
	}
	v := a.Inputs()[0]
	if !isScalar(v) {
		return c.Miss("the value is not a scalar"), nil
	}
	var kept, reduced []*variable
	for d, size := range a.Inputs()[1:] {
		if axes.Has(d) {
			reduced = append(reduced, size)
		} else {
			kept = append(kept, size)
		}
	}
	v = scalarOf(v)
	switch op {
	case array.Sum:
		v = combined(array.Mul, v, reduced, n.Out())
	case array.Prod:
		v = combined(array.Pow, v, reduced, n.Out())
	default: // a maximum or minimum, which is an error where a size is 0
		if slices.ContainsFunc(reduced, func(size *variable) bool { x, ok := uniform(size); return !ok || x <= 0 }) {
			return c.Miss("a size may be 0"), nil
		}
	}
	return replace(c, n, refilled(v, kept))
}

// combined combines a value with the product of sizes.
func combined(op array.Opcode, v *variable, sizes []*variable, out *variable) *variable {
	dtype := dtypeOf(out)
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

func maxToMin(c *rewrite.Context, n *apply) (result, error) {
	v := negated(n.Out())
	if v == nil || !isFloat(v) { // the negation of the smallest integer is itself
		return c.Miss("it is not a negation of floats"), nil
	}
	a, op, ok := owner[tensor.Reduce](v)
	if !ok || !usedOnce(v) || op.Op != array.Max && op.Op != array.Min {
		return c.Miss("the argument is not a maximum or minimum with a single use"), nil
	}
	x := negated(a.Inputs()[0])
	if x == nil {
		return c.Miss("it is not the maximum of a negation"), nil
	}
	if op.Op == array.Max {
		op.Op = array.Min
	} else {
		op.Op = array.Max
	}
	return replace(c, n, tensor.MustApply(op, x))
}

// argmaxPushdown does for the softmax what Theano's rule does for monotonous functions.
func argmaxPushdown(c *rewrite.Context, n *apply) (result, error) {
	op := opOf[tensor.ArgmaxOp](n)
	a, _, ok := owner[tensor.SoftmaxOp](n.Inputs()[0])
	last := typeOf(n.Inputs()[0]).NDim() - 1
	if !ok || (tensor.Reduce{Axes: op.Axes, All: op.All}).Over(last+1) != 1<<last {
		return c.Miss("it is not over the dimension of a softmax"), nil
	}
	return replace(c, n, tensor.MustApply(op, a.Inputs()[0]))
}
