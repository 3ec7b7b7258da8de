package tensorpass

import (
	"math"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// mostSigned bounds the variables that isNonnegative looks at.
const mostSigned = 32

// isNonnegative reports whether no element of v is negative. It knows functions that are never
// negative, and what becomes of them in sums, products, and parts and rearrangements of tensors.
// An element may be NaN.
func isNonnegative(v *variable) bool {
	todo := []*variable{v}
	for seen := 0; len(todo) > 0; seen++ {
		v, todo = todo[len(todo)-1], todo[:len(todo)-1]
		if x, ok := uniform(v); ok && x >= 0 {
			continue
		}
		a := v.Owner()
		if a == nil || seen >= mostSigned {
			return false
		}
		switch op := a.Op().(type) {
		case tensor.DimShuffleOp, tensor.AllocOp, tensor.ReshapeOp, tensor.SpecifyShapeOp, *tensor.SubtensorOp:
			todo = append(todo, a.Inputs()[0])
		case tensor.JoinOp:
			todo = append(todo, a.Inputs()...)
		case tensor.SoftmaxOp, tensor.ShapeIOp:
		case tensor.Reduce:
			switch op.Op {
			case array.Sum, array.Prod, array.Max, array.Min:
				if !isFloat(a.Out()) { // it may wrap around
					return false
				}
				todo = append(todo, a.Inputs()[0])
			case array.All, array.Any:
			default:
				return false
			}
		case tensor.Elemwise:
			if !keepsSign(op.Op, a, &todo) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// keepsSign reports whether the result of an element-wise operation is not negative, on condition
// that the arguments that it adds to a list are not.
func keepsSign(op array.Opcode, a *apply, todo *[]*variable) bool {
	in := a.Inputs()
	switch op {
	case array.Abs, array.Exp, array.Exp2, array.Sqrt, array.Sigmoid, array.Softplus, array.Erfc, array.Cosh, array.Arccosh, array.Arccos:
	case array.Sqr: // of an integer it may wrap around
		return isFloat(a.Out())
	case array.Pow:
		if k, ok := uniform(in[1]); !ok || math.Mod(k, 2) != 0 {
			*todo = append(*todo, in[0])
		}
		return isFloat(a.Out())
	case array.Add, array.Mul, array.TrueDiv, array.Inv:
		*todo = append(*todo, in...)
		return isFloat(a.Out())
	case array.Minimum:
		*todo = append(*todo, in...)
	case array.Second, array.Switch:
		*todo = append(*todo, in[1:]...)
	case array.Log1p, array.Expm1, array.Sinh, array.Tanh, array.Arctan, array.Arcsinh, array.Erf, array.Identity,
		array.Ceil, array.Floor, array.Trunc, array.Round, array.Sgn:
		*todo = append(*todo, in[0])
	case array.Cast: // of NaN, an integer may be negative
		*todo = append(*todo, in[0])
		return isFloat(a.Out()) || isInteger(in[0])
	default:
		return dtypeOf(a.Out()) == array.Bool
	}
	return true
}
