package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// PoolLastOp is PoolOp of floats with channels last: x is [N, spatial…, C].
type PoolLastOp = poolLastOp

type poolLastOp poolOp

func (op poolLastOp) String() string {
	return poolText(poolName(op.Kind)+"Last", op.Window, op.Ceil, op.Kind)
}

// first returns x as PoolOp has it.
func (op poolLastOp) first(x *fgraph.Variable) *fgraph.Variable {
	return DimShuffle(x, ToSecond(op.Window.Dims+2)...)
}

// Infer implements Op.
func (op poolLastOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 {
		return nil, wrongCount(op, in, 1)
	}
	if t := TypeOf(in[0]); t.NDim() != op.Window.Dims+2 || !t.DType().IsFloat() || t.IsCSR() {
		return nil, argError(op, 0, "is a %v, not a tensor of floats with %d dimensions", t, op.Window.Dims+2)
	}
	types, err := PoolOp(op).Infer([]*fgraph.Variable{op.first(in[0])})
	if err != nil {
		return nil, err
	}
	s := types[0].(Type).h.Value()
	last := s
	for i, d := range ToLast(op.Window.Dims + 2) {
		last.shape[i] = s.shape[d]
	}
	return one(last.intern()), nil
}

// Compile implements Op.
func (op poolLastOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		x := in[0].Shape()
		last := len(x) - 1
		y, err := fitPool(op, append(buf[:0], x[0]), op.Window, op.Ceil, op.Kind, x[1:last])
		if err != nil {
			return err
		}
		if err := ws.New(out[0], in[0].DType(), append(y, x[last])...); err != nil {
			return err
		}
		return ws.PoolLast(out[0], in[0], op.Window, op.Kind)
	}, nil
}

// InferShape implements ShapeInferer.
func (op poolLastOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x := a.Inputs()[0]
	dims := []*fgraph.Variable{s.Dim(x, 0)}
	for d := range op.Window.Dims {
		dims = append(dims, slidDim(s, op.Window, d, s.Dim(x, d+1), s.Size(op.Window.Size[d]), op.Ceil))
	}
	return [][]*fgraph.Variable{append(dims, s.Dim(x, op.Window.Dims+1))}
}

// Grad implements Differentiable: the gradient is that of PoolOp.
func (op poolLastOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	first, err := Make(PoolOp(op), op.first(a.Inputs()[0]))
	if err != nil {
		return []*fgraph.Variable{nil}
	}
	g := PoolOp(op).Grad(first, []*fgraph.Variable{op.first(out[0])})
	return []*fgraph.Variable{DimShuffle(g[0], ToLast(op.Window.Dims+2)...)}
}

// Cost implements Coster.
func (op poolLastOp) Cost(a *fgraph.Apply) float64 { return poolCost(a, a.Out(), op.Window) }
