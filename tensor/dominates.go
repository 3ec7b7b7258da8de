package tensor

import (
	"math"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// maxCompared bounds the variables that Dominates looks at.
const maxCompared = 64

// Dominates reports whether no element of x is less than that of y, where both are numbers: it knows the limits of
// functions, that exp(x) ≥ x ≥ log(x), and what maxima and sums do.
func Dominates(x, y *fgraph.Variable) bool {
	c := comparison{left: maxCompared}
	return c.atLeast(x, y)
}

// A comparison counts how many variables it may still look at.
type comparison struct{ left int }

func (c *comparison) atLeast(x, y *fgraph.Variable) bool {
	if x == y {
		return true
	}
	if c.left--; c.left < 0 {
		return false
	}
	above, _ := c.limits(x)
	if _, most := c.limits(y); above >= most {
		return true
	}
	op, in := arguments(x)
	switch op {
	case array.Maximum:
		if c.atLeast(in[0], y) || c.atLeast(in[1], y) {
			return true
		}
	case array.Minimum:
		if c.atLeast(in[0], y) && c.atLeast(in[1], y) {
			return true
		}
	case array.Exp, array.Abs:
		if c.atLeast(in[0], y) {
			return true
		}
	case array.Add, array.Sub:
		if c.term(op, in, 1, func(v *fgraph.Variable) bool { return c.atLeast(v, y) }) {
			return true
		}
	}
	switch op, in = arguments(y); op {
	case array.Minimum:
		return c.atLeast(x, in[0]) || c.atLeast(x, in[1])
	case array.Maximum:
		return c.atLeast(x, in[0]) && c.atLeast(x, in[1])
	case array.Log:
		return c.atLeast(x, in[0])
	case array.Add, array.Sub:
		return c.term(op, in, -1, func(v *fgraph.Variable) bool { return c.atLeast(x, v) })
	}
	return false
}

// term reports whether a term of a sum or difference holds, and all others have a sign or are 0.
func (c *comparison) term(op array.Opcode, in []*fgraph.Variable, sign float64, holds func(*fgraph.Variable) bool) bool {
	for i, v := range in {
		signed := op == array.Add || i == 0
		for k, w := range in {
			least, most := c.limits(w)
			if op == array.Sub && k > 0 {
				least, most = -most, -least
			}
			signed = signed && (k == i || sign > 0 && least >= 0 || sign < 0 && most <= 0)
		}
		if signed && holds(v) {
			return true
		}
	}
	return false
}

// arguments returns the element-wise operation that computes v, with its inputs; none of sums that may wrap around.
func arguments(v *fgraph.Variable) (array.Opcode, []*fgraph.Variable) {
	op, ok := OpOf(v).(Elemwise)
	if !ok || op.Inplace != 0 {
		return array.Identity, nil
	}
	switch op.Op {
	case array.Maximum, array.Minimum, array.Sgn, array.Mod:
	case array.Abs: // that of the least integer is itself
	default:
		if !TypeOf(v).DType().IsFloat() {
			return array.Identity, nil
		}
	}
	return op.Op, v.Owner().Inputs()
}

// limits returns numbers between which the elements of v are, where they are numbers.
func (c *comparison) limits(v *fgraph.Variable) (least, most float64) {
	least, most = math.Inf(-1), math.Inf(1)
	if k, ok := UniformOf(v); ok && k == k {
		return k, k
	}
	if k, ok := LeastSize(v); ok {
		least = k
	} else if Nonnegative(v) {
		least = 0
	}
	if TypeOf(v).DType() == array.Bool {
		most = 1
	}
	op, in := arguments(v)
	if c.left--; c.left < 0 || in == nil {
		return least, most
	}
	switch op {
	case array.Sigmoid:
		most = 1
	case array.Sgn:
		least, most = max(least, -1), 1
	case array.Mod: // has the sign of the divisor
		k, l := c.limits(in[1])
		least, most = max(least, min(k, 0)), max(l, 0)
	case array.Tanh, array.Erf, array.Sin, array.Cos:
		least, most = max(least, -1), 1
	case array.Exp:
		if k, _ := c.limits(in[0]); k >= 0 {
			least = 1
		}
	case array.Neg:
		k, l := c.limits(in[0])
		least, most = max(least, -l), -k
	case array.Maximum, array.Minimum:
		k, l := c.limits(in[0])
		m, n := c.limits(in[1])
		if op == array.Maximum {
			return max(least, k, m), max(l, n)
		}
		return max(least, min(k, m)), min(l, n)
	case array.Add, array.Sub:
		k, l := 0.0, 0.0
		for i, x := range in {
			m, n := c.limits(x)
			if op == array.Sub && i > 0 {
				m, n = -n, -m
			}
			k, l = k+m, l+n
		}
		least, most = max(least, k), l
	}
	return least, most
}
