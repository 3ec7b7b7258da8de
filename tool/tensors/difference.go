package tensors

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// A verdict is a class, with what the tags of a rule need to know of it.
type verdict struct {
	class   rulecheck.Class
	integer bool // of Overflow: an integer wrapped around
	edge    edge // of Rounding: which sides overflowed, near the limits of the type
}

// An edge says which sides of a rewrite overflowed.
type edge uint8

const (
	onLeft edge = 1 << iota
	onRight
)

// rank orders verdicts by how much they ask of a reader.
func (v verdict) rank() int {
	r := 2 * slices.Index(rulecheck.Classes(), v.class)
	if v.integer {
		r++
	}
	return r
}

// A place is an element of a result: the number of the result and the index of the element, which
// is -1 if the shapes differ.
type place struct{ output, element int }

// maxPlaces bounds how many differing elements of a run are looked at.
const maxPlaces = 64

// differences compares the sides of a run. exact is false if any bit differs; places are elements
// that are not close to each other.
func (c *circuit) differences(t trace) (places []place, exact bool) {
	exact = true
	for k := range c.left {
		l, r := t.values[c.left[k]], t.values[c.right[k]]
		if l == r {
			continue
		}
		if l.DType() != r.DType() || !array.SameShape(l, r) {
			return []place{{k, -1}}, false
		}
		for i := range l.Len() {
			same, near := compare(l, r, i)
			exact = exact && same
			if !near && len(places) < maxPlaces {
				places = append(places, place{k, i})
			}
		}
	}
	return places, exact
}

// compare compares an element of two arrays of one type.
func compare(l, r *array.Array, i int) (same, near bool) {
	if isInteger(l.DType()) {
		same = l.Int(i) == r.Int(i)
		return same, same
	}
	x, y := l.Float(i), r.Float(i)
	switch {
	case x == y:
		return math.Signbit(x) == math.Signbit(y), true
	case x != x && y != y:
		return true, true
	case !l.DType().IsFloat() || x-x != 0 || y-y != 0:
		return false, false
	}
	// A few units in the last place need no explanation; this only saves the search for one. So do
	// numbers that are so small that few of their bits are left.
	m := max(math.Abs(x), math.Abs(y))
	_, smallest := limits(l.DType())
	return false, math.Abs(x-y) <= 16*epsilon(l.DType())*m || m <= smallest/epsilon(l.DType())
}

// judge says which class explains the differences of a run of both sides. ok is false if there are
// none.
func (in *instance) judge(args []*array.Array) (v verdict, ok bool) {
	c := in.circuit
	t := c.run(args, nil)
	if t.leftError != nil {
		return v, false
	}
	if t.err != nil {
		return verdict{class: rulecheck.Wrong}, true
	}
	places, exact := c.differences(t)
	switch {
	case exact:
		return verdict{class: rulecheck.Exact}, false
	case len(places) == 0:
		return verdict{class: rulecheck.Rounding}, false
	}
	// The order of these questions matters. Rounding first: all that it explains is harmless, even
	// where special values are among the arguments. Then the specific reasons, wrapping integers
	// and smaller types, before the general one: with a NaN or zero somewhere, which is common,
	// UnsafeNaN would cover them up. What nothing explains is wrong.
	if c.rounds(t, args, places) {
		return in.ofRounding(t, args), true
	}
	special := in.special(t, args)
	switch {
	case in.unsigned(t, args, places):
		return verdict{class: rulecheck.Rounding}, true
	case places[0].element >= 0 && c.wraps(t, isInteger):
		if in.forgiven(t, args) {
			return verdict{class: rulecheck.Rounding}, true
		}
		return verdict{class: rulecheck.Overflow, integer: true}, true
	case places[0].element >= 0 && c.narrower(t, places):
		if c.mixed() {
			return verdict{class: rulecheck.Rounding}, true
		}
		return verdict{class: rulecheck.Type}, true
	case places[0].element >= 0 && special:
		return verdict{class: rulecheck.UnsafeNaN}, true
	case places[0].element >= 0 && c.overflowsToNaN(t, places):
		return verdict{class: rulecheck.Overflow}, true
	}
	return verdict{class: rulecheck.Wrong}, true
}

// overflowsToNaN reports whether elements differ only because a float became infinite on the right,
// of which there is a function of no value: sin(2*x) is NaN where 2*x overflows.
func (c *circuit) overflowsToNaN(t trace, places []place) bool {
	for _, p := range places {
		if y := t.values[c.right[p.output]].Float(p.element); y == y {
			return false
		}
	}
	for i := c.leftSteps; i < len(c.steps); i++ {
		for _, k := range c.steps[i].Out {
			if has(t.values[k], func(_ array.DType, v float64) bool { return math.IsInf(v, 0) }) && c.overflows(t, i, i+1, array.DType.IsFloat) {
				return true
			}
		}
	}
	return false
}

// ofRounding tells a rounding from an overflow.
func (in *instance) ofRounding(t trace, args []*array.Array) verdict {
	c := in.circuit
	var sides edge
	// A left side that computes in a smaller type than the result's overflows earlier.
	result := t.values[c.left[0]].DType()
	if c.overflows(t, 0, c.leftSteps, func(d array.DType) bool { return !result.IsFloat() || epsilon(d) <= epsilon(result) }) {
		sides |= onLeft
	}
	if c.overflows(t, c.leftSteps, len(c.steps), array.DType.IsFloat) {
		sides |= onRight
	}
	if sides == 0 {
		return verdict{class: rulecheck.Rounding}
	}
	// An overflow near the limits of the type is a matter of rounding: sums and products in another
	// order overflow a little earlier or later. From arguments far from the limits on both sides,
	// it is a fault of the formula, as of log(sum(exp(x))).
	// Those of a half float are never far.
	far, extreme, zero := !result.IsHalf(), result.IsHalf(), false
	for _, a := range in.arguments(args) {
		if !a.DType().IsFloat() {
			continue
		}
		largest, _ := limits(a.DType())
		for i := range a.Len() {
			v := math.Abs(a.Float(i))
			zero = zero || v == 0
			if v == 0 || v-v != 0 {
				continue
			}
			root := math.Sqrt(largest) / 1e3
			far = far && v < root && v > 1/root
			extreme = extreme || v > largest/1e5 || v < 1e5/largest
		}
	}
	switch {
	case far:
		return verdict{class: rulecheck.Overflow}
	case extreme || zero:
		return verdict{class: rulecheck.Rounding} // the product of what overflowed with zero is NaN
	}
	return verdict{class: rulecheck.Rounding, edge: sides}
}

// arguments returns the values of the inputs and constants that replace names.
func (in *instance) arguments(args []*array.Array) []*array.Array {
	list := args[:len(args):len(args)]
	for _, v := range in.Constants {
		list = append(list, tensor.ConstantOf(v))
	}
	return list
}
