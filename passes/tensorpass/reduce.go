package tensorpass

import (
	"math/bits"
	"slices"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// reduceRules are the rules of reductions.
var reduceRules = goRules{
	"local_sum_all_to_none":      {onReduce, nil, 1, sumAllToNone},
	"local_sum_sum":              {onReduce, of(onReduce), 2, sumSum},
	"local_cut_useless_reduce":   {onReduce, nil, 1, cutUselessReduce},
	"local_reduce_join":          {onReduce, of(onJoin), 3, reduceJoin},
	"local_reduce_broadcastable": {onReduce, nil, 1, reduceBroadcastable},
	"local_sum_div_dimshuffle":   {onReduce, of(on(array.TrueDiv)), 3, sumDivDimShuffle},
	"local_sum_mul_by_scalar":    {onReduce, of(on(array.Neg, array.Mul)), 2, sumMulByScalar},
	"local_sum_mul_dimshuffle":   {onReduce, of(on(array.Mul)), 3, sumMulDimShuffle},
	"local_reduce_make_vector":   {onReduce, of(onType[tensor.MakeVectorOp](), onElemwise), 3, reduceMakeVector},
	"local_reduce_dimshuffle":    {onReduce, of(onDimShuffle), 2, reduceDimShuffle},
	"local_sumsqr2dot":           {onReduce, of(on(array.Mul, array.Sqr, array.Pow)), 4, sumOfOuter},
	"local_sum_alloc":            {onReduce, of(onAlloc), 0, reduceAlloc(true)},
	"local_reduce_of_alloc":      {onReduce, of(onAlloc), 0, reduceAlloc(false)},
}

var onReduce = onType[tensor.Reduce]()

// reduceFunctions are what the rules of reductions ask.
var reduceFunctions = []pattern.Function{
	pattern.NewGuard("along_last({a}, x)", 1, "the argmax a of x is along the last dimension only", func(a pattern.Args) bool {
		op, n := a.Params[0].(tensor.ArgmaxOp), typeOf(a.Vars[0]).NDim()
		return tensor.Reduce{Axes: op.Axes, All: op.All}.Over(n) == 1<<n>>1
	}),
}

// reduceOf returns the operation of a reduction and the dimensions that it reduces.
func reduceOf(n *apply) (array.Reduction, array.Axes) {
	op := opOf[tensor.Reduce](n)
	return op.Op, op.Over(typeOf(n.Inputs()[0]).NDim())
}

// reduceOver applies a reduction over a set of dimensions.
func reduceOver(op array.Reduction, x *variable, axes array.Axes) *variable {
	if axes == 1<<typeOf(x).NDim()-1 {
		return tensor.MustApply(tensor.Reduce{Op: op, All: true}, x)
	}
	return tensor.MustApply(tensor.Reduce{Op: op, Axes: axes}, x)
}

// reduceList combines variables as a reduction combines elements, in the type of its result, or
// returns nil if there is no single op for that.
func reduceList(r array.Reduction, list []*variable, out *variable) *variable {
	switch {
	case r > array.Min, len(list) == 0, len(list) > 2 && r != array.Sum && r != array.Prod:
		return nil
	case len(list) == 1:
		return list[0]
	}
	return computeAs(out, r.Opcode(), list...)
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

func reduceDimShuffle(c *rewrite.Context, n *apply) (result, error) {
	op, axes := reduceOf(n)
	a, ds, ok := owner[tensor.DimShuffleOp](n.Inputs()[0])
	if !ok || axes == 0 {
		return c.Miss("the argument is not a DimShuffle"), nil
	}
	x := a.Inputs()[0]
	var inner array.Axes
	var kept []int // the dimensions of x that are left, in the order of the result
	for d, from := range ds.NewOrder() {
		switch {
		case !axes.Has(d):
			kept = append(kept, from)
		case from == array.NewAxis:
			return c.Miss("it reduces a dimension that is not one of x"), nil
		default:
			inner |= 1 << from
		}
	}
	if len(kept) != typeOf(x).NDim()-bits.OnesCount8(uint8(inner)) || !slices.IsSorted(kept) || slices.Contains(kept, array.NewAxis) {
		return c.Miss("a DimShuffle would be left"), nil
	}
	return replace(c, n, reduceOver(op, x, inner))
}

func reduceJoin(c *rewrite.Context, n *apply) (result, error) {
	op, axes := reduceOf(n)
	a, join, ok := owner[tensor.JoinOp](n.Inputs()[0])
	if !ok || axes != 1<<join.Axis || op > array.Min {
		return c.Miss("it does not reduce the dimension of a stack"), nil
	}
	rows := make([]*variable, len(a.Inputs()))
	for i, v := range a.Inputs() {
		_, ds, ok := owner[tensor.DimShuffleOp](v)
		if !ok || ds.NewOrder()[join.Axis] != array.NewAxis || !samePattern(v, a.Inputs()[0]) {
			return c.Miss("input %d of the join did not get a new dimension for it, or has another shape than the first", i), nil
		}
		rows[i] = withoutAxes(v, axes)
	}
	return replace(c, n, reduceList(op, rows, n.Out()))
}

func reduceMakeVector(c *rewrite.Context, n *apply) (result, error) {
	op, axes := reduceOf(n)
	v := n.Inputs()[0]
	a, _, ok := owner[tensor.MakeVectorOp](v)
	if x := argument(v, array.Cast); x != nil {
		a, _, ok = owner[tensor.MakeVectorOp](x)
	}
	if !ok || axes == 0 {
		return c.Miss("it does not reduce a MakeVector, or one whose elements are converted"), nil
	}
	elements := mapped(a.Inputs(), func(e *variable) *variable { return castTo(e, dtypeOf(v)) })
	return replace(c, n, reduceList(op, elements, n.Out()))
}

// reduceAlloc returns the function that reduces what an Alloc repeats: a scalar, or a tensor that
// has dimensions of its own.
func reduceAlloc(scalars bool) transform {
	return func(c *rewrite.Context, n *apply) (result, error) {
		op, axes := reduceOf(n)
		a, _, ok := owner[tensor.AllocOp](n.Inputs()[0])
		if !ok || op > array.Any || axes == 0 {
			return c.Miss("it is not the reduction of an Alloc"), nil
		}
		v, sizes := a.Inputs()[0], a.Inputs()[1:]
		if isScalar(v) != scalars {
			return c.Miss("another rule reduces a value like this"), nil
		}
		padding := len(sizes) - typeOf(v).NDim()
		var repeats, others []*variable
		var own, single array.Axes // dimensions of v that are reduced: those that are not repeated, and the others
		for d, size := range sizes {
			switch at := d - padding; {
			case !axes.Has(d):
				others = append(others, size)
			case at >= 0 && typeOf(v).Dim(at) != 1:
				own |= 1 << at
			default:
				repeats = append(repeats, size)
				if at >= 0 {
					single |= 1 << at
				}
			}
		}
		var nonempty []*variable // conditions: a maximum of nothing is an error
		for _, size := range repeats {
			n, ok := uniform(size)
			switch {
			case op == array.Sum || op == array.Prod || ok && n > 0:
			case ok || op == array.All || op == array.Any: // which are known of nothing
				return c.Miss("a size may be 0"), nil
			default:
				nonempty = append(nonempty, tensor.Map(array.Gt, size, tensor.Int(0)))
			}
		}
		w := withoutAxes(v, single)
		if own != 0 || (op == array.All || op == array.Any) && dtypeOf(w) != array.Bool {
			w = reduceOver(op, w, renumbered(own, single))
		}
		w = castTo(w, dtypeOf(n.Out()))
		total := tensor.Int(1)
		for _, size := range repeats {
			total = combined(array.Mul, total, size)
		}
		switch {
		case is(total, 1):
		case op == array.Sum:
			w = tensor.Mul(w, tensor.Cast(total, dtypeOf(w)))
		case op == array.Prod:
			w = tensor.Pow(w, tensor.Cast(total, dtypeOf(w)))
		}
		if !n.Out().Type().Accepts(w.Type()) {
			w = refilled(w, others)
		}
		return replace(c, n, provided(w, "a maximum or minimum of no elements", nonempty...))
	}
}

// renumbered returns the numbers that dimensions have when others are dropped.
func renumbered(axes, dropped array.Axes) array.Axes {
	var r array.Axes
	next := 0
	for d := range array.MaxDims {
		if dropped.Has(d) {
			continue
		}
		if axes.Has(d) {
			r |= 1 << next
		}
		next++
	}
	return r
}
