package tensor

import (
	"math"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel/elementary"
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
	if c.left--; c.left < 0 {
		return math.Inf(-1), math.Inf(1)
	}
	return Bounds(v, c.limits)
}

// Bounds returns numbers between which the elements of v are, where they are numbers, by those of the inputs of the
// apply that computes it. If least is above most, none is a number.
func Bounds(v *fgraph.Variable, of func(*fgraph.Variable) (least, most float64)) (least, most float64) {
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
	if in == nil {
		return least, most
	}
	at := func(i int) (r interval) {
		r.least, r.most = of(in[i])
		return r
	}
	var r interval
	switch op {
	case array.Add, array.Sub, array.Mul, array.TrueDiv, array.Maximum, array.Minimum:
		r = at(0)
		for i := range in[1:] {
			x := at(i + 1)
			// Quotients of a zero are infinite, with its sign: -0 is one of the opposites of what is not negative.
			if op == array.TrueDiv && x.least <= 0 && x.most >= 0 && !(x.least == 0 && Nonnegative(in[i+1])) {
				return least, most
			}
			r = r.with(op, x).rounded(TypeOf(v).DType())
		}
		if op == array.Mul && len(in) == 2 && in[0] == in[1] {
			r = r.cut(interval{0, math.Inf(1)})
		}
	case array.Mod: // has the sign of the divisor
		r = at(1)
		r = interval{min(r.least, 0), max(r.most, 0)}
	case array.Sigmoid:
		r = interval{0, 1}
	case array.Sgn, array.Tanh, array.Erf, array.Sin, array.Cos:
		r = interval{-1, 1}
	case array.Neg, array.Sqr, array.Abs, array.Sqrt, array.Log, array.Exp:
		if !TypeOf(v).DType().IsFloat() {
			return least, most // the absolute value of the least integer is itself
		}
		r = at(0).of(op).rounded(TypeOf(v).DType())
	default:
		return least, most
	}
	r = r.cut(interval{least, most})
	return r.least, r.most
}

// An interval is the numbers between two. There are none if least is above most.
type interval struct{ least, most float64 }

func (x interval) cut(y interval) interval {
	return interval{max(x.least, y.least), min(x.most, y.most)}
}

// with returns where sums, differences, products and quotients of the numbers of two intervals are. Bounds are not
// numbers themselves: where there is no bound, 0 times it is 0.
func (x interval) with(op array.Opcode, y interval) interval {
	if x.least > x.most || y.least > y.most {
		return interval{math.Inf(1), math.Inf(-1)} // what is computed of no number is none
	}
	or := func(v, unknown float64) float64 {
		if v != v {
			return unknown
		}
		return v
	}
	switch op {
	case array.Maximum:
		return interval{max(x.least, y.least), max(x.most, y.most)}
	case array.Minimum:
		return interval{min(x.least, y.least), min(x.most, y.most)}
	case array.Sub:
		y = interval{-y.most, -y.least}
		fallthrough
	case array.Add:
		return interval{or(x.least+y.least, math.Inf(-1)), or(x.most+y.most, math.Inf(1))}
	}
	r := interval{math.Inf(1), math.Inf(-1)}
	for _, v := range []float64{x.least, x.most} {
		for _, w := range []float64{y.least, y.most} {
			k := v * w
			if op == array.TrueDiv {
				k = v / (w + 0) // of a 0 that is positive
			}
			k = or(k, 0)
			r = interval{min(r.least, k), max(r.most, k)}
		}
	}
	return r
}

// of returns where values of a function are. Results of functions that are not rounded correctly are off by slack.
func (x interval) of(op array.Opcode) interval {
	if x.least > x.most {
		return x
	}
	positive := interval{0, math.Inf(1)}
	switch op {
	case array.Neg:
		return interval{-x.most, -x.least}
	case array.Sqr, array.Abs:
		if x.least < 0 && x.most > 0 {
			x = interval{0, max(-x.least, x.most)}
		} else if x.most <= 0 {
			x = interval{-x.most, -x.least}
		}
		if op == array.Sqr {
			x = interval{x.least * x.least, x.most * x.most}
		}
		return x
	case array.Sqrt:
		x = x.cut(positive)
		if x.least > x.most {
			return x
		}
		return interval{math.Sqrt(x.least), math.Sqrt(x.most)}
	case array.Log:
		x = x.cut(positive)
		if x.least > x.most {
			return x
		}
		return interval{lowered(elementary.Log(x.least)), raised(elementary.Log(x.most))}
	default: // Exp
		r := interval{lowered(elementary.Exp(x.least)), raised(elementary.Exp(x.most))}
		if x.least >= 0 {
			r.least = max(r.least, 1)
		}
		if x.most <= 0 {
			r.most = min(r.most, 1)
		}
		return r
	}
}

// slack is a bound of the relative error of functions, of half floats.
const slack = 1.0 / 256

func lowered(x float64) float64 {
	if x-x != 0 {
		return x
	}
	return x - float64(math.Abs(x)*slack)
}

func raised(x float64) float64 { return -lowered(-x) }

// rounded rounds bounds as elements of a type are: which keeps their order.
func (x interval) rounded(d array.DType) interval {
	if !d.IsFloat() || d.Size() == 8 {
		return x
	}
	a := array.New(d, 2)
	a.SetFloat(0, x.least)
	a.SetFloat(1, x.most)
	return interval{a.Float(0), a.Float(1)}
}
