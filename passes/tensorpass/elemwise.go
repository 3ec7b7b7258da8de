package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// elemwiseFunctions are what the rules of element-wise ops ask.
var elemwiseFunctions = []pattern.Function{
	about("bool(x)", "the elements of x are bools", func(v *variable) bool { return dtypeOf(v) == array.Bool }),
	known("true(x)", "all elements of x are known to be one number other than 0", func(x float64) bool { return x != 0 }),
	{Name: "size", Usage: "size(x)", Depth: 3, Doc: "x is a size of a tensor, or a vector, sum or product of sizes and of numbers that are not negative",
		Holds: func(a pattern.Args) bool {
			return !slices.ContainsFunc(a.Vars, func(v *variable) bool { _, ok := leastSize(v); return !ok })
		}},
	{Name: "below", Usage: "below(c, x)", Depth: 3, Doc: "the number c is less than any element that x can have, which is a size as in size(x)",
		Holds: toLeast(func(c, least float64) bool { return c < least })},
	{Name: "at_most", Usage: "at_most(c, x)", Depth: 3, Doc: "the number c is not greater than any element that x can have, which is a size as in size(x)",
		Holds: toLeast(func(c, least float64) bool { return c <= least })},
	{Name: "has_type", Usage: "has_type(x, {t})", Depth: 1, Doc: "t is the element type of x",
		Holds: func(a pattern.Args) bool { return dtypeOf(a.Vars[0]) == a.Params[0] }},
	{Name: "lossless", Usage: "lossless(x, {t})", Depth: 1, Doc: "the element type t has every value of the element type of x",
		Holds: func(a pattern.Args) bool {
			from, to := dtypeOf(a.Vars[0]), a.Params[0].(array.DType)
			return from <= to && !(from == array.Int64 && to.IsFloat())
		}},
	{Name: "odd", Usage: "odd({f})", Depth: 1, Doc: "f is an odd function: f(-x) = -f(x)",
		Holds: func(a pattern.Args) bool {
			switch a.Params[0].(tensor.Elemwise).Op {
			case array.Sgn, array.Sin, array.Tan, array.Arcsin, array.Arctan, array.Sinh, array.Tanh, array.Arcsinh, array.Arctanh,
				array.Erf, array.Deg2rad, array.Rad2deg, array.Trunc, array.Round:
				return true
			}
			return false
		}},
	{Name: "fill", Usage: "fill({f})", Depth: 1, Doc: "f broadcasts a value to the shape of a model",
		Holds: func(a pattern.Args) bool { return a.Params[0].(tensor.Elemwise).Op == array.Second }},
	{Name: "switches", Usage: "switches(c, xs)", Depth: 2, Doc: "each of xs is a switch with the condition c",
		Holds: func(a pattern.Args) bool {
			return !slices.ContainsFunc(a.Vars[1:], func(v *variable) bool { return argument(v, array.Switch) != a.Vars[0] })
		}},
	{Name: "yes", Usage: "(yes s)", Depth: 2, Doc: "the branch of the switch s where its condition holds, with the element type of s", Build: branch(1)},
	{Name: "no", Usage: "(no s)", Depth: 2, Doc: "the branch of the switch s where its condition does not hold, with the element type of s", Build: branch(2)},
}

// branch returns the function that takes a branch of a switch.
func branch(input int) func(pattern.Args) (*variable, error) {
	return func(a pattern.Args) (*variable, error) {
		s := a.Vars[0]
		return castTo(s.Owner().Inputs()[input], dtypeOf(s)), nil
	}
}

// toLeast returns the guard that compares a number with the least element of a size.
func toLeast(compare func(c, least float64) bool) func(pattern.Args) bool {
	return func(a pattern.Args) bool {
		c, ok := uniform(a.Vars[0])
		least, ok2 := leastSize(a.Vars[1])
		return ok && ok2 && compare(c, least)
	}
}

// leastSize returns a number that no element of v is below, if v is a size, a vector of sizes, or a sum
// or product of sizes and numbers. A size is not negative.
func leastSize(v *variable) (float64, bool) {
	a := v.Owner()
	if a == nil {
		return 0, false
	}
	least := func(v *variable) (float64, bool) {
		if _, _, ok := owner[tensor.ShapeIOp](v); ok {
			return 0, true
		}
		k, ok := uniform(v)
		return k, ok && k >= 0 && !isFloat(v)
	}
	e, _ := a.Op().(tensor.Elemwise)
	_, vector := a.Op().(tensor.MakeVectorOp)
	switch {
	case !vector && e.Op != array.Add && e.Op != array.Mul, isFloat(v), len(a.Inputs()) == 0:
		if _, ok := a.Op().(tensor.ShapeOp); ok {
			return 0, true
		}
		return least(v)
	}
	all := 0.0
	for i, in := range a.Inputs() {
		k, ok := least(in)
		switch {
		case !ok:
			return 0, false
		case i == 0 || vector && k < all:
			all = k
		case e.Op == array.Add && !vector:
			all += k
		case e.Op == array.Mul && !vector:
			all *= k
		}
	}
	return all, true
}
