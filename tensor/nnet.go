package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// SoftmaxOp is the softmax over the last dimension, or its logarithm.
type SoftmaxOp struct{ Log bool }

// SoftmaxGradOp is the gradient of a SoftmaxOp: inputs dy and y.
type SoftmaxGradOp struct{ Log bool }

// Softmax returns exp(x) divided by its sum over the last dimension.
func Softmax(x *fgraph.Variable) *fgraph.Variable { return Apply(SoftmaxOp{}, x) }

// LogSoftmax returns the logarithm of Softmax(x).
func LogSoftmax(x *fgraph.Variable) *fgraph.Variable { return Apply(SoftmaxOp{true}, x) }

// String returns Softmax or LogSoftmax.
func (op SoftmaxOp) String() string { return softmaxName(op.Log) }

// String returns SoftmaxGrad or LogSoftmaxGrad.
func (op SoftmaxGradOp) String() string { return softmaxName(op.Log) + "Grad" }

func softmaxName(log bool) string {
	if log {
		return "LogSoftmax"
	}
	return "Softmax"
}

// Infer wants floats.
func (op SoftmaxOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 {
		return nil, &Error{op.String(), -1, "takes one argument"}
	}
	t := TypeOf(in[0])
	if t.NDim() == 0 || !t.DType().IsFloat() || t.IsCSR() {
		return nil, argError(op, 0, "is a %v, not a tensor of floats with dimensions", t)
	}
	return []fgraph.Type{t}, nil
}

// Infer wants two tensors of floats.
func (op SoftmaxGradOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 2 {
		return nil, &Error{op.String(), -1, "takes two arguments"}
	}
	if _, err := SoftmaxOp(op).Infer(in[1:]); err != nil {
		return nil, argError(op, 1, "is a %v", in[1].Type())
	}
	if !in[1].Type().Accepts(in[0].Type()) {
		return nil, argError(op, 0, "is a %v, not a %v", in[0].Type(), in[1].Type())
	}
	return []fgraph.Type{in[1].Type()}, nil
}

// Compile returns the softmax.
func (op SoftmaxOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := ws.New(out[0], in[0].DType(), in[0].Shape()...); err != nil {
			return err
		}
		array.Softmax(out[0], in[0], op.Log)
		return nil
	}, nil
}

// Compile returns the gradient.
func (op SoftmaxGradOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if !array.SameShape(in[0], in[1]) {
			return fmt.Errorf("%w: %v of shapes %v and %v", ErrShape, op, in[0].Shape(), in[1].Shape())
		}
		if err := ws.New(out[0], in[0].DType(), in[0].Shape()...); err != nil {
			return err
		}
		array.SoftmaxGrad(out[0], in[0], in[1], op.Log)
		return nil
	}, nil
}

// InferShape is that of the input.
func (op SoftmaxOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return sameShapeAs(a.Inputs()[0], s)
}

// InferShape is that of the inputs.
func (op SoftmaxGradOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return sameShapeAs(a.Inputs()[1], s)
}

// Grad is a SoftmaxGradOp.
func (op SoftmaxOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	return []*fgraph.Variable{Apply(SoftmaxGradOp(op), out[0], a.Out())}
}

// Grad writes the op out: y·(dy - Σ y·dy), or dy - exp(y)·Σ dy.
func (op SoftmaxGradOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	dy, y, g := a.Inputs()[0], a.Inputs()[1], out[0]
	last := TypeOf(y).NDim() - 1
	sum := func(x *fgraph.Variable) *fgraph.Variable { return keepDims(Sum(x, last), 1<<last, last+1) }
	if op.Log {
		e := Exp(y)
		return []*fgraph.Variable{Sub(g, sum(Mul(g, e))), Neg(Mul(g, e, sum(dy)))}
	}
	gy := sum(Mul(g, y))
	return []*fgraph.Variable{Mul(y, Sub(g, gy)), Sub(Mul(g, Sub(dy, sum(Mul(y, dy)))), Mul(gy, dy))}
}

// SoftmaxWithBiasOp is the softmax of a matrix plus a row: inputs x, b.
type SoftmaxWithBiasOp struct{}

// SoftmaxWithBias returns Softmax(x + b), for a matrix and a vector.
func SoftmaxWithBias(x, b *fgraph.Variable) *fgraph.Variable {
	return Apply(SoftmaxWithBiasOp{}, x, b)
}

// String returns SoftmaxWithBias.
func (SoftmaxWithBiasOp) String() string { return "SoftmaxWithBias" }

// rows checks that x is a matrix of floats, and b a vector with an element per column.
func biasArgs(op fgraph.Op, x, b *fgraph.Variable) error {
	t, u := TypeOf(x), TypeOf(b)
	if t.NDim() != 2 || !t.DType().IsFloat() || t.IsCSR() {
		return argError(op, 0, "is a %v, not a matrix of floats", t)
	}
	if u.NDim() != 1 || u.DType() != t.DType() {
		return argError(op, 1, "is a %v, not a vector of %v", u, t.DType())
	}
	_, err := agree(op, 1, t.Dim(1), u.Dim(0))
	return err
}

// Infer checks the sizes.
func (op SoftmaxWithBiasOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 2 {
		return nil, &Error{op.String(), -1, "takes two arguments"}
	}
	if err := biasArgs(op, in[0], in[1]); err != nil {
		return nil, err
	}
	return []fgraph.Type{in[0].Type()}, nil
}

// softmaxWithBias makes out the softmax of x + b, or its logarithm.
func softmaxWithBias(op fgraph.Op, ws *array.Workspace, out, x, b *array.Array, log bool) error {
	if x.Dim(1) != b.Dim(0) {
		return fmt.Errorf("%w: %v of shapes %v and %v", ErrShape, op, x.Shape(), b.Shape())
	}
	if err := ws.New(out, x.DType(), x.Shape()...); err != nil {
		return err
	}
	array.CopyTo(out, x)
	ws.Add(out, b)
	array.Softmax(out, out, log)
	return nil
}

// Compile returns the softmax.
func (op SoftmaxWithBiasOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		return softmaxWithBias(op, ws, out[0], in[0], in[1], false)
	}, nil
}

// InferShape is that of the matrix.
func (op SoftmaxWithBiasOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return sameShapeAs(a.Inputs()[0], s)
}

// Grad sums over the rows for the bias.
func (op SoftmaxWithBiasOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	dx := Apply(SoftmaxGradOp{}, out[0], a.Out())
	return []*fgraph.Variable{dx, Sum(dx, 0)}
}
