package tensor

import (
	"math"

	"github.com/nnopt/nnopt/kernel/elementary"
	"github.com/nnopt/nnopt/tensor/array"
)

// negated returns -n. The smallest integer is the negation of a number that is none: one that keeps it in i.
func (n number) negated() number {
	smallest := n.i == math.MinInt64
	n.i, n.f = -n.i, -n.f
	switch {
	case n.dtype == Bool, n.dtype == Float64 && smallest:
		n.dtype = Int64
	case smallest:
		n.dtype = Float64
	}
	return n
}

// float returns a number as one with a point.
func (x value) float() value {
	return value{kind: kindNumber, num: number{Float64, 0, x.num.f}}
}

// folded computes an operation on two numbers as Python does, so that 1/2 and 2**10 take part in an expression like any other number. It
// returns nil where that is no number. It is not exact where integers would need more than 64 bits, which Python's may have.
func folded(op array.Op, a, b number) (n *number, exact bool) {
	var f float64
	switch op {
	case array.Add:
		f = a.f + b.f
	case array.Sub:
		f = a.f - b.f
	case array.Mul:
		f = a.f * b.f
	case array.TrueDiv:
		f = a.f / b.f
		a.dtype = Float64
	case array.Pow:
		f = elementary.Pow(a.f, b.f)
		if b.f < 0 {
			a.dtype = Float64
		}
	case array.IntDiv, array.Mod:
		if a.dtype == Float64 || b.dtype == Float64 || b.i == 0 {
			return nil, true
		}
		n = &number{dtype: Int64, i: array.FloorDiv(a.i, b.i)}
		if op == array.Mod {
			n.i = a.i - n.i*b.i
		}
		n.f = float64(n.i)
		return n, true
	default:
		return nil, true
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, a.dtype == Float64 || b.dtype == Float64
	}
	if a.dtype == Float64 || b.dtype == Float64 {
		return &number{Float64, 0, f}, true
	}
	n = &number{dtype: Int64}
	switch op {
	case array.Add:
		n.i = a.i + b.i
	case array.Sub:
		n.i = a.i - b.i
	case array.Mul:
		n.i = a.i * b.i
	case array.Pow:
		n.i = array.IntPow(a.i, b.i)
	}
	n.f = float64(n.i)
	if !(math.Abs(n.f-f) < 1<<62) { // it wrapped around
		return &number{Float64, 0, f}, false
	}
	return n, true
}

// logical returns the operation that + and * are for bools, which is "or" and "and", as in NumPy and Theano.
func logical(op array.Op, args []value) array.Op {
	if op != array.Add && op != array.Mul {
		return op
	}
	for _, x := range args {
		if x.kind == kindNumber && x.num.dtype != Bool || x.kind == kindTensor && TypeOf(x.v).DType() != Bool || x.kind > kindNumber {
			return op
		}
	}
	if op == array.Add {
		return array.Or
	}
	return array.And
}

// mostElements bounds the constants that are made of a few characters.
const mostElements = 1 << 14

// floatRange returns the elements of arange of a start, a stop and a step that are numbers, of which at least one is no integer; nil of any others.
func floatRange(args [3]value) *array.Array {
	float, part := false, [3]float64{}
	for i, x := range args {
		if x.kind != kindNumber {
			return nil
		}
		float = float || x.num.dtype == Float64
		part[i] = x.num.f
	}
	n := math.Ceil((part[1] - part[0]) / part[2])
	if !float || !(n <= mostElements) || part[2] == 0 {
		return nil
	}
	a := array.New(Float64, int(max(n, 0)))
	for i := range a.Len() {
		a.SetFloat(i, part[0]+float64(float64(i)*part[2]))
	}
	return a
}
