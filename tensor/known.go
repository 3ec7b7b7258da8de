package tensor

import (
	"math"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// What is known of the elements of a tensor before it is computed.

// UniformOf returns the value of all elements of v, and whether it is known: v is a constant or a
// broadcast constant.
func UniformOf(v *fgraph.Variable) (float64, bool) {
	for range 100 { // deeper than anybody nests them
		if a := ConstantOf(v); a != nil {
			if a.IsCSR() || a.Len() > 4096 {
				return 0, false
			}
			return array.Uniform(a)
		}
		a := v.Owner()
		if a == nil {
			return 0, false
		}
		switch op := a.Op().(type) {
		case DimShuffleOp, AllocOp:
			v = a.Inputs()[0]
		case Elemwise:
			if op.Op != array.Second {
				return 0, false
			}
			v = a.Inputs()[1]
		default:
			return 0, false
		}
	}
	return 0, false
}

// LeastSize returns a number that no element of v is below, and whether v is made of sizes of tensors
// and of integers that are not negative: it is one, a vector, sum, product, maximum or quotient of
// some, or a shape. A size is not negative.
func LeastSize(v *fgraph.Variable) (float64, bool) {
	if k, ok := leastSize(v); ok {
		return k, true
	}
	a := v.Owner()
	if a == nil || TypeOf(v).DType() != array.Int64 || len(a.Inputs()) == 0 { // smaller integers may wrap around
		return 0, false
	}
	combine := math.Min
	switch op := a.Op().(type) {
	case MakeVectorOp:
	case Elemwise:
		switch op.Op {
		case array.Add:
			combine = func(x, y float64) float64 { return x + y }
		case array.Mul:
			combine = func(x, y float64) float64 { return x * y }
		case array.Maximum:
			combine = math.Max
		case array.IntDiv:
			combine = func(_, _ float64) float64 { return 0 }
		default:
			return 0, false
		}
	default:
		return 0, false
	}
	least, ok := leastSize(a.Inputs()[0])
	for _, in := range a.Inputs()[1:] { // shapes are at most one level deep
		k, known := leastSize(in)
		least, ok = combine(least, k), ok && known
	}
	return least, ok
}

// leastSize is LeastSize for a size, a number and a shape.
func leastSize(v *fgraph.Variable) (float64, bool) {
	if _, ok := OpOf(v).(DimShuffleOp); ok {
		v = v.Owner().Inputs()[0]
	}
	switch OpOf(v).(type) {
	case ShapeIOp, ShapeOp:
		return 0, true
	}
	k, ok := UniformOf(v)
	return k, ok && k >= 0 && !TypeOf(v).DType().IsFloat()
}

// maxSigned bounds the variables that Nonnegative looks at.
const maxSigned = 32

// Nonnegative reports whether no element of v is negative. It knows functions that are never
// negative, and what becomes of them in sums, products, and parts and rearrangements of tensors.
// An element may be NaN.
func Nonnegative(v *fgraph.Variable) bool {
	todo := []*fgraph.Variable{v}
	for seen := 0; len(todo) > 0; seen++ {
		v, todo = todo[len(todo)-1], todo[:len(todo)-1]
		if x, ok := UniformOf(v); ok && x >= 0 || TypeOf(v).DType().IsUnsigned() {
			continue
		}
		if n, ok := LeastSize(v); ok && n >= 0 {
			continue
		}
		a := v.Owner()
		if a == nil || seen >= maxSigned {
			return false
		}
		rounds := TypeOf(v).DType().IsFloat() // else it may wrap around
		switch op := a.Op().(type) {
		case DimShuffleOp, AllocOp, ReshapeOp, SpecifyShapeOp, *SubtensorOp:
			todo = append(todo, a.Inputs()[0])
		case JoinOp:
			todo = append(todo, a.Inputs()...)
		case SoftmaxOp:
			if op.Log {
				return false
			}
		case Reduce:
			switch {
			case op.Op == array.All || op.Op == array.Any:
			case op.Op > array.Min || !rounds:
				return false
			default:
				todo = append(todo, a.Inputs()[0])
			}
		case Elemwise:
			on, ok := keepsSign(op.Op, a, rounds)
			if !ok {
				return false
			}
			todo = append(todo, on...)
		default:
			return false
		}
	}
	return true
}

// keepsSign reports whether the result of an element-wise operation is not negative, on condition
// that those of the inputs that it returns are not.
func keepsSign(op array.Opcode, a *fgraph.Apply, rounds bool) (on []*fgraph.Variable, ok bool) {
	in := a.Inputs()
	switch op {
	case array.Abs, array.Exp, array.Exp2, array.Sqrt, array.Sigmoid, array.Softplus, array.Erfc, array.Cosh, array.Arccosh, array.Arccos:
		return nil, true
	case array.Sqr:
		return nil, rounds
	case array.Pow:
		if k, ok := UniformOf(in[1]); ok && math.Mod(k, 2) == 0 {
			return nil, rounds
		}
		return in[:1], rounds
	case array.Add, array.Mul, array.TrueDiv, array.Inv:
		return in, rounds
	case array.Minimum:
		return in, true
	case array.Maximum:
		for _, v := range in {
			if k, ok := UniformOf(v); ok && k >= 0 {
				return nil, true
			}
		}
		return in, true
	case array.Second, array.Switch:
		return in[1:], true
	case array.Log1p, array.Expm1, array.Sinh, array.Tanh, array.Arctan, array.Arcsinh, array.Erf, array.Identity,
		array.Ceil, array.Floor, array.Trunc, array.Round, array.Sgn:
		return in, true
	case array.Cast: // of NaN, or of what the type does not have, an integer may be negative
		from, to := TypeOf(in[0]).DType(), TypeOf(a.Out()).DType()
		return in, rounds || to.Holds(from)
	}
	return nil, TypeOf(a.Out()).DType() == array.Bool
}
