package tensor

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/internal/preparation"
)

// MatmulOp multiplies the matrices that the last two dimensions of its inputs are. Both inputs have
// the same number of dimensions, at least three. The other dimensions are broadcast.
type MatmulOp = matmulOp

type matmulOp struct{}

// Matmul returns the matrix product of x and y as NumPy's matmul does: that of [Dot] for vectors and
// matrices. With more dimensions it is a product for each index of the others, which are broadcast;
// a vector counts as a matrix of one row on the left, and of one column on the right.
func Matmul(x, y *fgraph.Variable) *fgraph.Variable {
	n, m := TypeOf(x).NDim(), TypeOf(y).NDim()
	switch {
	case n == 0 || m == 0:
		fail("matmul", "a %v and a %v: a scalar is no matrix", x.Type(), y.Type())
	case n <= 2 && m <= 2:
		return Dot(x, y)
	case n == 1:
		row := append(slices.Repeat([]int{array.NewAxis}, m-1), 0)
		return dropDim(Matmul(DimShuffle(x, row...), y), m-2)
	case m == 1:
		column := append(slices.Repeat([]int{array.NewAxis}, n-2), 0, array.NewAxis)
		return dropDim(Matmul(x, DimShuffle(y, column...)), n-1)
	}
	return MustApply(MatmulOp{}, PadLeft(x, m), PadLeft(y, n))
}

// dropDim drops dimension d, which has size 1.
func dropDim(x *fgraph.Variable, d int) *fgraph.Variable {
	return DimShuffle(x, slices.Delete(allDims(x), d, d+1)...)
}

// upTo returns 0, 1, …, n-1.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func (matmulOp) String() string { return "Matmul" }

func (op matmulOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 2 {
		return nil, wrongCount(op, in, 2)
	}
	x, y := TypeOf(in[0]).h.Value(), TypeOf(in[1]).h.Value()
	for i, t := range []spec{x, y} {
		if t.ndim < 3 || t.ndim != x.ndim || t.csr {
			return nil, argError(op, i, "is a %v, not a tensor of three or more dimensions like the other one", in[i].Type())
		}
	}
	d := x.ndim - 2
	if n, m := x.shape[d+1], y.shape[d]; n != m && n != Unknown && m != Unknown {
		return nil, argError(op, 1, "is a %v, whose dimension %d does not fit the last one of a %v", in[1].Type(), d, in[0].Type())
	}
	s := spec{dtype: array.Upcast(x.dtype, y.dtype).Number(), ndim: x.ndim}
	for k := range d {
		switch n, m := x.shape[k], y.shape[k]; {
		case n == m || m == 1 || m == Unknown && n != 1:
			s.shape[k] = n
		case n == 1 || n == Unknown:
			s.shape[k] = m
		default:
			return nil, argError(op, 1, "has size %d in dimension %d, where the first one has %d", m, k, n)
		}
	}
	s.shape[d], s.shape[d+1] = x.shape[d], y.shape[d+1]
	return one(s.intern()), nil
}

func (op matmulOp) Compile(a *fgraph.Apply) (Kernel, error) { return op.compileProduct(a, nil) }

// compileProduct implements multiplier. A single constant matrix on the right is prepared once.
func (op matmulOp) compileProduct(a *fgraph.Apply, e *array.Epilogue) (Kernel, error) {
	dtype := TypeOf(a.Out()).DType()
	prepared := preparedFactor(a.Inputs()[1], dtype)
	return productKernel(op, a, func(ws *array.Workspace, y *array.Array, in []*array.Array) error {
		return ws.BatchMatMul(y, in[0], in[1], prepared(ws), e, in[2:])
	}), nil
}

// productKernel returns the kernel of an op that multiplies the last two dimensions of its first two
// inputs with run, which sets y, and is given the factors in the type of the result.
func productKernel(op fgraph.Op, a *fgraph.Apply, run func(ws *array.Workspace, y *array.Array, in []*array.Array) error) Kernel {
	in := a.Inputs()
	t := TypeOf(in[0])
	dtype, d := array.Upcast(t.DType(), TypeOf(in[1]).DType()).Number(), t.NDim()-2
	specs := []spec{t.h.Value(), TypeOf(in[1]).h.Value()}
	return func(ws *array.Workspace, in, out []*array.Array) error {
		x, y := in[0], in[1]
		if n, m := x.Dim(d+1), y.Dim(d); n != m {
			return fmt.Errorf("%w: %v of shapes %v and %v", ErrShape, op, x.Shape(), y.Shape())
		}
		var shape [array.MaxDims]int
		if err := runtimeShape(op, shape[:d], specs, in[:2]); err != nil {
			return err
		}
		shape[d], shape[d+1] = x.Dim(d), y.Dim(d+1)
		if err := ws.New(out[0], dtype, shape[:d+2]...); err != nil {
			return err
		}
		if err := fitArgs(op, out[0], in[2:]); err != nil {
			return err
		}
		if x.DType() == dtype && y.DType() == dtype {
			return run(ws, out[0], in)
		}
		cast := slices.Clone(in)
		cast[0], cast[1] = x.Cast(dtype), y.Cast(dtype)
		return run(ws, out[0], cast)
	}
}

// preparedFactor returns what prepares a constant factor of products of a type, of which the last two
// dimensions are a matrix, or the only one a column, at the first call. It returns nil if nothing is gained by that.
func preparedFactor(v *fgraph.Variable, dtype array.DType) func(*array.Workspace) *array.Factor {
	a := FixedFactor(v)
	if a == nil || a.DType() != dtype || dtype != array.Float32 {
		return nothing[array.Factor]
	}
	// The form belongs to the constant itself, where all products with it look for it, also for its transposes:
	// a transposed array is a new one each time.
	constant, form := a, factor{}
	if ConstantOf(v) == nil {
		constant, form.order = ConstantOf(v.Owner().Inputs()[0]), v.Owner().Op().(DimShuffleOp)
	}
	if a.NDim() == 1 {
		a = a.Transpose(0, array.NewAxis)
	}
	return preparation.Once(constant, form, func(ws *array.Workspace) *array.Factor { return array.NewFactor(a, ws.Threads, ws.Read) })
}

// nothing is what a variable that is no constant is prepared to.
func nothing[T any](*array.Workspace) *T { return nil }

// factor is the form of a factor whose dimensions are in some order, that of the constant if it is zero.
type factor struct{ order DimShuffleOp }

// FixedFactor returns the value of a variable that is a constant, or a constant with its dimensions in another
// order, and otherwise nil. Folding makes no constant of a large one that has been transposed.
func FixedFactor(v *fgraph.Variable) *array.Array {
	if a := ConstantOf(v); a != nil {
		return a
	}
	op, ok := OpOf(v).(DimShuffleOp)
	if !ok {
		return nil
	}
	a := ConstantOf(v.Owner().Inputs()[0])
	if order := op.NewOrder(); a != nil && !a.IsCSR() && len(order) == a.NDim() && !slices.Contains(order, -1) {
		return a.Transpose(order...)
	}
	return nil
}

func (op matmulOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x, y := a.Inputs()[0], a.Inputs()[1]
	dims := make([]*fgraph.Variable, TypeOf(x).NDim())
	d := len(dims) - 2
	for k := range d {
		if dims[k] = s.Dim(x, k); TypeOf(x).Dim(k) == 1 {
			dims[k] = s.Dim(y, k)
		}
	}
	dims[d], dims[d+1] = s.Dim(x, d), s.Dim(y, d+1)
	return [][]*fgraph.Variable{dims}
}

// Grad multiplies by the transposes of the matrices. For an input that is a single matrix, which
// all items share, that is one large product.
func (op matmulOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x, y, g := a.Inputs()[0], a.Inputs()[1], out[0]
	d := TypeOf(x).NDim() - 2
	return []*fgraph.Variable{
		op.sumTo(x, g, y, append(upTo(d), d+1), func() *fgraph.Variable { return Matmul(g, swapLast(y)) }),
		op.sumTo(y, x, g, upTo(d+1), func() *fgraph.Variable { return Matmul(swapLast(x), g) }),
	}
}

// sumTo returns the gradient with respect to v, one of the inputs: the product of p and q over the
// dimensions summed if v is a single matrix and the others are not broadcast, otherwise a product
// for each item.
func (op matmulOp) sumTo(v, p, q *fgraph.Variable, summed []int, items func() *fgraph.Variable) *fgraph.Variable {
	d := TypeOf(v).NDim() - 2
	for k := range d {
		// Where p and q do not broadcast against each other, the batch is one more dimension to sum over.
		if TypeOf(v).Dim(k) != 1 || TypeOf(p).Dim(k) != TypeOf(q).Dim(k) {
			return unbroadcast(items(), v)
		}
	}
	return PadLeft(Tensordot(p, q, summed, summed), d+2)
}

// swapLast exchanges the last two dimensions.
func swapLast(x *fgraph.Variable) *fgraph.Variable {
	order := allDims(x)
	d := len(order) - 2
	order[d], order[d+1] = order[d+1], order[d]
	return DimShuffle(x, order...)
}
