package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// LayerNormOp standardizes rows along the last dimension (Ba, Kiros and Hinton, 2016): inputs are x and
// perhaps a gain and then a bias, float32s of as many dimensions, of which all but the last have size 1. The
// result is (x - m)·1/√(v + Eps)·gain + bias, where m is the sum of a row of x divided by Divisor, the
// number of its elements, and v the same of the squares of x - m. Sums are made in double precision; the
// bits are those of the steps one by one.
type LayerNormOp = layerNormOp

type layerNormOp struct{ Divisor, Eps float32 }

func (op layerNormOp) String() string { return fmt.Sprintf("LayerNorm{%v,%v}", op.Divisor, op.Eps) }

// Infer implements Op.
func (op layerNormOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) < 1 || len(in) > 3 {
		return nil, opError(op, "takes one to three arguments, not %d", len(in))
	}
	x := TypeOf(in[0])
	n := x.NDim()
	for i, v := range in {
		t := TypeOf(v)
		if t.DType() != array.Float32 || t.NDim() != n || n == 0 || t.IsCSR() {
			return nil, argError(op, i, "is a %v", t)
		}
		if i == 0 {
			continue
		}
		for d := range n - 1 {
			if t.Dim(d) != 1 {
				return nil, argError(op, i, "is a %v, which has more than one row", t)
			}
		}
		if _, err := agree(op, i, x.Dim(n-1), t.Dim(n-1)); err != nil {
			return nil, err
		}
	}
	return one(x), nil
}

// Compile implements Op.
func (op layerNormOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		x := in[0]
		var rows [2]*array.Array
		for i, a := range in[1:] {
			if last := x.NDim() - 1; a.Dim(last) != x.Dim(last) {
				return fmt.Errorf("%w: %v of shapes %v and %v", ErrShape, op, x.Shape(), a.Shape())
			}
			rows[i] = a
		}
		if err := ws.New(out[0], array.Float32, x.Shape()...); err != nil {
			return err
		}
		return ws.LayerNorm(out[0], x, rows[0], rows[1], op.Divisor, op.Eps)
	}, nil
}

// InferShape implements ShapeInferer: the shape is that of x.
func (op layerNormOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{s.dims(a.Inputs()[0])}
}

// normWork is what an element takes, in picoseconds (Sapphire Rapids, November 2026).
const normWork = 300

// Cost implements Coster.
func (op layerNormOp) Cost(a *fgraph.Apply) float64 {
	return callCost + float64(elements(a.Out())*normWork)
}
