package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// DotOp is the product of two vectors or matrices, in all four combinations.
type DotOp struct{}

// Dot returns the product of two tensors of at most two dimensions, along the last dimension of x and the first of y. With a scalar it
// is the element-wise product.
func Dot(x, y *fgraph.Variable) *fgraph.Variable {
	if TypeOf(x).NDim() == 0 || TypeOf(y).NDim() == 0 {
		return Mul(x, y)
	}
	return Apply(DotOp{}, x, y)
}

// Outer returns the outer product of two vectors.
func Outer(x, y *fgraph.Variable) *fgraph.Variable {
	if TypeOf(x).NDim() != 1 || TypeOf(y).NDim() != 1 {
		fail("outer", "a %v and a %v are not two vectors", x.Type(), y.Type())
	}
	return Dot(DimShuffle(x, 0, NewAxis), DimShuffle(y, NewAxis, 0))
}

// String returns dot.
func (DotOp) String() string { return "dot" }

// Infer checks the sizes that meet.
func (op DotOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 2 {
		return nil, &Error{op.String(), -1, "takes two arguments"}
	}
	x, y := TypeOf(in[0]).h.Value(), TypeOf(in[1]).h.Value()
	for i, t := range []spec{x, y} {
		if t.ndim < 1 || t.ndim > 2 || t.csr {
			return nil, argError(op, i, "is a %v, which is neither vector nor matrix", in[i].Type())
		}
	}
	if n, m := x.shape[x.ndim-1], y.shape[0]; n != m && n != Unknown && m != Unknown {
		return nil, argError(op, 1, "is a %v, whose first dimension does not fit the last one of a %v", in[1].Type(), in[0].Type())
	}
	s := spec{dtype: max(array.Upcast(x.dtype, y.dtype), Int64)}
	if x.ndim == 2 {
		s.shape[0] = x.shape[0]
		s.ndim++
	}
	if y.ndim == 2 {
		s.shape[s.ndim] = y.shape[1]
		s.ndim++
	}
	return []fgraph.Type{s.intern()}, nil
}

// Compile returns the product.
func (op DotOp) Compile(a *fgraph.Apply) (Kernel, error) {
	dtype := TypeOf(a.Out()).DType()
	return func(ws *array.Workspace, in, out []*array.Array) error {
		x, y := in[0], in[1]
		if n, m := x.Dim(x.NDim()-1), y.Dim(0); n != m {
			return fmt.Errorf("%w: %v of shapes %v and %v", ErrShape, op, x.Shape(), y.Shape())
		}
		if x.DType() != dtype {
			x = x.Cast(dtype)
		}
		if y.DType() != dtype {
			y = y.Cast(dtype)
		}
		var buf [2]int
		shape := append(append(buf[:0], x.Shape()[:x.NDim()-1]...), y.Shape()[1:]...)
		if err := ws.New(out[0], dtype, shape...); err != nil {
			return err
		}
		return ws.MatMul(outMatrix(out[0], x.NDim(), y.NDim()), leftMatrix(x), rightMatrix(y))
	}, nil
}

// leftMatrix returns a left factor as a matrix: a vector is a row.
func leftMatrix(x *array.Array) *array.Array {
	if x.NDim() == 1 {
		return x.Transpose(NewAxis, 0)
	}
	return x
}

// rightMatrix returns a right factor as a matrix: a vector is a column.
func rightMatrix(y *array.Array) *array.Array {
	if y.NDim() == 1 {
		return y.Transpose(0, NewAxis)
	}
	return y
}

// outMatrix returns the product of factors with x and y dimensions as the matrix that their matrices make.
func outMatrix(out *array.Array, x, y int) *array.Array {
	switch {
	case x == 2 && y == 2:
		return out
	case x == 2:
		return out.Transpose(0, NewAxis)
	case y == 2:
		return out.Transpose(NewAxis, 0)
	}
	return out.Transpose(NewAxis, NewAxis)
}

// InferShape takes the sizes that do not meet.
func (op DotOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x, y := a.Inputs()[0], a.Inputs()[1]
	dims := []*fgraph.Variable{}
	if TypeOf(x).NDim() == 2 {
		dims = append(dims, s.Dim(x, 0))
	}
	if TypeOf(y).NDim() == 2 {
		dims = append(dims, s.Dim(y, 1))
	}
	return [][]*fgraph.Variable{dims}
}

// Grad multiplies by the other factor.
func (op DotOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x, y, g := a.Inputs()[0], a.Inputs()[1], out[0]
	switch xv, yv := TypeOf(x).NDim() == 1, TypeOf(y).NDim() == 1; {
	case xv && yv:
		return []*fgraph.Variable{Mul(g, y), Mul(g, x)}
	case xv:
		return []*fgraph.Variable{Dot(g, Transpose(y)), Outer(x, g)}
	case yv:
		return []*fgraph.Variable{Outer(g, y), Dot(Transpose(x), g)}
	}
	return []*fgraph.Variable{Dot(g, Transpose(y)), Dot(Transpose(x), g)}
}
