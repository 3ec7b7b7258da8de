package tensorpass

import (
	"maps"
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// elemwiseRules lists the rules that remove element-wise ops which do nothing, or nothing new.
func elemwiseRules() []Local {
	return []Local{
		rule(Canonicalize|Specialize|Useless, "local_useless_elemwise", on(array.Identity, array.Add, array.Mul, array.Eq, array.Neq,
			array.And, array.Or, array.Xor, array.Maximum, array.Minimum), 2, uselessElemwise,
			"ops that return an argument, or whose result is known, are removed: "+
				"identity(x) → x, add(x) → x, eq(n, n) → 1 for integers, a and True → a, n | 0 → n"),
		rule(Canonicalize|Specialize|Useless|unsafe, "local_useless_elemwise_comparison", on(array.Lt, array.Le, array.Gt, array.Ge,
			array.Eq, array.Neq, array.Maximum, array.Minimum), 2, uselessComparison,
			"comparisons whose result is known: x < x → 0, x == x → 1, also where x is NaN; shape < 0 → 0, max(shape, 0) → shape"),
		rule(Canonicalize|Specialize, "local_cast_cast", onType[tensor.Elemwise](), 2, castCast,
			"one of two casts is enough if the first one loses nothing: cast(cast(x, d), d) → cast(x, d)"),
		rule(Canonicalize|Specialize|unsafe, "local_func_inv", on(invertible()...), 2, funcInv,
			"a function of its inverse is the argument: log(exp(x)) → x, sinh(arcsinh(x)) → x, "+
				"also where the inverse was NaN or infinite: tanh(arctanh(2)) → 2"),
		rule(Canonicalize, "local_upcast_elemwise_constant_inputs", onType[tensor.Elemwise](), 1, upcastConstantInputs,
			"constants get the element type of the result, so that 1 - x and 1.0 - x are merged"),
		rule(Canonicalize|Useless, "local_remove_switch_const_cond", on(array.Switch), 2, removeSwitchConstCond,
			"a switch with a known condition is one of its branches: switch(1, x, y) → x"),
		rule(Canonicalize|Specialize|Useless, "local_useless_switch", on(array.Switch), 1, uselessSwitch,
			"a switch with equal branches is the branch: switch(c, x, x) → x"),
		rule(Canonicalize|Specialize|unsafe, "local_mul_switch_sink", on(array.Mul), 2, mulSwitchSink,
			"a product moves into a switch that has a branch of 0: a*switch(c, 0, b) → switch(c, 0, a*b), also where a is NaN or infinite"),
		rule(Canonicalize|Specialize|unsafe, "local_div_switch_sink", on(array.TrueDiv, array.IntDiv), 2, divSwitchSink,
			"a quotient moves into a switch that has a branch of 0: switch(c, 0, a)/b → switch(c, 0, a/b), also where b is zero, NaN or infinite"),
		rule(Canonicalize|Specialize, "local_merge_switch_same_cond", on(array.Add, array.Sub, array.Mul, array.TrueDiv, array.IntDiv,
			array.Mod, array.Pow, array.Maximum, array.Minimum, array.Eq, array.Neq, array.Lt, array.Le, array.Gt, array.Ge,
			array.And, array.Or, array.Xor), 2, mergeSwitchSameCond,
			"switches with one condition become one: switch(c, a, b) + switch(c, d, e) → switch(c, a + d, b + e)"),
	}
}

// uselessElemwise leaves comparisons of floats with themselves to uselessComparison.
func uselessElemwise(c *rewrite.Context, n *apply) (result, error) {
	op, _ := elemOf(n)
	in, out := n.Inputs(), n.Out()
	if len(in) == 1 {
		return replace(c, n, in[0])
	}
	if len(in) > 2 || op == array.Add || op == array.Mul {
		return c.Miss("it has several terms"), nil
	}
	if in[0] == in[1] {
		switch op {
		case array.Eq, array.Neq:
			if !isFloat(in[0]) {
				return replace(c, n, number(truth(op == array.Eq), out), in...)
			}
		case array.Xor:
			return replace(c, n, number(0, out), in...)
		default:
			return replace(c, n, in[0])
		}
	} else if op == array.And || op == array.Or || op == array.Xor {
		if dtypeOf(out) == array.Bool {
			return logicWithConstant(c, n, op)
		}
		neutral := 0.0
		if op == array.And {
			neutral = -1 // all bits
		}
		for i, v := range in {
			if is(v, neutral) {
				return replace(c, n, in[1-i], in...)
			}
		}
	}
	return c.Miss("nothing is known about the result"), nil
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// logicWithConstant simplifies and, or and xor of bools of which one is known.
func logicWithConstant(c *rewrite.Context, n *apply, op array.Opcode) (result, error) {
	for i, v := range n.Inputs() {
		x, ok := uniform(v)
		if !ok {
			continue
		}
		y := n.Inputs()[1-i]
		switch {
		case op == array.And && x == 0, op == array.Or && x != 0:
			y = number(x, n.Out())
		case op == array.Xor && x != 0:
			y = tensor.Map(array.Invert, y)
		}
		return replace(c, n, y, n.Inputs()...)
	}
	return c.Miss("neither argument is known"), nil
}

func uselessComparison(c *rewrite.Context, n *apply) (result, error) {
	op, _ := elemOf(n)
	x, y := n.Inputs()[0], n.Inputs()[1]
	known := func(b bool) (result, error) { return replace(c, n, number(truth(b), n.Out()), x, y) }
	if x == y {
		switch op {
		case array.Lt, array.Gt, array.Neq:
			return known(false)
		case array.Le, array.Ge, array.Eq:
			return known(true)
		}
	}
	if isSizeVar(y) && is(x, 0) {
		x, y, op = y, x, mirrored(op)
	}
	if !isSizeVar(x) || !is(y, 0) {
		return c.Miss("the result is not known"), nil
	}
	switch op {
	case array.Lt:
		return known(false)
	case array.Ge:
		return known(true)
	case array.Maximum:
		return replace(c, n, x)
	case array.Minimum:
		return replace(c, n, number(0, n.Out()))
	}
	return c.Miss("a size may be 0"), nil
}

// mirrored returns the operation that gives the same result with its arguments swapped.
func mirrored(op array.Opcode) array.Opcode {
	switch op {
	case array.Lt:
		return array.Gt
	case array.Le:
		return array.Ge
	case array.Gt:
		return array.Lt
	case array.Ge:
		return array.Le
	}
	return op
}

// isSizeVar reports whether v is a size, and so not negative: a Shape_i, or a sum or product of
// sizes and numbers.
func isSizeVar(v *variable) bool {
	if _, _, ok := owner[tensor.ShapeIOp](v); ok {
		return true
	}
	a, op, ok := owner[tensor.Elemwise](v)
	if !ok || op.Op != array.Add && op.Op != array.Mul {
		return false
	}
	return !slices.ContainsFunc(a.Inputs(), func(in *variable) bool {
		_, _, size := owner[tensor.ShapeIOp](in)
		x, known := uniform(in)
		return !size && (!known || x < 0)
	})
}

func castCast(c *rewrite.Context, n *apply) (result, error) {
	if op, _ := elemOf(n); op != array.Cast {
		return none, nil
	}
	v := n.Inputs()[0]
	if dtypeOf(v) == dtypeOf(n.Out()) {
		return replace(c, n, v)
	}
	x := argument(v, array.Cast)
	if x == nil {
		return c.Miss("the argument is not a cast"), nil
	}
	from, via, to := dtypeOf(x), dtypeOf(v), dtypeOf(n.Out())
	if !lossless(from, via) {
		return c.Miss("%v does not hold every %v", via, from), nil
	}
	if from == to {
		return replace(c, n, x)
	}
	return replace(c, n, tensor.Cast(x, to))
}

// lossless reports whether every value of one type is a value of the other.
func lossless(from, to array.DType) bool {
	return from <= to && !(from == array.Int64 && to.IsFloat())
}

// inverses maps functions to those that they undo.
var inverses = map[array.Opcode]array.Opcode{
	array.Deg2rad: array.Rad2deg, array.Rad2deg: array.Deg2rad, array.Sinh: array.Arcsinh, array.Arcsinh: array.Sinh,
	array.Tanh: array.Arctanh, array.Arctanh: array.Tanh, array.Cosh: array.Arccosh, array.Arccosh: array.Cosh,
	array.Neg: array.Neg, array.Inv: array.Inv, array.Invert: array.Invert, array.Log: array.Exp, array.Log1p: array.Expm1,
}

// invertible returns the functions that have an inverse.
func invertible() []array.Opcode { return slices.Sorted(maps.Keys(inverses)) }

func funcInv(c *rewrite.Context, n *apply) (result, error) {
	op, _ := elemOf(n)
	x := argument(n.Inputs()[0], inverses[op])
	if x == nil {
		return c.Miss("the argument is not the inverse function"), nil
	}
	if op == array.Arccosh { // cosh loses the sign
		x = computeAs(n.Out(), array.Abs, x)
	}
	return replace(c, n, x)
}

// absLift is for floats: a product of integers may wrap around, and then its sign is not that of
// the numbers. It leaves a product alone if local_abs_merge would not find its other factors again.
func absLift(c *rewrite.Context, n *apply) (result, error) {
	x := n.Inputs()[0]
	a := x.Owner()
	op, ok := elemOf(a)
	switch {
	case ok && op == array.Abs:
		return replace(c, n, x)
	case !ok || op != array.Mul && op != array.TrueDiv || !usedOnce(x) || slices.ContainsFunc(a.Inputs(), isInteger):
		return c.Miss("the argument is not a product or quotient of floats with a single use"), nil
	}
	return replace(c, n, tensor.Map(op, mapped(a.Inputs(), tensor.Abs)...))
}

// absMerge is for floats, as absLift is.
func absMerge(c *rewrite.Context, n *apply) (result, error) {
	op, _ := elemOf(n)
	in := slices.Clone(n.Inputs())
	found := 0
	for i, v := range in {
		if x := argument(v, array.Abs); x != nil && isFloat(v) {
			in[i] = x
			found++
		} else if x, ok := uniform(v); !ok || x < 0 || op == array.TrueDiv {
			return c.Miss("an argument is neither the absolute value of a float nor a positive number"), nil
		}
	}
	if found < 2 {
		return c.Miss("there are not two absolute values"), nil
	}
	return replace(c, n, tensor.Abs(tensor.Map(op, in...)))
}
