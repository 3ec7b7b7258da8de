package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// The ops of diagonals. Diagonal k of a matrix begins at row 0 and column k, or at row -k and column 0
// if k is negative.
type (
	// EyeOp makes a matrix with ones on a diagonal and zeros elsewhere: inputs rows, columns,
	// diagonal. Its field DType is the element type.
	EyeOp = eyeOp
	// AllocDiagOp makes a square matrix of zeros with its input, a vector, on the diagonal that its
	// field Offset names.
	AllocDiagOp = allocDiagOp
	// ExtractDiagOp selects a diagonal in two dimensions of its input, without copying. The diagonal
	// becomes the last dimension.
	ExtractDiagOp = extractDiagOp
)

type (
	eyeOp struct {
		noGradient
		DType array.DType
	}
	allocDiagOp   struct{ Offset int }
	extractDiagOp struct {
		viewsFirst
		Offset     int
		Dim1, Dim2 int8
	}
)

// maxOffset bounds the numbers of diagonals, so that sums of them and sizes don't overflow.
const maxOffset = 1<<31 - 1

func checkOffset(op string, offset int) {
	if offset < -maxOffset || offset > maxOffset {
		fail(op, "diagonal %d", offset)
	}
}

// Eye returns a matrix with ones on diagonal k and zeros elsewhere. Rows, columns and k are integer
// scalars.
func Eye(dtype array.DType, rows, columns, k *fgraph.Variable) *fgraph.Variable {
	return MustApply(EyeOp{DType: dtype}, AsSize("eye", rows), AsSize("eye", columns), AsSize("eye", k))
}

// Diag returns a square matrix with the vector x on diagonal k, or diagonal k of the matrix x.
func Diag(x *fgraph.Variable, k int) *fgraph.Variable {
	switch TypeOf(x).NDim() {
	case 1:
		checkOffset("diag", k)
		return MustApply(AllocDiagOp{Offset: k}, x)
	case 2:
		return Diagonal(x, k, 0, 1)
	}
	fail("diag", "a %v is neither vector nor matrix", x.Type())
	return nil
}

// Diagonal returns diagonal k of the matrices that two dimensions of x make up, as the last
// dimension. Negative dimensions count from the end.
func Diagonal(x *fgraph.Variable, k, dim1, dim2 int) *fgraph.Variable {
	checkOffset("diagonal", k)
	dims := NormalAxes("diagonal", x, []int{dim1, dim2})
	return MustApply(ExtractDiagOp{Offset: k, Dim1: int8(dims[0]), Dim2: int8(dims[1])}, x)
}

// Trace returns the sum of a diagonal; see Diagonal.
func Trace(x *fgraph.Variable, k, dim1, dim2 int) *fgraph.Variable {
	return Sum(Diagonal(x, k, dim1, dim2), -1)
}

// FillDiagonal returns the matrix x with value, a scalar or a vector, on its diagonal.
func FillDiagonal(x, value *fgraph.Variable) *fgraph.Variable {
	const name = "fill_diagonal"
	if TypeOf(x).NDim() != 2 {
		fail(name, "a %v is no matrix", x.Type())
	}
	i := ByTensor(positions(intMap(array.Minimum, sizeOf(x, 0), sizeOf(x, 1)), 0))
	return NewPart(name, x, i, i).Set(value)
}

func (op eyeOp) String() string       { return "Eye{" + op.DType.String() + "}" }
func (op allocDiagOp) String() string { return fmt.Sprintf("AllocDiag{%d}", op.Offset) }
func (op extractDiagOp) String() string {
	return fmt.Sprintf("ExtractDiag{%d,%d,%d}", op.Offset, op.Dim1, op.Dim2)
}

func (op eyeOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 3 {
		return nil, wrongCount(op, in, 3)
	}
	if !isSize(in[2]) {
		return nil, argError(op, 2, "is a %v, not an integer", in[2].Type())
	}
	s, err := sizesOf(op, 0, in[:2])
	if err != nil {
		return nil, err
	}
	s.dtype = op.DType
	return one(s.intern()), nil
}

func (op allocDiagOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 {
		return nil, wrongCount(op, in, 1)
	}
	t := TypeOf(in[0])
	if t.NDim() != 1 {
		return nil, argError(op, 0, "is a %v, not a vector", t)
	}
	n := t.Dim(0)
	if n != Unknown {
		n += max(op.Offset, -op.Offset)
	}
	return one(NewType(t.DType(), n, n)), nil
}

func (op extractDiagOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 {
		return nil, wrongCount(op, in, 1)
	}
	t := TypeOf(in[0]).h.Value()
	if n := int8(t.ndim); op.Dim1 == op.Dim2 || op.Dim1 >= n || op.Dim2 >= n || t.csr {
		return nil, argError(op, 0, "is a %v, which has no diagonal in dimensions %d and %d", in[0].Type(), op.Dim1, op.Dim2)
	}
	s := spec{dtype: t.dtype}
	for d, n := range t.shape[:t.ndim] {
		if d != int(op.Dim1) && d != int(op.Dim2) {
			s.shape[s.ndim] = n
			s.ndim++
		}
	}
	rows, columns := int(t.shape[op.Dim1]), int(t.shape[op.Dim2])
	s.shape[s.ndim] = Unknown
	if rows != Unknown && columns != Unknown {
		s.shape[s.ndim] = int32(array.DiagonalLen(rows, columns, op.Offset))
	}
	s.ndim++
	return one(s.intern()), nil
}

func (op eyeOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		shape, err := readSizes(op, &buf, in[:2])
		if err != nil {
			return err
		}
		k := min(max(in[2].Int(0), -maxOffset), maxOffset)
		return newDiagonal(ws, out[0], op.DType, shape[0], shape[1], int(k), array.Full(op.DType, 1))
	}, nil
}

func (op allocDiagOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		n := in[0].Len() + max(op.Offset, -op.Offset)
		return newDiagonal(ws, out[0], in[0].DType(), n, n, op.Offset, in[0])
	}, nil
}

// newDiagonal makes out a matrix of zeros with x, which is broadcast, on a diagonal.
func newDiagonal(ws *array.Workspace, out *array.Array, dtype array.DType, rows, columns, k int, x *array.Array) error {
	if err := ws.New(out, dtype, rows, columns); err != nil {
		return err
	}
	ws.Copy(out, array.Full(dtype, 0))
	var diagonal array.Array
	out.DiagonalTo(&diagonal, k, 0, 1)
	array.CopyTo(&diagonal, x)
	return nil
}

func (op extractDiagOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(_ *array.Workspace, in, out []*array.Array) error {
		in[0].DiagonalTo(out[0], op.Offset, int(op.Dim1), int(op.Dim2))
		return nil
	}, nil
}

func (op eyeOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{a.Inputs()[:2]}
}

func (op allocDiagOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	n := intMap(array.Add, s.Dim(a.Inputs()[0], 0), s.size(max(op.Offset, -op.Offset)))
	return [][]*fgraph.Variable{{n, n}}
}

func (op extractDiagOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x, dims := a.Inputs()[0], []*fgraph.Variable{}
	for d := range TypeOf(x).NDim() {
		if d != int(op.Dim1) && d != int(op.Dim2) {
			dims = append(dims, s.Dim(x, d))
		}
	}
	rows := intMap(array.Sub, s.Dim(x, int(op.Dim1)), s.size(max(-op.Offset, 0)))
	columns := intMap(array.Sub, s.Dim(x, int(op.Dim2)), s.size(max(op.Offset, 0)))
	n := intMap(array.Minimum, rows, columns)
	// A diagonal beyond the corner has no elements. The main one can't be there.
	if op.Offset != 0 {
		n = intMap(array.Maximum, n, s.size(0))
	}
	return [][]*fgraph.Variable{append(dims, n)}
}

func (op allocDiagOp) Grad(_ *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	return []*fgraph.Variable{Diagonal(out[0], op.Offset, 0, 1)}
}

// Grad adds the gradient to the diagonal of a tensor of zeros.
func (op extractDiagOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x, g := a.Inputs()[0], out[0]
	t := TypeOf(x)
	// The gradient of a diagonal of a square matrix is a matrix with that diagonal, about which rules know more
	// than about sums into zeros.
	if n := t.Dim(int(op.Dim1)); t.NDim() == 2 && n != Unknown && n == t.Dim(int(op.Dim2)) && op.Offset > -n && op.Offset < n {
		k := op.Offset
		// Exchanged dimensions have the diagonal on the other side.
		if op.Dim1 > op.Dim2 {
			k = -k
		}
		return []*fgraph.Variable{Diag(g, k)}
	}
	last := t.NDim() - 2
	length := ShapeI(g, last)
	rows, columns := positions(length, max(-op.Offset, 0)), positions(length, max(op.Offset, 0))
	from := []int{int(op.Dim1), int(op.Dim2)}
	zeros := MoveAxes(ZerosLike(x), from, []int{0, 1})
	return []*fgraph.Variable{MoveAxes(IncTake(zeros, MoveAxes(g, []int{last}, []int{0}), rows, columns), []int{0, 1}, from)}
}

// positions returns the vector of n integers from start on.
func positions(n *fgraph.Variable, start int) *fgraph.Variable {
	return ARange(Int(start), intMap(array.Add, n, Int(start)), Int(1))
}

// Fold reports whether the matrix is small: rules know more about an Eye than about a constant.
func (op eyeOp) Fold(a *fgraph.Apply) bool { return AllocOp{}.Fold(a) }
