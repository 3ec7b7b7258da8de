package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/internal/preparation"
)

// SpliceMatmulOp is the product of MatmulOp of N tensors, joined along their last dimension, and a
// single matrix: inputs x₁, …, x_N, and y. It reads the tensors where they are. If y is a constant, it
// is prepared once, for all calls. The bits are those of MatmulOp.
type SpliceMatmulOp = spliceMatmulOp

type spliceMatmulOp struct{ N int8 }

func (op spliceMatmulOp) String() string { return fmt.Sprintf("SpliceMatmul{%d}", op.N) }

// Infer implements Op.
func (op spliceMatmulOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	n := int(op.N)
	if n < 1 || len(in) != n+1 {
		return nil, wrongCount(op, in, max(n, 1)+1)
	}
	for i, v := range in {
		if t := TypeOf(v); t.DType() != array.Float32 || t.NDim() < 3 || t.NDim() != TypeOf(in[0]).NDim() || t.IsCSR() {
			return nil, argError(op, i, "is a %v, not a tensor of float32s of three or more dimensions like the first one", t)
		}
	}
	joined, err := Make(JoinOp{Axis: int8(TypeOf(in[0]).NDim() - 1)}, in[:n]...)
	if err != nil {
		return nil, err
	}
	y := TypeOf(in[n])
	for d := range y.NDim() - 2 {
		if y.Dim(d) != 1 {
			return nil, argError(op, n, "is a %v, not a single matrix", y)
		}
	}
	return MatmulOp{}.Infer([]*fgraph.Variable{joined.Out(), in[n]})
}

// factors is the form of the parts of a factor, with their numbers of rows.
type factors string

// Compile implements Op.
func (op spliceMatmulOp) Compile(a *fgraph.Apply) (Kernel, error) { return op.compileProduct(a, nil) }

// compileProduct implements multiplier.
func (op spliceMatmulOp) compileProduct(a *fgraph.Apply, e *array.Epilogue) (Kernel, error) {
	n := int(op.N)
	var none []*array.Factor
	prepared := func(*array.Workspace) *[]*array.Factor { return &none }
	if y := ConstantOf(a.Inputs()[n]); y != nil {
		d := y.NDim()
		sizes := make([]int, n)
		known := true
		for i, x := range a.Inputs()[:n] {
			sizes[i] = TypeOf(x).Dim(d - 1)
			known = known && sizes[i] != Unknown
		}
		// The matrix is cut into parts with as many rows as the tensors have columns, so it can be prepared
		// only if all of these are known before a run.
		if known {
			prepared = preparation.Once(y, factors(fmt.Sprint(sizes)), func(t *kernel.Threads) *[]*array.Factor {
				list := array.NewFactors(y, sizes, t)
				return &list
			})
		}
	}
	return func(ws *array.Workspace, in, out []*array.Array) error {
		d := in[0].NDim() - 1
		var shape [array.MaxDims]int
		copy(shape[:], in[0].Shape())
		terms := 0
		for i, x := range in[:n] {
			for k, m := range x.Shape()[:d] {
				if m != shape[k] {
					return fmt.Errorf("%w: %v of shapes %v and %v", ErrShape, op, in[0].Shape(), in[i].Shape())
				}
			}
			terms += x.Dim(d)
		}
		if m := in[n].Dim(d - 1); m != terms {
			return fmt.Errorf("%w: %v of %d columns and shape %v", ErrShape, op, terms, in[n].Shape())
		}
		shape[d] = in[n].Dim(d)
		if err := ws.New(out[0], array.Float32, shape[:d+1]...); err != nil {
			return err
		}
		if err := fitArgs(op, out[0], in[n+1:]); err != nil {
			return err
		}
		return ws.SpliceMatMul(out[0], in[:n], in[n], *prepared(ws), e, in[n+1:])
	}, nil
}

// InferShape implements ShapeInferer.
func (op spliceMatmulOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x, y := a.Inputs()[0], a.Inputs()[op.N]
	d := TypeOf(x).NDim() - 1
	var dims []*fgraph.Variable
	for k := range d {
		dims = append(dims, s.Dim(x, k))
	}
	return [][]*fgraph.Variable{append(dims, s.Dim(y, d))}
}

// whole returns the product of the joined tensor.
func (op spliceMatmulOp) whole(in []*fgraph.Variable) *fgraph.Variable {
	return Matmul(Join(-1, in[:op.N]...), in[op.N])
}

// Cost implements Coster.
func (op spliceMatmulOp) Cost(a *fgraph.Apply) float64 { return Cost(op.whole(a.Inputs()).Owner()) }
