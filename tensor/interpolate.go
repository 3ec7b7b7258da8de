package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// InterpolateOp computes elements along the dimension Axis of x that lie between its elements: inputs x, of
// float32s or float64s, and a vector of float64s with the places of the elements. Element i is the sum of its
// two neighbours, weighted by how near they are. Places outside of x are those of its ends.
type InterpolateOp = interpolateOp

type interpolateOp struct{ Axis int8 }

func (op interpolateOp) String() string { return fmt.Sprintf("Interpolate{axis=%d}", op.Axis) }

// Infer returns the type of x with as many elements along the dimension as there are places.
func (op interpolateOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 2 {
		return nil, wrongCount(op, in, 2)
	}
	t, err := alongAxis(op, in[:1], op.Axis)
	if err != nil {
		return nil, err
	}
	if !t.DType().IsFloat() || t.DType().IsHalf() {
		return nil, argError(op, 0, "is a %v, not of float32s or float64s", t)
	}
	places := TypeOf(in[1])
	if places.NDim() != 1 || places.DType() != array.Float64 {
		return nil, argError(op, 1, "is a %v, not a vector of float64s", places)
	}
	s := t.h.Value()
	s.shape[op.Axis] = staticSize(places.Dim(0))
	return one(s.intern()), nil
}

// Compile implements Op.
func (op interpolateOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		shape := append(buf[:0], in[0].Shape()...)
		if n, m := shape[op.Axis], in[1].Len(); n == 0 && m > 0 {
			return fmt.Errorf("%w: %v: %d elements of none", ErrShape, op, m)
		}
		shape[op.Axis] = in[1].Len()
		if err := ws.New(out[0], in[0].DType(), shape...); err != nil {
			return err
		}
		return ws.Interpolate(out[0], in[0], in[1], int(op.Axis))
	}, nil
}

// InferShape implements ShapeInferer.
func (op interpolateOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x := a.Inputs()[0]
	dims := s.dims(x)
	dims[op.Axis] = s.Dim(a.Inputs()[1], 0)
	return [][]*fgraph.Variable{dims}
}

// Grad gives both neighbours their share, and places nothing.
func (op interpolateOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x, g, d := a.Inputs()[0], out[0], int(op.Axis)
	last := intMap(array.Sub, sizeOf(x, d), Int(1))
	at := Minimum(Maximum(a.Inputs()[1], Float(0)), Cast(last, array.Float64))
	left := Cast(at, array.Int64)
	share := asDim(Cast(Sub(at, left), TypeOf(x).DType()), d, TypeOf(x).NDim())
	give := func(to *fgraph.Variable, at, part *fgraph.Variable) *fgraph.Variable {
		return NewPart("interpolate", to, alongBy(d, ByTensor(at))...).Inc(Mul(g, part))
	}
	dx := give(ZerosLike(x), left, Sub(Number(1, share), share))
	return gradients(a, give(dx, Minimum(Add(left, Int(1)), last), share))
}

// Cost implements Coster.
func (op interpolateOp) Cost(a *fgraph.Apply) float64 {
	return callCost + float64(writeCost*bytes(a.Outputs())) + float64(poolElementCost*elements(a.Out()))
}
