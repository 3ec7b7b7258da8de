package tensorpass

import (
	"cmp"
	"slices"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// elemwiseFunctions are what the rules of element-wise ops ask.
var elemwiseFunctions = []pattern.Function{
	about("bool(x)", "the elements of x are bools", func(v *variable) bool { return dtypeOf(v) == array.Bool }),
	known("true(x)", "all elements of x are known to be one number other than 0", func(x float64) bool { return x != 0 }),
	pattern.NewGuardOfEach("size(x)", 3, "x is made of sizes of tensors and of numbers that are not negative: it is one, or a vector, sum, product, maximum or quotient of some",
		func(v *variable) bool { _, ok := tensor.LeastSize(v); return ok }),
	pattern.NewGuard("below(c, x)", 3, "the number c is less than any element that x can have, which is a size as in size(x)",
		toLeast(func(c, least float64) bool { return c < least })),
	pattern.NewGuard("at_most(c, x)", 3, "the number c is not greater than any element that x can have, which is a size as in size(x)",
		toLeast(func(c, least float64) bool { return c <= least })),
	pattern.NewGuard("has_type(x, {t})", 1, "t is the element type of x", func(a pattern.Args) bool { return dtypeOf(a.Vars[0]) == a.Params[0] }),
	pattern.NewGuard("lossless(x, {t})", 1, "the element type t has every value of the element type of x", func(a pattern.Args) bool {
		return a.Params[0].(array.DType).Holds(dtypeOf(a.Vars[0]))
	}),
	pattern.NewGuard("wraps_alike(x, {t}, {u})", 1, "x as a t, by wrapping around, is x as a u as a t: a float beyond the range of int32s is no small integer", func(a pattern.Args) bool {
		t, u := a.Params[0].(array.DType), a.Params[1].(array.DType)
		return !(u.IsFloat() && dtypeOf(a.Vars[0]) == array.Uint32 && t.IsInteger() && t.Size() < 4)
	}),
	pattern.NewGuard("odd({f})", 1, "f is an odd function: f(-x) = -f(x)", func(a pattern.Args) bool {
		switch a.Params[0].(tensor.Elemwise).Op {
		case array.Sgn, array.Sin, array.Tan, array.Arcsin, array.Arctan, array.Sinh, array.Tanh, array.Arcsinh, array.Arctanh,
			array.Erf, array.Deg2rad, array.Rad2deg, array.Trunc, array.Round:
			return true
		}
		return false
	}),
	pattern.NewGuardOfPairs("after(x, y)", 0, "x is no number, and was made after y, which is none either", func(x, y *variable) bool {
		return x.ID() > y.ID() && !x.IsConstant() && !y.IsConstant()
	}),
	pattern.NewGuard("fill({f})", 1, "f broadcasts a value to the shape of a model",
		func(a pattern.Args) bool { return a.Params[0].(tensor.Elemwise).Op == array.Second }),
	pattern.NewGuardOfPairs("switches(c, xs)", 2, "each of xs is a switch with the condition c",
		func(c, x *variable) bool { return argument(x, array.Switch) == c }),
	value("(yes s)", 2, "the branch of the switch s where its condition holds, with the element type of s", branch(1)),
	value("(no s)", 2, "the branch of the switch s where its condition does not hold, with the element type of s", branch(2)),
	pattern.NewGuard("reads(e, c)", 4, "e is c, or an element-wise op computes it of c, or of such a value", func(a pattern.Args) bool { return reads(a.Vars[0], a.Vars[1], 2) }),
	value("(if_true e c)", 4, "e where c is true", knowing(1)),
	value("(if_false e c)", 4, "e where c is 0", knowing(0)),
}

// elemwiseRules put chains in order.
var elemwiseRules = goRules{
	"local_order_maximum": {on(array.Maximum, array.Minimum), of(on(array.Maximum, array.Minimum)), 0, orderChain},
}

// orderChain computes the largest or smallest of three or more values in the order in which these were made, with
// numbers at the end, where rules of functions with bounds find them. Values of fewer elements are left alone: which come
// first is a matter of costs.
func orderChain(c *rewrite.Context, n *apply) (result, error) {
	op, _ := elemOf(n)
	z, out := &canonizer{main: op, inverse: array.NumOpcodes, reciprocal: array.NumOpcodes}, n.Out()
	if !slices.ContainsFunc(n.Inputs(), z.reaches) || !z.outermost(n) {
		return c.Miss("it is no chain, or part of a longer one"), nil
	}
	old, _ := z.terms(out)
	if slices.ContainsFunc(old, func(v *variable) bool {
		return dtypeOf(v) != dtypeOf(out) || !samePattern(v, out) && !v.IsConstant()
	}) {
		return c.Miss("its values have different types"), nil
	}
	terms := slices.Clone(old)
	slices.SortStableFunc(terms, func(v, w *variable) int {
		_, known := uniform(v)
		if _, too := uniform(w); known != too {
			return map[bool]int{true: 1, false: -1}[known]
		}
		return cmp.Compare(v.ID(), w.ID())
	})
	terms = slices.Compact(terms)
	if len(terms) < 3 || inOrder(op, out, terms) {
		return c.Miss("it has two values, or is in order"), nil
	}
	v := terms[0]
	for _, t := range terms[1:] {
		v = computeAs(out, op, v, t)
	}
	return replace(c, n, v, old...)
}

// inOrder reports whether v is computed of the first two terms, then of each of the others.
func inOrder(op array.Opcode, v *variable, terms []*variable) bool {
	for _, t := range slices.Backward(terms[1:]) {
		a := elem(v, op)
		if a == nil || !slices.Contains(a.Inputs(), t) {
			return false
		}
		if v = a.Inputs()[0]; v == t {
			v = a.Inputs()[1]
		}
	}
	return v == terms[0]
}

// reads reports whether element-wise ops compute e of c, of which there are at most depth in a row.
func reads(e, c *variable, depth int) bool {
	if e == c {
		return true
	}
	_, ok := tensor.OpOf(e).(tensor.Elemwise)
	return ok && depth > 0 && slices.ContainsFunc(e.Owner().Inputs(), func(x *variable) bool { return reads(x, c, depth-1) })
}

// knowing returns the function that replaces a condition in an expression by what it is known to be.
func knowing(k float64) func(pattern.Args) *variable {
	return func(a pattern.Args) *variable {
		c := a.Vars[1]
		var in func(e *variable, depth int) *variable
		in = func(e *variable, depth int) *variable {
			switch {
			case e == c:
				return number(k, c)
			case !reads(e, c, depth):
				return e
			}
			args := lists.Map(e.Owner().Inputs(), func(x *variable) *variable { return in(x, depth-1) })
			return tensor.MustApply(e.Owner().Op().(tensor.Elemwise), args...)
		}
		return in(a.Vars[0], 2)
	}
}

// branch returns the function that takes a branch of a switch.
func branch(input int) func(pattern.Args) *variable {
	return func(a pattern.Args) *variable {
		s := elem(a.Vars[0], array.Switch)
		if s == nil { // in saturation, another form may stand for the switch
			panic(&tensor.Error{Op: "switch", Arg: -1, Text: "it is computed otherwise"})
		}
		return castTo(s.Inputs()[input], dtypeOf(a.Vars[0]))
	}
}

// toLeast returns the guard that compares a number with the least element of a size.
func toLeast(compare func(c, least float64) bool) func(pattern.Args) bool {
	return func(a pattern.Args) bool {
		c, ok := uniform(a.Vars[0])
		least, ok2 := tensor.LeastSize(a.Vars[1])
		return ok && ok2 && compare(c, least)
	}
}
