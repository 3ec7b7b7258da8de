package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// linearRules are the rules of products of matrices that need no BLAS.
var linearRules = goRules{"local_dot_to_mul": {onOp(tensor.DotOp{}), nil, 0, dotToMul}}

func dotToMul(c *rewrite.Context, n *apply) (result, error) {
	x, y := n.Inputs()[0], n.Inputs()[1]
	last := typeOf(x).NDim() - 1
	if typeOf(x).Dim(last) != 1 && typeOf(y).Dim(0) != 1 {
		return c.Miss("it is not known to sum a single term"), nil
	}
	if !isScalar(x) && !isScalar(y) && last == 1 && typeOf(y).NDim() == 2 && (isExpanded(x) && isExpanded(y) || isTerm(n.Out())) {
		return c.Miss("it is an outer product, which Ger computes"), nil
	}
	x, y = withSingle(x, last), withSingle(y, 0)
	rows, cols := last == 1, typeOf(y).NDim() == 2 // what the result has
	switch {
	case rows && !cols:
		x = withoutAxes(x, 1<<last)
	case cols && !rows:
		y = withoutAxes(y, 1)
	}
	v := tensor.Mul(x, y)
	if !rows && !cols {
		v = withoutAxes(v, 1)
	}
	return replace(c, n, v)
}

// withSingle returns v with size 1 in a dimension, which is known to have no other.
func withSingle(v *variable, d int) *variable {
	sizes := typeOf(v).Shape()
	sizes[d] = 1
	return tensor.SpecifyShape(v, sizes...)
}

// isExpanded reports whether v is a vector with a new dimension.
func isExpanded(v *variable) bool {
	a, _, ok := owner[tensor.DimShuffleOp](v)
	return ok && typeOf(a.Inputs()[0]).NDim() == 1
}

// isTerm reports whether v, or a product with v as a factor, is a term of a sum with other terms.
func isTerm(v *variable) bool {
	for {
		client := onlyClient(v)
		if client == nil {
			return false
		}
		switch op, _ := elemOf(client); op {
		case array.Add, array.Sub:
			return true
		case array.Mul, array.Neg:
			v = client.Out()
		default:
			return false
		}
	}
}

func dot22ToDot22Scalar(c *rewrite.Context, n *apply) (result, error) {
	factors := n.Inputs()
	for i, f := range factors { // look into one nested product
		if m := elem(f, array.Mul); m != nil && usedOnce(f) && samePattern(f, n.Out()) && slices.ContainsFunc(m.Inputs(), isDot22) {
			factors = slices.Concat(factors[:i], m.Inputs(), factors[i+1:])
			break
		}
	}
	at := slices.IndexFunc(factors, isDot22)
	if at < 0 {
		return c.Miss("no factor is a product of matrices with a single use"), nil
	}
	d := factors[at].Owner()
	dtype := dtypeOf(d.Out())
	var scalars, rest []*variable
	for i, f := range factors {
		switch {
		case i == at:
			continue
		case scales(f, dtype):
			scalars = append(scalars, f)
			continue
		}
		own, others := partition(ownFactors(f), func(f *variable) bool { return scales(f, dtype) })
		if len(own) > 0 && dtypeOf(f) == dtype {
			scalars, f = append(scalars, own...), product(others...)
		}
		rest = append(rest, f)
	}
	if len(scalars) == 0 {
		return c.Miss("no factor is a scalar"), nil
	}
	alpha := product(mapped(scalars, func(f *variable) *variable { return castTo(scalarFactor(f), dtype) })...)
	y := tensor.MustApply(tensor.Dot22ScalarOp{}, d.Inputs()[0], d.Inputs()[1], alpha)
	return replace(c, n, product(slices.Insert(rest, 0, y)...))
}

// scales reports whether f is a scalar that can multiply a matrix of floats of a type without
// changing the type.
func scales(f *variable, dtype array.DType) bool {
	return isScalar(f) && array.Upcast(dtypeOf(f), dtype) == dtype
}

// isDot22 reports whether v is a product of matrices with a single use.
func isDot22(v *variable) bool {
	_, _, ok := owner[tensor.Dot22Op](v)
	return ok && usedOnce(v)
}
