package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// maxOfSizes bounds the operations of a number of sizes.
const maxOfSizes = 64

// ofSizes reports whether v is one number that is computed of sizes alone, such as the divisor of a mean.
// Where sizes are known it is a constant.
func ofSizes(v *variable) bool {
	if v.Owner() == nil || !isScalar(v) {
		return false
	}
	found := false
	todo := []*variable{v}
	for seen := 0; len(todo) > 0; seen++ {
		v, todo = todo[len(todo)-1], todo[:len(todo)-1]
		a, _, moves := owner[tensor.DimShuffleOp](v)
		if moves {
			todo = append(todo, a.Inputs()[0])
			continue
		}
		if _, ok := uniform(v); ok {
			continue
		}
		switch op, ok := elemOf(a); {
		case isSize(v):
			found = true
		case !ok || op == array.Abs || seen >= maxOfSizes: // absolute values are dropped first, as of constants
			return false
		default:
			todo = append(todo, a.Inputs()...)
		}
	}
	return found
}

// isSize reports whether v is a size of a tensor.
func isSize(v *variable) bool {
	_, ok := tensor.OpOf(v).(tensor.ShapeIOp)
	return ok
}

// isFixed reports whether v is one number that is known when sizes are.
func isFixed(v *variable) bool {
	_, ok := uniform(v)
	return ok && isScalar(v) || ofSizes(v)
}

// constantsOfSizes is constants for lists with numbers of sizes: these and the constants become one scalar in
// front of num. It is computed by the steps in which calculate computes a constant, so that a function for
// all sizes has the bits of functions for each. It reports false if there is nothing to do.
func (z *canonizer) constantsOfSizes(num, den []*variable, out *variable) ([]*variable, []*variable, bool) {
	if !isFloat(out) || !slices.ContainsFunc(num, ofSizes) && !slices.ContainsFunc(den, ofSizes) {
		return nil, nil, false
	}
	numct, restNum := partition(num, isFixed)
	denct, restDen := partition(den, isFixed)
	if len(denct) == 0 && len(numct) == 1 && num[0] == numct[0] {
		return nil, nil, false
	}
	total := full(dtypeOf(out), z.neutral)
	if len(numct) > 0 {
		total, numct = castTo(stripPadding(numct[0]), dtypeOf(out)), numct[1:]
	}
	for _, v := range numct {
		total = tensor.Map(z.main, total, castTo(stripPadding(v), dtypeOf(out)))
	}
	for _, v := range denct {
		total = tensor.Map(z.inverse, total, castTo(stripPadding(v), dtypeOf(out)))
	}
	// A number that is too long to be seen as one would be taken apart, and made again, for ever.
	return append([]*variable{total}, restNum...), restDen, ofSizes(total)
}
