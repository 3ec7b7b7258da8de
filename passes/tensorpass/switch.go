package tensorpass

import (
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

func removeSwitchConstCond(c *rewrite.Context, n *apply) (result, error) {
	in := n.Inputs()
	cond, ok := uniform(in[0])
	if !ok {
		return c.Miss("the condition is not known"), nil
	}
	if cond != 0 {
		return replace(c, n, in[1], in...)
	}
	return replace(c, n, in[2], in...)
}

func uselessSwitch(c *rewrite.Context, n *apply) (result, error) {
	in := n.Inputs()
	if in[1] != in[2] {
		return c.Miss("the branches differ"), nil
	}
	return replace(c, n, in[1], in...)
}

func mulSwitchSink(c *rewrite.Context, n *apply) (result, error) {
	for i, v := range n.Inputs() {
		if a := elem(v, array.Switch); a != nil {
			rest := without(n.Inputs(), i)
			if y := sunk(n, a, func(x *variable) *variable { return tensor.Mul(append(rest, x)...) }); y != nil {
				return replace(c, n, y, n.Inputs()...)
			}
		}
	}
	return c.Miss("no factor is a switch with a branch of 0"), nil
}

func divSwitchSink(c *rewrite.Context, n *apply) (result, error) {
	op, _ := elemOf(n)
	if a := elem(n.Inputs()[0], array.Switch); a != nil {
		if y := sunk(n, a, func(x *variable) *variable { return tensor.Map(op, x, n.Inputs()[1]) }); y != nil {
			return replace(c, n, y, n.Inputs()...)
		}
	}
	return c.Miss("the numerator is not a switch with a branch of 0"), nil
}

// sunk returns the switch a with an operation on the branch that is not 0, or nil if there is no
// such branch. The 0 gets the type of the result.
func sunk(n, a *apply, f func(*variable) *variable) *variable {
	dtype := dtypeOf(a.Out()) // which the branches need not have
	cond, x, y := a.Inputs()[0], castTo(a.Inputs()[1], dtype), castTo(a.Inputs()[2], dtype)
	zero := number(0, n.Out())
	switch {
	case is(x, 0) == is(y, 0):
		return nil
	case is(x, 0):
		return tensor.Switch(cond, zero, f(y))
	}
	return tensor.Switch(cond, f(x), zero)
}

func mergeSwitchSameCond(c *rewrite.Context, n *apply) (result, error) {
	op, _ := elemOf(n)
	var yes, no []*variable
	var cond *variable
	for _, v := range n.Inputs() {
		a := elem(v, array.Switch)
		if a == nil || !usedOnce(v) || cond != nil && a.Inputs()[0] != cond {
			return c.Miss("the arguments are not switches with one condition and a single use"), nil
		}
		cond = a.Inputs()[0]
		dtype := dtypeOf(v)
		yes, no = append(yes, castTo(a.Inputs()[1], dtype)), append(no, castTo(a.Inputs()[2], dtype))
	}
	if len(n.Inputs()) < 2 {
		return none, nil
	}
	return replace(c, n, tensor.Switch(cond, tensor.Map(op, yes...), tensor.Map(op, no...)), n.Inputs()...)
}
