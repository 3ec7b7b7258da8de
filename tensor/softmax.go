package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// The softmax over the last dimension, and its gradient.
type (
	// SoftmaxOp computes the softmax, or its logarithm with the field Log.
	SoftmaxOp = softmaxOp
	// SoftmaxGradOp computes the gradient of a SoftmaxOp with the same field Log: inputs dy and y.
	SoftmaxGradOp = softmaxGradOp
	// SoftmaxWithBiasOp computes the softmax of a matrix plus a row: inputs x, b.
	SoftmaxWithBiasOp = softmaxWithBiasOp
)

type (
	softmaxOp struct {
		likeFirst
		Log bool
	}
	softmaxGradOp struct {
		likeSecond
		Log bool
	}
	softmaxWithBiasOp struct{ likeFirst }
)

// Softmax returns exp(x) divided by its sum over the last dimension.
func Softmax(x *fgraph.Variable) *fgraph.Variable { return MustApply(SoftmaxOp{}, x) }

// LogSoftmax returns the logarithm of Softmax(x).
func LogSoftmax(x *fgraph.Variable) *fgraph.Variable { return MustApply(SoftmaxOp{Log: true}, x) }

func (op softmaxOp) String() string      { return softmaxName(op.Log) }
func (op softmaxGradOp) String() string  { return softmaxName(op.Log) + "Grad" }
func (softmaxWithBiasOp) String() string { return "SoftmaxWithBias" }

func softmaxName(log bool) string {
	if log {
		return "LogSoftmax"
	}
	return "Softmax"
}

func (op softmaxOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 {
		return nil, wrongCount(op, in, 1)
	}
	t := TypeOf(in[0])
	if t.NDim() == 0 || !t.DType().IsFloat() || t.IsCSR() {
		return nil, argError(op, 0, "is a %v, not a tensor of floats with dimensions", t)
	}
	return one(t), nil
}

func (op softmaxGradOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 2 {
		return nil, wrongCount(op, in, 2)
	}
	if _, err := (SoftmaxOp{}).Infer(in[1:]); err != nil {
		return nil, argError(op, 1, "is a %v", in[1].Type())
	}
	if !in[1].Type().Accepts(in[0].Type()) {
		return nil, argError(op, 0, "is a %v, not a %v", in[0].Type(), in[1].Type())
	}
	return []fgraph.Type{in[1].Type()}, nil
}

func (op softmaxWithBiasOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 2 {
		return nil, wrongCount(op, in, 2)
	}
	if err := biasArgs(op, in[0], in[1]); err != nil {
		return nil, err
	}
	return []fgraph.Type{in[0].Type()}, nil
}

// biasArgs checks that x is a matrix of floats, and b a vector with an element per column.
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

func (op softmaxOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := ws.New(out[0], in[0].DType(), in[0].Shape()...); err != nil {
			return err
		}
		ws.Softmax(out[0], in[0], op.Log)
		return nil
	}, nil
}

func (op softmaxGradOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if !array.SameShape(in[0], in[1]) {
			return fmt.Errorf("%w: %v of shapes %v and %v", ErrShape, op, in[0].Shape(), in[1].Shape())
		}
		if err := ws.New(out[0], in[0].DType(), in[0].Shape()...); err != nil {
			return err
		}
		ws.SoftmaxGrad(out[0], in[0], in[1], op.Log)
		return nil
	}, nil
}

func (op softmaxWithBiasOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		return softmaxWithBias(op, ws, out[0], in[0], in[1], false)
	}, nil
}

// softmaxWithBias makes out the softmax of x + b, or its logarithm.
func softmaxWithBias(op fgraph.Op, ws *array.Workspace, out, x, b *array.Array, log bool) error {
	if x.Dim(1) != b.Dim(0) {
		return fmt.Errorf("%w: %v of shapes %v and %v", ErrShape, op, x.Shape(), b.Shape())
	}
	if err := ws.New(out, x.DType(), x.Shape()...); err != nil {
		return err
	}
	ws.Copy(out, x)
	ws.Add(out, b)
	ws.Softmax(out, out, log)
	return nil
}

func (op softmaxOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	return []*fgraph.Variable{MustApply(SoftmaxGradOp{Log: op.Log}, out[0], a.Out())}
}

// Grad differentiates y·(dy - Σ y·dy), or dy - exp(y)·Σ dy for the logarithm.
func (op softmaxGradOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
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

// Grad sums over the rows for the bias.
func (op softmaxWithBiasOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	dx := MustApply(SoftmaxGradOp{}, out[0], a.Out())
	return []*fgraph.Variable{dx, Sum(dx, 0)}
}
