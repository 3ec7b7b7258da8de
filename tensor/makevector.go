package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// MakeVectorOp makes a vector of scalars, which have the element type that its field DType names.
type MakeVectorOp = makeVectorOp

type makeVectorOp struct{ DType array.DType }

// MakeVector returns a vector of scalars, upcast to one element type, which is int64 if there are
// none.
func MakeVector(xs ...*fgraph.Variable) *fgraph.Variable {
	op := MakeVectorOp{DType: array.Int64}
	if len(xs) > 0 {
		types := dtypesOf(xs)
		op.DType = array.Upcast(types[0], types[1:]...)
	}
	in := make([]*fgraph.Variable, len(xs))
	for i, x := range xs {
		in[i] = castConstant(x, op.DType)
	}
	return MustApply(op, in...)
}

// castConstant is Cast, but converts a constant of one element right away.
func castConstant(x *fgraph.Variable, to array.DType) *fgraph.Variable {
	if a := ConstantOf(x); a != nil && a.DType() != to && a.Len() == 1 {
		return Constant(a.Cast(to))
	}
	return Cast(x, to)
}

func (op makeVectorOp) String() string { return "MakeVector{" + op.DType.String() + "}" }

func (op makeVectorOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	for i, v := range in {
		if TypeOf(v) != ScalarType(op.DType) {
			return nil, argError(op, i, "is a %v", v.Type())
		}
	}
	return []fgraph.Type{NewType(op.DType, len(in))}, nil
}

func (op makeVectorOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := ws.New(out[0], op.DType, len(in)); err != nil {
			return err
		}
		place := ws.View(0)
		for i, x := range in {
			out[0].RangeTo(place, array.Range{Start: i, Drop: true})
			array.CopyTo(place, x)
		}
		return nil
	}, nil
}

func (op makeVectorOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{{s.Size(len(a.Inputs()))}}
}

func (op makeVectorOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	grads := make([]*fgraph.Variable, len(a.Inputs()))
	for i := range grads {
		grads[i] = Subtensor(out[0], At(Int(i)))
	}
	return grads
}
