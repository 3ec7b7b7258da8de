package tensors

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// forgiven reports whether it does not matter that an integer wraps around: it is the smallest one,
// which has no opposite; its sum or product would be a float in another order; or it is near the
// limits and becomes a float. Nothing is forgiven that wraps around in a smaller type than int64:
// there the limits are among the numbers that programs have.
func (in *instance) forgiven(t trace, args []*array.Array) bool {
	if in.circuit.wraps(t, func(d array.DType) bool { return isInteger(d) && d != array.Int64 }) {
		return false
	}
	integers, floats, smallest, extreme := false, false, false, false
	for _, a := range in.circuit.program.Constants() {
		floats = floats || a.DType().IsFloat()
	}
	for _, a := range in.arguments(args) {
		floats = floats || a.DType().IsFloat()
		if a.DType() != array.Int64 {
			continue
		}
		integers = true
		smallest = smallest || has(a, func(_ array.DType, v float64) bool { return v == math.MinInt64 })
		extreme = extreme || has(a, func(_ array.DType, v float64) bool { return math.Abs(v) >= 1<<61 })
	}
	return smallest || integers && floats || extreme && t.values[in.circuit.left[0]].DType().IsFloat()
}

// unsigned reports whether infinities differ in sign only because they are quotients by an integer
// zero, which has no sign.
func (in *instance) unsigned(t trace, args []*array.Array, places []place) bool {
	integer := false
	for _, a := range in.arguments(args) {
		if a.DType().IsFloat() && (has(a, isZero) || has(a, notFinite)) {
			return false
		}
		integer = integer || !a.DType().IsFloat() && has(a, isNothing)
	}
	for i := range in.circuit.leftSteps { // a size, say
		for _, k := range in.circuit.steps[i].Out {
			integer = integer || isInteger(t.values[k].DType()) && has(t.values[k], isNothing)
		}
	}
	for _, p := range places {
		if p.element < 0 {
			return false
		}
		x, y := t.values[in.circuit.left[p.output]].Float(p.element), t.values[in.circuit.right[p.output]].Float(p.element)
		if !math.IsInf(x, 0) || x != -y {
			return false
		}
	}
	return integer
}

// noiseRuns is how often both sides are computed with errors of rounding, at most.
const noiseRuns = 40

// hull is what a value ranges over.
type hull struct {
	low, high float64
	nan, some bool
}

func (h *hull) add(v float64) {
	switch {
	case v != v:
		h.nan = true
	case !h.some:
		h.low, h.high, h.some = v, v, true
	default:
		h.low, h.high = min(h.low, v), max(h.high, v)
	}
}

// widened returns the hull of errors that are a few times as large.
func (h hull) widened(smallest, eps float64) hull {
	// Forty random errors don't reach the extremes of what errors can do, so the range is widened
	// by a factor.
	by := float64(4*(h.high-h.low)) + float64(4*smallest) + float64(8*float64(eps*max(math.Abs(h.low), math.Abs(h.high))))
	switch {
	case by-by == 0:
		h.low, h.high = h.low-by, h.high+by
	case math.IsInf(h.high, 1) && h.low > 0:
		h.low /= 2
	case math.IsInf(h.low, -1) && h.high < 0:
		h.high /= 2
	// A range on both sides of a pole is that of a quotient by a few of the smallest numbers, of which one is off by
	// half of it: 1/(z/x) where z/x is rounded to the smallest number.
	case math.IsInf(h.high, 1) && h.low < 0:
		h.low *= 2
	case math.IsInf(h.low, -1) && h.high > 0:
		h.high *= 2
	}
	return h
}

// rounds reports whether errors of rounding explain that elements differ.
func (c *circuit) rounds(t trace, args []*array.Array, places []place) bool {
	hulls := make([][2]hull, len(places))
	origin := func(p place) *array.Array { return t.values[c.left[p.output]] }
	note := func(u trace) {
		for i, p := range places {
			hulls[i][0].add(number(u.values[c.left[p.output]], origin(p), p.element))
			hulls[i][1].add(number(u.values[c.right[p.output]], origin(p), p.element))
		}
	}
	if places[0].element < 0 {
		return false
	}
	note(t)
	// Each run perturbs both sides by another random error, and widens the ranges over which their
	// values are known to vary. It is asked every fourth run whether the ranges meet by now: most
	// differences are explained by few runs, and those that are not take all of them.
	for k := range noiseRuns {
		if k%4 == 0 && c.explained(t, places, hulls) {
			return true
		}
		if u := c.run(args, newNoise(k)); u.leftError == nil && u.err == nil && sameShapes(c, t, u) {
			note(u)
		}
	}
	return c.explained(t, places, hulls)
}

// explained reports whether what the two sides range over meets, for each of some elements.
func (c *circuit) explained(t trace, places []place, hulls [][2]hull) bool {
	for i, p := range places {
		d := t.values[c.left[p.output]].DType()
		eps, smallest := 0.0, 0.0
		if d.IsFloat() {
			eps = min(epsilon(d), epsilon(c.precision))
			_, smallest = limits(d)
		}
		l, r := hulls[i][0].widened(smallest, eps), hulls[i][1].widened(smallest, eps)
		overlap := l.some && r.some && l.low <= r.high && r.low <= l.high
		// A side that is always NaN is explained only if the other one may be.
		bothNaN := l.nan && r.nan && (!l.some || !r.some)
		if !overlap && !bothNaN {
			return false
		}
	}
	return true
}

func sameShapes(c *circuit, t, u trace) bool {
	for k := range c.left {
		if !array.SameShape(t.values[c.left[k]], u.values[c.left[k]]) || !array.SameShape(t.values[c.right[k]], u.values[c.right[k]]) {
			return false
		}
	}
	return true
}

// number returns an element as a float; of an integer, the distance to that of another array.
func number(a, origin *array.Array, i int) float64 {
	if isInteger(a.DType()) {
		return float64(a.Int(i) - origin.Int(i))
	}
	return a.Float(i)
}

// overflows reports whether a float of some type became infinite in one of some steps.
func (c *circuit) overflows(t trace, from, to int, counts func(array.DType) bool) bool {
	for i := from; i < to; i++ {
		s := &c.steps[i]
		if d := outType(s.Apply); !s.kind.overflows || !d.IsFloat() || !counts(d) {
			continue
		}
		arguments := s.argumentsOf(s.Arguments(t.values))
		for _, k := range s.Out {
			a := t.values[k]
			for e := range a.Len() {
				if v := a.Float(e); v-v == 0 {
					continue
				}
				if is := arguments(a, e); is.finite && !(is.zero && s.kind.divides) {
					return true
				}
			}
		}
	}
	return false
}

// special reports whether something that the left side is computed of or computes is NaN, infinite or -0, or something
// that the right side computes is where an argument or an intermediate result is zero. Of numbers alone, a zero is like
// others: that abs(sgn(0)) is not 1 is no matter of NaN.
func (in *instance) special(t trace, args []*array.Array) bool {
	odd := func(_ array.DType, v float64) bool { return v-v != 0 || v == 0 && math.Signbit(v) }
	zero := false
	for _, a := range in.arguments(args) {
		if has(a, odd) {
			return true
		}
		zero = zero || has(a, isZero)
	}
	c := in.circuit
	for i := range c.steps {
		for _, k := range c.steps[i].Out {
			switch v := t.values[k]; {
			case i < c.leftSteps && has(v, odd), zero && has(v, notFinite):
				return true
			case i < c.leftSteps && !slices.Contains(c.left, k):
				zero = zero || has(v, isZero)
			}
		}
	}
	return false
}

// wraps reports whether an integer of some type that one of the sides computes is another one than
// numbers would give.
func (c *circuit) wraps(t trace, counts func(array.DType) bool) bool {
	for i := range c.steps {
		if s := &c.steps[i]; counts(outType(s.Apply)) && s.wraps(t.values) {
			return true
		}
	}
	return false
}

func (s *step) wraps(values []*array.Array) bool {
	below, above := integerLimits(outType(s.Apply))
	beyond := func(v float64) bool { return v <= below || v >= above }
	in := s.Arguments(values)
	op := s.Apply.Op().(tensor.Op)
	if e, ok := op.(tensor.Elemwise); ok && e.Op == array.Cast {
		return !e.To.Holds(in[0].DType()) && has(in[0], func(_ array.DType, v float64) bool { return beyond(v) && !math.IsInf(v, 0) })
	}
	// The same op is computed with float64s in place of integers. If that leaves the range of
	// integers, the integer result has wrapped around. This needs no knowledge of the op, and an op
	// of another package is classified as well.
	twins := make([]*variable, len(in))
	for k, a := range in {
		v := s.Apply.Inputs()[k]
		if isInteger(a.DType()) {
			in[k] = a.Cast(array.Float64)
		}
		twins[k] = newInput(tensor.TypeOf(v).With(in[k].DType()), "")
	}
	a, err := tensor.Make(op, twins...)
	if err != nil || !outType(a).IsFloat() {
		return false
	}
	k, err := tensor.Compile(a)
	if err != nil {
		return false
	}
	out, err := tensor.Run(a, k, new(array.Workspace), in)
	if err != nil {
		return false
	}
	pole := s.kind.divides && slices.ContainsFunc(in, func(a *array.Array) bool { return has(a, isNothing) })
	return has(out[0], func(_ array.DType, v float64) bool { return beyond(v) && !(pole && math.IsInf(v, 0)) })
}

// narrower reports whether the right side computes in a type that is less exact than those of the
// left, and is off by no more than that.
func (c *circuit) narrower(t trace, places []place) bool {
	eps, largest, smallest := 0.0, math.MaxFloat64, 0.0
	// The least exact type in which the right side computes and the left one does not, and its
	// limits: a value beyond them is lost there.
	for _, s := range c.steps[c.leftSteps:] {
		if d := outType(s.Apply); d.IsFloat() && (epsilon(d) > epsilon(c.precision) || !c.computesFloats()) && epsilon(d) > eps {
			eps = epsilon(d)
			largest, smallest = limits(d)
		}
	}
	if eps == 0 {
		return false
	}
	for _, p := range places {
		x, y := t.values[c.left[p.output]].Float(p.element), t.values[c.right[p.output]].Float(p.element)
		m, n := math.Abs(x), math.Abs(y)
		near := math.Abs(x-y) <= 1e4*eps*max(m, n)
		if beyond := min(m, n) > largest/2 || max(m, n) < 1e8*smallest; !near && !beyond {
			return false
		}
	}
	return true
}

// mixed reports whether the operands of the left side are floats of one type, and floats of another
// type, integers or bools. A part of the operands may then be combined in the smaller type.
func (c *circuit) mixed() bool {
	var of [256]bool
	for _, v := range c.inputs {
		of[tensor.TypeOf(v).DType()] = true
	}
	for _, a := range c.program.Constants() {
		of[a.DType()] = true
	}
	n, floats := 0, false
	for d, has := range of {
		if has {
			n++
			floats = floats || array.DType(d).IsFloat()
		}
	}
	return n > 1 && floats
}

// computesFloats reports whether the left side has floats at all.
func (c *circuit) computesFloats() bool {
	return slices.ContainsFunc(c.inputs, func(v *variable) bool { return tensor.TypeOf(v).DType().IsFloat() }) ||
		slices.ContainsFunc(c.steps[:c.leftSteps], func(s step) bool { return outType(s.Apply).IsFloat() })
}
