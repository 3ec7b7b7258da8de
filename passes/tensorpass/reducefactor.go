package tensorpass

import (
	"math/bits"
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// sumArgument returns the argument of a reduction, and the apply that computes it if the reduction
// is a sum, op computes the argument, and nothing else uses it. Otherwise the apply is nil.
func sumArgument(n *apply, op array.Opcode) (v *variable, a *apply) {
	v = n.Inputs()[0]
	if r, _ := reduceOf(n); r == array.Sum && usedOnce(v) {
		a = elem(v, op)
	}
	return v, a
}

func sumDivDimShuffle(c *rewrite.Context, n *apply) (result, error) {
	_, axes := reduceOf(n)
	v, q := sumArgument(n, array.TrueDiv)
	if q == nil || axes == 0 {
		return c.Miss("it is not the sum of a quotient with a single use"), nil
	}
	num, den := q.Inputs()[0], q.Inputs()[1]
	kept := withoutAxes(den, axes)
	if kept == nil || !samePattern(num, v) {
		return c.Miss("the divisor varies along the reduced dimensions, or has dimensions that the numerator has not"), nil
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
	op, axes := reduceOf(n)
	if op == array.Prod {
		return prodOfNegations(c, n, axes)
	}
	if v := n.Inputs()[0]; !isWide(v) {
		return c.Miss("the terms wrap around in a smaller type than the sum"), nil
	}
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
	scalars = mapped(scalars, scalarFactor)
	sum := reduceOver(array.Sum, castTo(products.join(rest, nil, v), dtypeOf(v)), axes)
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

// prodOfNegations leaves other factors alone, as their powers may be infinite, or too small to have
// all digits.
func prodOfNegations(c *rewrite.Context, n *apply, axes array.Axes) (result, error) {
	v := n.Inputs()[0]
	x := negated(v)
	if x == nil || axes == 0 || !isFloat(x) || !usedOnce(v) {
		return c.Miss("it is not the product of negations of floats with a single use"), nil
	}
	odd := true
	for d, size := range typeOf(v).Shape() {
		if axes.Has(d) && size == tensor.Unknown {
			return c.Miss("the number of elements is not known"), nil
		}
		odd = odd && (!axes.Has(d) || size%2 != 0)
	}
	y := reduceOver(array.Prod, x, axes)
	if odd {
		y = tensor.Neg(y)
	}
	return replace(c, n, y)
}

// sumOfOuter is PyTensor's local_sumsqr2dot, which knows only its example, for all dimensions and
// also without the square.
func sumOfOuter(c *rewrite.Context, n *apply) (result, error) {
	op, axes := reduceOf(n)
	v := n.Inputs()[0]
	p, squared := v, false
	if x := rootOfSquare(v); x != nil && usedOnce(x) {
		p, squared = x, true
	}
	a := elem(p, array.Mul)
	other := func(f *variable) bool { return dtypeOf(f) != dtypeOf(v) }
	if op != array.Sum || !isFloat(v) || !usedOnce(v) || a == nil || len(a.Inputs()) != 2 || slices.ContainsFunc(a.Inputs(), other) {
		return c.Miss("it is not the sum of a product of two factors of one type, with a single use"), nil
	}
	f, g := a.Inputs()[0], a.Inputs()[1]
	var ownF, ownG, both array.Axes
	for d := range typeOf(v).NDim() {
		inF, inG := typeOf(f).Dim(d) != 1, typeOf(g).Dim(d) != 1
		switch {
		case inF && inG:
			both |= 1 << d
		case inF:
			ownF |= 1 << d
		case inG:
			ownG |= 1 << d
		default:
			return c.Miss("a dimension has size 1"), nil
		}
	}
	switch keptF, keptG := ownF&^axes, ownG&^axes; {
	case ownF == 0 || ownG == 0 || bits.OnesCount8(uint8(both)) != 1 || both&axes == 0 || keptF&(keptF-1) != 0 || keptG&(keptG-1) != 0:
		return c.Miss("the factors do not have one dimension in common, which is reduced, and at most one each that is not"), nil
	case keptF == 0 || keptG != 0 && keptG < keptF:
		f, g, ownF, ownG = g, f, ownG, ownF
	}
	factor := func(v *variable, others, own array.Axes, left bool) *variable {
		v = withoutAxes(v, others)
		if squared {
			v = tensor.Sqr(v)
		}
		if own&axes != 0 {
			v = reduceOver(array.Sum, v, renumbered(own&axes, others))
		}
		if kept := own &^ axes; kept != 0 && left != (kept < both) { // the common dimension is the last on the left, and the first on the right
			v = transposed(v)
		}
		return v
	}
	return replace(c, n, tensor.Dot(factor(f, ownG, ownF, true), factor(g, ownF, ownG, false)))
}

// rootOfSquare returns x if v is the square of x, and else nil.
func rootOfSquare(v *variable) *variable {
	if x := argument(v, array.Sqr); x != nil {
		return x
	}
	if a := elem(v, array.Pow); a != nil && is(a.Inputs()[1], 2) && samePattern(a.Inputs()[0], v) {
		return a.Inputs()[0]
	}
	return nil
}
