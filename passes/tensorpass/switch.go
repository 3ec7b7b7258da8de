package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// removeSwitchConstCond is local_remove_switch_const_cond.
func removeSwitchConstCond() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_remove_switch_const_cond", Doc: "a choice by a number is made: switch(1, x, y) → x", On: on(array.Switch), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			in := n.Inputs()
			cond, ok := uniform(in[0])
			if !ok {
				return c.Miss("the condition is not known"), nil
			}
			if cond != 0 {
				return replace(c, n, in[1], in...)
			}
			return replace(c, n, in[2], in...)
		},
	}
}

// uselessSwitch is local_useless_switch.
func uselessSwitch() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_useless_switch", Doc: "a choice between one thing and itself is no choice: switch(c, x, x) → x", On: on(array.Switch), Depth: 1,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			in := n.Inputs()
			if in[1] != in[2] {
				return c.Miss("the branches differ"), nil
			}
			return replace(c, n, in[1], in...)
		},
	}
}

// mulSwitchSink is local_mul_switch_sink.
func mulSwitchSink() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_mul_switch_sink", On: on(array.Mul), Depth: 2,
		Doc: "a product with a choice of 0 is a choice of 0: a*switch(c, 0, b) → switch(c, 0, a*b), also where a is NaN or infinite",
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			for i, v := range n.Inputs() {
				a := elem(v, array.Switch)
				if a == nil {
					continue
				}
				rest := slices.Delete(slices.Clone(n.Inputs()), i, i+1)
				if y := sunk(n, a, func(x *vari) *vari { return tensor.Mul(append(rest, x)...) }); y != nil {
					return replace(c, n, y, n.Inputs()...)
				}
			}
			return c.Miss("no factor is a choice of 0"), nil
		},
	}
}

// divSwitchSink is local_div_switch_sink.
func divSwitchSink() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_div_switch_sink", On: on(array.TrueDiv, array.IntDiv), Depth: 2,
		Doc: "a quotient of a choice of 0 is a choice of 0: switch(c, 0, a)/b → switch(c, 0, a/b), also where b is zero, NaN or infinite",
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, _ := elemOf(n)
			if a := elem(n.Inputs()[0], array.Switch); a != nil {
				if y := sunk(n, a, func(x *vari) *vari { return tensor.Map(op, x, n.Inputs()[1]) }); y != nil {
					return replace(c, n, y, n.Inputs()...)
				}
			}
			return c.Miss("the numerator is no choice of 0"), nil
		},
	}
}

// sunk returns the choice a with an operation on the branch that is not 0, nil if there is no such branch. The 0 has the type of the result.
func sunk(n, a *apply, f func(*vari) *vari) *vari {
	dtype := typ(a.Out()).DType() // which the branches need not have
	cond, x, y := a.Inputs()[0], castTo(a.Inputs()[1], dtype), castTo(a.Inputs()[2], dtype)
	zero := number(0, n.Out())
	switch {
	case is(x, 0) && is(y, 0):
		return nil
	case is(x, 0):
		return tensor.Switch(cond, zero, f(y))
	case is(y, 0):
		return tensor.Switch(cond, f(x), zero)
	}
	return nil
}

// mergeSwitchSameCond is local_merge_switch_same_cond.
func mergeSwitchSameCond() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_merge_switch_same_cond", Doc: "choices by one condition are one: switch(c, a, b) + switch(c, d, e) → switch(c, a + d, b + e)", Depth: 2,
		On: on(array.Add, array.Sub, array.Mul, array.TrueDiv, array.IntDiv, array.Mod, array.Pow, array.Maximum, array.Minimum,
			array.Eq, array.Neq, array.Lt, array.Le, array.Gt, array.Ge, array.And, array.Or, array.Xor),
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, _ := elemOf(n)
			var yes, no []*vari
			var cond *vari
			for _, v := range n.Inputs() {
				a := elem(v, array.Switch)
				if a == nil || !alone(v) || cond != nil && a.Inputs()[0] != cond {
					return c.Miss("not all arguments are choices by one condition"), nil
				}
				cond = a.Inputs()[0]
				dtype := typ(v).DType()
				yes, no = append(yes, castTo(a.Inputs()[1], dtype)), append(no, castTo(a.Inputs()[2], dtype))
			}
			if len(n.Inputs()) < 2 {
				return none, nil
			}
			return replace(c, n, tensor.Switch(cond, tensor.Map(op, yes...), tensor.Map(op, no...)), n.Inputs()...)
		},
	}
}
