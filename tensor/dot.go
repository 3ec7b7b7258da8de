package tensor

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// DotOp computes the product of two vectors or matrices, in all four combinations.
type DotOp = dotOp

type dotOp struct{}

// Dot returns the product of two tensors along the last dimension of x and the last but one of y,
// or its only one. With a scalar it is the element-wise product.
func Dot(x, y *fgraph.Variable) *fgraph.Variable {
	switch n, m := TypeOf(x).NDim(), TypeOf(y).NDim(); {
	case n == 0 || m == 0:
		return Mul(x, y)
	case n > 2 || m > 2:
		return Tensordot(x, y, []int{-1}, []int{max(m-2, 0)})
	}
	return MustApply(DotOp{}, x, y)
}

// Outer returns the outer product of two vectors.
func Outer(x, y *fgraph.Variable) *fgraph.Variable {
	if TypeOf(x).NDim() != 1 || TypeOf(y).NDim() != 1 {
		fail("outer", "a %v and a %v are not two vectors", x.Type(), y.Type())
	}
	x, y = DimShuffle(x, 0, array.NewAxis), DimShuffle(y, array.NewAxis, 0)
	if productOf(x, y) == array.And {
		return Map(array.And, x, y)
	}
	return Dot(x, y)
}

func (dotOp) String() string { return "dot" }

func (op dotOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 2 {
		return nil, wrongCount(op, in, 2)
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
	s := spec{dtype: array.Upcast(x.dtype, y.dtype).Number()}
	if x.ndim == 2 {
		s.shape[0] = x.shape[0]
		s.ndim++
	}
	if y.ndim == 2 {
		s.shape[s.ndim] = y.shape[1]
		s.ndim++
	}
	return one(s.intern()), nil
}

func (op dotOp) Compile(a *fgraph.Apply) (Kernel, error) {
	dtype := TypeOf(a.Out()).DType()
	// Of matrices, passes make a Dot22, which prepares them.
	prepared := nothing[array.Factor]
	if v := a.Inputs()[1]; TypeOf(v).NDim() == 1 {
		prepared = preparedFactor(v, dtype)
	}
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
		x, y, product, err := asMatrices(ws, x, y, out[0])
		if err != nil {
			return err
		}
		return ws.MulRows(product, x, y, prepared(ws), nil, nil)
	}, nil
}

// asMatrices returns factors and product as matrices: a vector is a row on the left and a
// column on the right.
func asMatrices(ws *array.Workspace, x, y, out *array.Array) (left, right, product *array.Array, err error) {
	if out.NDim() == 2 {
		return x, y, out, nil
	}
	// Views give vectors another dimension, so that one kernel does all four combinations. It writes to the
	// product by a view, too.
	left, right, product = x, y, ws.View(2)
	rows, cols := 0, out.NDim()-1 // the dimensions of out
	if x.NDim() == 1 {
		left, rows = ws.View(0), array.NewAxis
		err = x.TransposeTo(left, array.NewAxis, 0)
	}
	if y.NDim() == 1 && err == nil {
		right, cols = ws.View(1), array.NewAxis
		err = y.TransposeTo(right, 0, array.NewAxis)
	}
	if err == nil {
		err = out.TransposeTo(product, rows, cols)
	}
	return left, right, product, err
}

func (op dotOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
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

func (op dotOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
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

// Tensordot returns the sum of the products of x and y over dimensions that go together: over each
// dimension of x in axesX and the one of y in axesY. The other dimensions of x come first, then those of y.
// Negative dimensions count from the end.
func Tensordot(x, y *fgraph.Variable, axesX, axesY []int) *fgraph.Variable {
	if len(axesX) != len(axesY) {
		fail("tensordot", "%d dimensions for %d others", len(axesX), len(axesY))
	}
	order := func(v *fgraph.Variable, axes []int) (summed, free []int) {
		summed = NormalAxes("tensordot", v, axes)
		for d := range TypeOf(v).NDim() {
			if !slices.Contains(summed, d) {
				free = append(free, d)
			}
		}
		if len(summed)+len(free) != TypeOf(v).NDim() {
			fail("tensordot", "a dimension is named twice")
		}
		return summed, free
	}
	summedX, freeX := order(x, axesX)
	summedY, freeY := order(y, axesY)
	for i, d := range summedX {
		if n, m := TypeOf(x).Dim(d), TypeOf(y).Dim(summedY[i]); n != m && n != Unknown && m != Unknown {
			fail("tensordot", "sizes %d and %d of dimensions %d and %d do not fit", n, m, d, summedY[i])
		}
	}
	x, y = DimShuffle(x, slices.Concat(freeX, summedX)...), DimShuffle(y, slices.Concat(summedY, freeY)...)
	return contract(x, y, 0, len(summedX))
}

// contract multiplies x, whose dimensions are batch, free and summed ones, by y, whose dimensions
// are batch, summed and free ones. The result has the batch ones, and the free ones of x and of y.
func contract(x, y *fgraph.Variable, batch, summed int) *fgraph.Variable {
	freeX, freeY := TypeOf(x).NDim()-batch-summed, TypeOf(y).NDim()-batch-summed
	if summed == 0 {
		return outerProduct(x, y, batch)
	}
	if batch > 0 && freeX == 0 && freeY == 0 {
		// Nothing is left of either factor. As matrices these would be rows and columns, one pair for each
		// item.
		return Sum(Mul(x, y), upTo(batch + summed)[batch:]...)
	}
	sizes := slices.Concat(dimSizes(x)[:batch+freeX], dimSizes(y)[batch+summed:])
	// From behind, so that what is merged first does not move what is merged next.
	x = mergeDims(mergeDims(x, batch+freeX, summed), batch, freeX)
	y = mergeDims(mergeDims(y, batch+summed, freeY), batch, summed)
	var z *fgraph.Variable
	if batch == 0 {
		z = Dot(x, y)
	} else {
		if freeX == 0 {
			// Matmul wants two dimensions behind the batch, so what has only summed ones becomes a row, or a
			// column below.
			x = DimShuffle(x, slices.Insert(upTo(batch+1), batch, array.NewAxis)...)
		}
		if freeY == 0 {
			y = DimShuffle(y, append(upTo(batch+1), array.NewAxis)...)
		}
		z = Matmul(x, y)
		if freeX == 0 {
			z = dropDim(z, batch)
		}
		if freeY == 0 {
			z = dropDim(z, TypeOf(z).NDim()-1)
		}
	}
	if freeX <= 1 && freeY <= 1 {
		return z
	}
	return Reshape(z, sizes...)
}

// outerProduct is contract over nothing.
func outerProduct(x, y *fgraph.Variable, batch int) *fgraph.Variable {
	freeX, freeY := TypeOf(x).NDim()-batch, TypeOf(y).NDim()-batch
	order := upTo(batch + freeX)
	for range freeY {
		order = append(order, array.NewAxis)
	}
	x = DimShuffle(x, order...)
	order = upTo(batch)
	for range freeX {
		order = append(order, array.NewAxis)
	}
	for d := range freeY {
		order = append(order, batch+d)
	}
	return Mul(x, DimShuffle(y, order...))
}

// dimSizes returns the sizes of all dimensions of x. Those that its type knows are no constants, which rules would see
// in one graph and not in another one for all sizes.
func dimSizes(x *fgraph.Variable) []*fgraph.Variable {
	dims := make([]*fgraph.Variable, TypeOf(x).NDim())
	for d := range dims {
		if dims[d] = Int(1); TypeOf(x).Dim(d) != 1 {
			dims[d] = ShapeI(x, d)
		}
	}
	return dims
}

// mergeDims merges n dimensions of x from first on into one. It merges nothing if n is 0.
func mergeDims(x *fgraph.Variable, first, n int) *fgraph.Variable {
	if n <= 1 {
		return x
	}
	dims := dimSizes(x)
	merged := dims[first]
	for _, d := range dims[first+1 : first+n] {
		merged = intMap(array.Mul, merged, d)
	}
	return Reshape(x, slices.Replace(dims, first, first+n, merged)...)
}

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
