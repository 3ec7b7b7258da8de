package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// linearRules are the rules of products of matrices that need no BLAS.
var linearRules = goRules{
	"local_dot_to_mul":     {onOp(tensor.DotOp{}), nil, 0, dotToMul},
	"local_dot_of_one_hot": {slices.Concat(onOp(tensor.DotOp{}), onOp(tensor.Dot22Op{})), of(onElemwise), 3, dotOfOneHot},
}

func dotToMul(c *rewrite.Context, n *apply) (result, error) {
	x, y := n.Inputs()[0], n.Inputs()[1]
	last := typeOf(x).NDim() - 1
	if typeOf(x).Dim(last) != 1 && typeOf(y).Dim(0) != 1 {
		return c.Miss("it is not known to sum a single term"), nil
	}
	if !isScalar(x) && !isScalar(y) && last == 1 && typeOf(y).NDim() == 2 && (isExpanded(x) && isExpanded(y) || isTerm(n.Out())) {
		return c.Miss("it is an outer product, which Ger computes"), nil
	}
	if isScaled(n.Out()) {
		return c.Miss("a scalar multiplies it, which would be one factor of three, with other bits"), nil
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

func dotOfOneHot(c *rewrite.Context, n *apply) (result, error) {
	x, weights := n.Inputs()[0], tensor.ConstantOf(n.Inputs()[1])
	if weights == nil || weights.NDim() != 2 || typeOf(x).NDim() != 2 || weights.DType() != dtypeOf(n.Out()) || !weights.DType().IsFloat() {
		return c.Miss("the second factor is no constant matrix of floats"), nil
	}
	rows, cols := weights.Dim(0), weights.Dim(1)
	index := hotIndex(x, rows)
	if index == nil {
		return c.Miss("the rows of the first factor are not of one 1 among zeros"), nil
	}
	table := array.New(weights.DType(), rows+1, cols) // the last row is for indexes out of range
	for i := range weights.Len() {
		v := weights.Float(i)
		if v-v != 0 {
			return c.Miss("0 times an element is NaN"), nil
		}
		table.SetFloat(i, v+0) // a sum that begins with 0 is not -0
	}
	index = tensor.Cast(withoutAxes(index, 2), array.Int64)
	inside := tensor.Map(array.And, tensor.Map(array.Ge, index, tensor.Int(0)), tensor.Map(array.Lt, index, tensor.Int(rows)))
	return replace(c, n, tensor.Take(tensor.Constant(table), tensor.Switch(inside, index, tensor.Int(rows))))
}

// hotIndex returns the column of integers that tells where in each of n columns the only 1 of x is, nil if that is not so.
func hotIndex(x *variable, n int) *variable {
	cast := elem(x, array.Cast)
	if cast == nil {
		return nil
	}
	eq := elem(cast.Inputs()[0], array.Eq)
	if eq == nil {
		return nil
	}
	for k, v := range eq.Inputs() {
		index, columns := eq.Inputs()[1-k], tensor.ConstantOf(v)
		counts := columns != nil && typeOf(v).Dim(0) == 1 && columns.Dim(1) == n && isInteger(index) && typeOf(index).Dim(1) == 1
		for i := 0; counts && i < n; i++ {
			counts = columns.Float(i) == float64(i)
		}
		if counts {
			return index
		}
	}
	return nil
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

// isScaled reports whether the only reader of v multiplies it by a scalar.
func isScaled(v *variable) bool {
	client := onlyClient(v)
	if client == nil {
		return false
	}
	op, _ := elemOf(client)
	return op == array.Mul && slices.ContainsFunc(client.Inputs(), func(x *variable) bool { return x != v && isScalar(x) })
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
