package expr

import (
	"math"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A number takes the type of what it is combined with.
type number struct {
	dtype array.DType // as written: Bool, Int64, Uint64 where that is too small, or Float64
	i     int64
	f     float64
}

func intNumber(i int64) number { return number{array.Int64, i, float64(i)} }

// parseNumber reads a number.
func parseNumber(text string) (number, bool) {
	text = strings.ReplaceAll(text, "_", "")
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return intNumber(i), true
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return number{array.Uint64, int64(u), float64(u)}, true
	}
	// What is too large is infinite, as in Python, and still a number.
	f, err := strconv.ParseFloat(text, 64)
	return number{array.Float64, 0, f}, err == nil || math.IsInf(f, 0)
}

// in returns the number as a constant of a type that holds it.
func (n number) in(d array.DType) *fgraph.Variable {
	switch {
	case !d.IsFloat() && d != array.Bool:
		return tensor.Constant(array.Scalar(n.i).Cast(d))
	case d == array.Bool:
		return tensor.Constant(array.Scalar(n.f != 0))
	}
	return tensor.Constant(array.Full(d, n.f))
}

// fit returns the type in which the number is combined with others of type d: that type, unless it
// has only smaller integers.
func (n number) fit(d array.DType) array.DType {
	switch {
	case n.dtype == array.Float64:
		return d.Float()
	case n.dtype != array.Bool && !d.IsFloat():
		if d = d.Number(); !n.isIn(d) {
			return array.Upcast(d, n.smallest(d.IsUnsigned()))
		}
	}
	return d
}

// smallest returns the smallest type of integers that has the number, if possible an unsigned one, or one
// with signs.
func (n number) smallest(unsigned bool) array.DType {
	other := array.Uint64
	for _, t := range array.DTypes() {
		switch {
		case !t.IsInteger() || !n.isIn(t):
		case t.IsUnsigned() == unsigned:
			return t
		default:
			other = min(other, t)
		}
	}
	return other
}

// isIn reports whether a type of integers has the number, which is one.
func (n number) isIn(d array.DType) bool {
	if n.dtype == array.Uint64 {
		return d == array.Uint64
	}
	return (n.i >= 0 || !d.IsUnsigned()) && array.Scalar(n.i).Cast(d).Int(0) == n.i
}

// negated returns -n. The negation of an integer that only a uint64 holds is a float, unless it is the
// smallest int64.
func (n number) negated() number {
	smallest := n.i == math.MinInt64
	n.i, n.f = -n.i, -n.f
	switch {
	case n.dtype == array.Bool, n.dtype == array.Uint64 && smallest:
		n.dtype = array.Int64
	case n.dtype == array.Uint64:
		n.dtype = array.Float64
	// It wrapped around to the same bits, which are 2^63 without a sign.
	case n.dtype == array.Int64 && smallest:
		n.dtype = array.Uint64
	}
	return n
}

// float returns a number as a float64.
func (x value) float() value { return value{kind: kindNumber, num: number{array.Float64, 0, x.num.f}} }

// folded computes an operation on two numbers as Python does, so that 1/2 and 2**10 behave like any
// other number. It returns nil if the result is no number. It is not exact where Python's integers
// would have more than 64 bits.
func folded(op array.Opcode, a, b number) (n *number, exact bool) {
	float := a.dtype == array.Float64 || b.dtype == array.Float64
	large := a.dtype == array.Uint64 || b.dtype == array.Uint64
	switch op {
	case array.Add, array.Sub, array.Mul, array.TrueDiv, array.Pow:
	case array.IntDiv, array.Mod:
		if float || large || b.i == 0 {
			return nil, !large
		}
		i := compute(op, a.i, b.i)
		return &number{array.Int64, i, float64(i)}, true
	default:
		return nil, true
	}
	float = float || op == array.TrueDiv || op == array.Pow && b.f < 0
	// In floats first, which show whether the integers overflow.
	f := compute(op, a.f, b.f)
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil, float
	case float:
		return &number{array.Float64, 0, f}, true
	}
	i := compute(op, a.i, b.i)
	if large || !(math.Abs(float64(i)-f) < 1<<62) { // i wrapped around
		return &number{array.Float64, 0, f}, false
	}
	return &number{array.Int64, i, float64(i)}, true
}

// compute applies an operation to two numbers of one type.
func compute[T int64 | float64](op array.Opcode, x, y T) T {
	args, out := []*array.Array{array.Scalar(x), array.Scalar(y)}, array.Scalar(x)
	p := array.NewProgram(out.DType(), out.DType())
	new(array.Workspace).Map(p.Return(p.Append(op, 0, 1)), []*array.Array{out}, args)
	return array.Slice[T](out)[0]
}

// logical returns "or" for + and "and" for * if all arguments are bools, as NumPy and Theano do.
func logical(op array.Opcode, args []value) array.Opcode {
	if op != array.Add && op != array.Mul {
		return op
	}
	for _, x := range args {
		if x.kind == kindNumber && x.num.dtype != array.Bool || x.kind == kindTensor && tensor.TypeOf(x.v).DType() != array.Bool || x.kind > kindNumber {
			return op
		}
	}
	if op == array.Add {
		return array.Or
	}
	return array.And
}

// maxElements bounds constants that a few characters describe.
const maxElements = 1 << 14

// floatRange returns the elements of arange(start, stop, step) if these are numbers and not all
// integers; otherwise nil.
func floatRange(args [3]value) *array.Array {
	float, part := false, [3]float64{}
	for i, x := range args {
		if x.kind != kindNumber {
			return nil
		}
		float = float || x.num.dtype == array.Float64
		part[i] = x.num.f
	}
	// It may be NaN, and is compared below so that this is too many.
	n := math.Ceil((part[1] - part[0]) / part[2])
	if !float || !(n <= maxElements) || part[2] == 0 {
		return nil
	}
	a := array.New(array.Float64, int(max(n, 0)))
	for i := range a.Len() {
		// Steps that were added up would add up their roundings, too.
		a.SetFloat(i, part[0]+float64(float64(i)*part[2]))
	}
	return a
}
