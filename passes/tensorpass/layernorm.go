package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// isProductOfRows reports whether an element-wise product is one of float32s.
func isProductOfRows(a *apply) bool {
	return len(a.Inputs()) > 1 && dtypeOf(a.Out()) == array.Float32
}

// normalized makes one op of what standardizes rows, step by step, with a gain and a bias that follow: it returns what
// takes the place of a product that standardizes rows, and of which variable: the product, or the sum with a bias. It is
// no text rule because a rule can't say where the sizes of 1 are put back, nor take two factors out of a product of any.
func normalized(a *apply) (of, v *variable) {
	factors := a.Inputs()
	var x *variable
	var op tensor.LayerNormOp
	for k := range 2 { // which of the first two factors is the difference
		if x, op = standardized(factors[k], factors[1-k]); x != nil {
			break
		}
	}
	if x == nil || !slices.Equal(typeOf(x).Shape(), typeOf(a.Out()).Shape()) {
		return nil, nil
	}
	// Products and sums of several go from left to right, so what follows must be next.
	in, rest := []*variable{x}, factors[2:]
	if len(rest) > 0 && isRowFor(rest[0], x) {
		in, rest = append(in, rest[0]), rest[1:]
	}
	of = a.Out()
	if sum := onlyClient(of); len(rest) == 0 && len(in) == 2 && sum != nil && elem(sum.Out(), array.Add) != nil {
		terms := sum.Inputs()
		for k := range 2 {
			if b := terms[1-k]; len(terms) >= 2 && terms[k] == of && isRowFor(b, x) {
				v = tensor.MustApply(op, append(in, b)...)
				return sum.Out(), followedBy(array.Add, v, terms[2:])
			}
		}
	}
	return of, followedBy(array.Mul, tensor.MustApply(op, in...), rest)
}

// followedBy returns v with more terms or factors.
func followedBy(op array.Opcode, v *variable, rest []*variable) *variable {
	if len(rest) == 0 {
		return v
	}
	return tensor.Map(op, append([]*variable{v}, rest...)...)
}

// isRowFor reports whether v has a number for each column of x, and nothing else.
func isRowFor(v, x *variable) bool {
	n := typeOf(x).NDim()
	if typeOf(v).NDim() != n || dtypeOf(v) != array.Float32 || typeOf(v).Dim(n-1) != typeOf(x).Dim(n-1) || typeOf(v).Dim(n-1) == tensor.Unknown {
		return false
	}
	return !slices.ContainsFunc(typeOf(v).Shape()[:n-1], func(size int) bool { return size != 1 })
}

// standardized returns x and the op if d is x less its mean and r is 1 by the root of the mean square of d
// plus a number.
func standardized(d, r *variable) (x *variable, op tensor.LayerNormOp) {
	difference := elem(d, array.Sub)
	if difference == nil || len(d.Clients()) > 2 {
		return nil, op
	}
	x = difference.Inputs()[0]
	root := argument(r, array.Inv)
	if root == nil {
		return nil, op
	}
	sum := argument(root, array.Sqrt)
	if sum == nil || elem(sum, array.Add) == nil || len(sum.Owner().Inputs()) != 2 {
		return nil, op
	}
	for k, eps := range sum.Owner().Inputs() {
		e, known := oneNumber(eps)
		if !known {
			continue
		}
		square, divisor := meanOf(sum.Owner().Inputs()[1-k])
		of, n := meanOf(difference.Inputs()[1])
		if square != nil && argument(square, array.Sqr) == d && of == x && n == divisor {
			return x, tensor.LayerNormOp{Divisor: n, Eps: e}
		}
	}
	return nil, op
}

// meanOf returns what a variable is the sum of along the last dimension, which it has kept with size 1,
// divided by a number, and that.
func meanOf(v *variable) (x *variable, divisor float32) {
	n, divided := typeOf(v).NDim(), false
	for v.Owner() != nil {
		a := v.Owner()
		switch op := a.Op().(type) {
		case tensor.DimShuffleOp:
			if from := typeOf(a.Inputs()[0]).NDim(); from != n-1 || !slices.Equal(op.NewOrder(), append(upTo(from), array.NewAxis)) {
				return nil, 0
			}
			v = a.Inputs()[0]
		case tensor.Reduce:
			x = a.Inputs()[0]
			if !divided || op.All || op.Op != array.Sum || op.Axes != 1<<(n-1) || typeOf(x).NDim() != n || typeOf(v).NDim() != n-1 || dtypeOf(v) != array.Float32 {
				return nil, 0
			}
			return x, divisor
		default:
			if divided || elem(v, array.TrueDiv) == nil {
				return nil, 0
			}
			number, known := oneNumber(a.Inputs()[1])
			if !known || dtypeOf(a.Inputs()[1]) != array.Float32 {
				return nil, 0
			}
			v, divisor, divided = a.Inputs()[0], number, true
		}
	}
	return nil, 0
}

// oneNumber returns the number that all elements of a constant of float32s are.
func oneNumber(v *variable) (float32, bool) {
	c := tensor.ConstantOf(v)
	if c == nil || c.DType() != array.Float32 || c.Len() != 1 {
		return 0, false
	}
	x := float32(c.Float(0))
	return x, x == x // an op is equal to itself
}
