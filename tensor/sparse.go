package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// The products with a sparse matrix in compressed rows. The operands are floats of one type.
type (
	// SparseDotOp computes x·y, of a sparse matrix and a matrix.
	SparseDotOp = sparseDotOp
	// UsmmOp computes a·x·y + z, of a scalar, a sparse matrix and two matrices: inputs a, x, y, z.
	// With the field Inplace it overwrites z.
	UsmmOp = usmmOp
)

type (
	sparseDotOp struct{ likeProduct }
	usmmOp      struct{ Inplace bool }
)

// SparseDot returns the product of a sparse matrix and a matrix.
func SparseDot(x, y *fgraph.Variable) *fgraph.Variable { return MustApply(SparseDotOp{}, x, y) }

func (sparseDotOp) String() string           { return "SparseDot" }
func (op usmmOp) String() string             { return inplaceName("Usmm", op.Inplace) }
func (op usmmOp) DestroyMap() []fgraph.Alias { return destroys(op.Inplace, 3) }

func (op usmmOp) Overwriting() Op { op.Inplace = true; return op }

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

func (op sparseDotOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 2 {
		return nil, wrongCount(op, in, 2)
	}
	if err := sparseArgs(op, 0, in[0], in[1]); err != nil {
		return nil, err
	}
	y := TypeOf(in[1])
	return one(NewType(y.DType(), Unknown, y.Dim(1))), nil
}

func (op usmmOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 4 {
		return nil, wrongCount(op, in, 4)
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
	n, err := agree(op, 3, TypeOf(in[2]).Dim(1), z.Dim(1))
	return one(NewType(dtype, z.Dim(0), int(n))), err
}

func (op sparseDotOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := ws.New(out[0], in[1].DType(), in[0].Dim(0), in[1].Dim(1)); err != nil {
			return err
		}
		// MulCSR adds to what is there.
		ws.Copy(out[0], array.Full(in[1].DType(), 0))
		return shapeFault(array.MulCSR(1, in[0], in[1], out[0]))
	}, nil
}

func (op usmmOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := target(ws, op.Inplace, out[0], in[3], 1); err != nil {
			return err
		}
		return shapeFault(array.MulCSR(in[0].Float(0), in[1], in[2], out[0]))
	}, nil
}

func (op usmmOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{s.Shape(a.Inputs()[3])}
}
