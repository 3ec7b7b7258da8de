package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// SparseDotOp is the product of a sparse matrix in compressed rows and a matrix.
type SparseDotOp struct{}

// UsmmOp is alpha·x·y + z, of a scalar, a sparse matrix and two matrices: inputs alpha, x, y, z.
type UsmmOp struct{ Inplace bool }

// SparseDot returns the product of a sparse matrix and a matrix.
func SparseDot(x, y *fgraph.Variable) *fgraph.Variable { return Apply(SparseDotOp{}, x, y) }

// CSR returns an input that is a sparse matrix of float64 elements.
func CSR(name string) *fgraph.Variable { return NewInput(CSRType(Float64), name) }

// String returns SparseDot.
func (SparseDotOp) String() string { return "SparseDot" }

// String returns Usmm.
func (op UsmmOp) String() string { return inplaceName("Usmm", op.Inplace) }

// DestroyMap tells that the result takes the place of z.
func (op UsmmOp) DestroyMap() []fgraph.Alias {
	if op.Inplace {
		return []fgraph.Alias{{Output: 0, Input: 3}}
	}
	return nil
}

func sparseArgs(op fgraph.Op, first int, x, y *fgraph.Variable) error {
	t, u := TypeOf(x), TypeOf(y)
	if !t.IsCSR() {
		return argError(op, first, "is a %v, not a sparse matrix", t)
	}
	if u.IsCSR() || u.NDim() != 2 || u.DType() != t.DType() {
		return argError(op, first+1, "is a %v, not a matrix of %v", u, t.DType())
	}
	return nil
}

// Infer checks the types.
func (op SparseDotOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if err := takes(op, in, 2); err != nil {
		return nil, err
	}
	if err := sparseArgs(op, 0, in[0], in[1]); err != nil {
		return nil, err
	}
	return blasType(op, TypeOf(in[1]).DType(), []int{Unknown}, []int{TypeOf(in[1]).Dim(1)})
}

// Infer checks the types.
func (op UsmmOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if err := takes(op, in, 4); err != nil {
		return nil, err
	}
	if err := sparseArgs(op, 1, in[1], in[2]); err != nil {
		return nil, err
	}
	dtype, z := TypeOf(in[2]).DType(), TypeOf(in[3])
	if TypeOf(in[0]) != ScalarType(dtype) {
		return nil, argError(op, 0, "is a %v, not a %v scalar", in[0].Type(), dtype)
	}
	if z.NDim() != 2 || z.DType() != dtype || z.IsCSR() {
		return nil, argError(op, 3, "is a %v, not a matrix of %v", z, dtype)
	}
	return blasType(op, dtype, []int{z.Dim(0)}, []int{z.Dim(1), TypeOf(in[2]).Dim(1)})
}

// Compile returns the product.
func (op SparseDotOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := ws.New(out[0], in[1].DType(), in[0].Dim(0), in[1].Dim(1)); err != nil {
			return err
		}
		array.CopyTo(out[0], array.Full(in[1].DType(), 0))
		return shapeFault(array.MulCSR(1, in[0], in[1], out[0]))
	}, nil
}

// Compile returns the product and sum.
func (op UsmmOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := target(ws, op.Inplace, out[0], in[3], 1); err != nil {
			return err
		}
		return shapeFault(array.MulCSR(in[0].Float(0), in[1], in[2], out[0]))
	}, nil
}

// InferShape takes the sizes that do not meet.
func (op SparseDotOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{{s.Dim(a.Inputs()[0], 0), s.Dim(a.Inputs()[1], 1)}}
}

// InferShape is that of z.
func (op UsmmOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return sameShapeAs(a.Inputs()[3], s)
}
