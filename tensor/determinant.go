package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// The ops of square matrices. They compute with float64s.
type (
	// DetOp computes the determinant.
	DetOp = detOp
	// SLogDetOp computes the sign of the determinant and the logarithm of its absolute value.
	SLogDetOp = slogdetOp
	// MatrixInverseOp computes the inverse. The error at run time wraps array.ErrSingular.
	MatrixInverseOp = matrixInverseOp
)

type (
	detOp           struct{}
	slogdetOp       struct{}
	matrixInverseOp struct{ likeFirst }
)

// Det returns the determinant of a square matrix.
func Det(x *fgraph.Variable) *fgraph.Variable { return MustApply(DetOp{}, asFloat(x)) }

// SLogDet returns the sign of the determinant of a square matrix and the logarithm of its absolute
// value.
func SLogDet(x *fgraph.Variable) (sign, log *fgraph.Variable) {
	out := MustApply(SLogDetOp{}, asFloat(x)).Owner().Outputs()
	return out[0], out[1]
}

// Inv returns the inverse of a square matrix.
func Inv(x *fgraph.Variable) *fgraph.Variable { return MustApply(MatrixInverseOp{}, asFloat(x)) }

func asFloat(x *fgraph.Variable) *fgraph.Variable { return castConstant(x, TypeOf(x).DType().Float()) }

func (detOp) String() string           { return "Det" }
func (slogdetOp) String() string       { return "SLogDet" }
func (matrixInverseOp) String() string { return "MatrixInverse" }

// square checks that the input is a square matrix of floats, as far as is known.
func square(op fgraph.Op, in []*fgraph.Variable) (Type, error) {
	if len(in) != 1 {
		return Type{}, wrongCount(op, in, 1)
	}
	t := TypeOf(in[0])
	if t.NDim() != 2 || !t.DType().IsFloat() || t.IsCSR() {
		return t, argError(op, 0, "is a %v, not a matrix of floats", t)
	}
	if n, m := t.Dim(0), t.Dim(1); n != m && n != Unknown && m != Unknown {
		return t, argError(op, 0, "is a %v, which is not square", t)
	}
	return t, nil
}

// squareAtRun is square for an array.
func squareAtRun(op fgraph.Op, x *array.Array) error {
	if x.Dim(0) != x.Dim(1) {
		return fmt.Errorf("%w: %v of shape %v, which is not square", ErrShape, op, x.Shape())
	}
	return nil
}

func (op detOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	t, err := square(op, in)
	if err != nil {
		return nil, err
	}
	return one(ScalarType(t.DType())), nil
}

func (op slogdetOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	t, err := square(op, in)
	if err != nil {
		return nil, err
	}
	return []fgraph.Type{ScalarType(t.DType()), ScalarType(t.DType())}, nil
}

func (op matrixInverseOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return typed(square(op, in))
}

func (op detOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := squareAtRun(op, in[0]); err != nil {
			return err
		}
		det, err := ws.Determinant(in[0])
		if err != nil {
			return err
		}
		return floatScalars(ws, out, in[0].DType(), det)
	}, nil
}

func (op slogdetOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := squareAtRun(op, in[0]); err != nil {
			return err
		}
		sign, log, err := ws.LogDeterminant(in[0])
		if err != nil {
			return err
		}
		return floatScalars(ws, out, in[0].DType(), sign, log)
	}, nil
}

// floatScalars makes the outputs scalars.
func floatScalars(ws *array.Workspace, out []*array.Array, dtype array.DType, values ...float64) error {
	for i, v := range values {
		if err := ws.New(out[i], dtype); err != nil {
			return err
		}
		out[i].SetFloat(0, v)
	}
	return nil
}

func (op matrixInverseOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := squareAtRun(op, in[0]); err != nil {
			return err
		}
		if err := ws.New(out[0], in[0].DType(), in[0].Shape()...); err != nil {
			return err
		}
		return ws.Inverse(out[0], in[0])
	}, nil
}

// Grad multiplies by the cofactors, det(x)·inv(x)ᵀ. The gradient of a singular matrix is an error at
// run time.
func (op detOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	return []*fgraph.Variable{Mul(Mul(out[0], a.Out()), Transpose(Inv(a.Inputs()[0])))}
}

// Grad multiplies by inv(x)ᵀ. The sign has no gradient.
func (op slogdetOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	if out[1] == nil {
		return []*fgraph.Variable{nil}
	}
	return []*fgraph.Variable{Mul(out[1], Transpose(Inv(a.Inputs()[0])))}
}

func (op matrixInverseOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	// With y = x⁻¹, dy is -y·dx·y, so the gradient is -yᵀ·g·yᵀ.
	y := Transpose(a.Out())
	return []*fgraph.Variable{Neg(Dot(Dot(y, out[0]), y))}
}
