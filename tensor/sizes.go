package tensor

import (
	"slices"
	"strconv"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// Arithmetic on sizes, which are int64 scalars. It computes constants instead of applying ops.

// intMap applies an element-wise operation to int64 scalars.
func intMap(op array.Opcode, a, b *fgraph.Variable) *fgraph.Variable {
	x, xok := constantInt(a)
	y, yok := constantInt(b)
	switch {
	case xok && yok:
		if v, ok := intConstant(op, x, y); ok {
			return Int(v)
		}
	case xok && (op == array.Add && x == 0 || op == array.Mul && x == 1):
		return b
	case yok && (op == array.Add && y == 0 || op == array.Sub && y == 0 || op == array.Mul && y == 1 || op == array.IntDiv && y == 1):
		return a
	case a == b && (op == array.Maximum || op == array.Minimum):
		return a
	case a == b && op == array.Sub:
		return Int(0)
	}
	return MustApply(OpFor(op), a, b)
}

// intConstant computes an operation on integers. It reports false if sizes do not need the
// operation, or if it may overflow.
func intConstant(op array.Opcode, x, y int) (int, bool) {
	// The product of two numbers within the bound fits into an int.
	const large = 1 << 31
	if x > large || x < -large || y > large || y < -large {
		return 0, false
	}
	switch op {
	case array.Add:
		x += y
	case array.Sub:
		x -= y
	case array.Mul:
		x *= y
	case array.Maximum:
		x = max(x, y)
	case array.Minimum:
		x = min(x, y)
	case array.IntDiv:
		if y <= 0 {
			return 0, false
		}
		// Rounded down, as IntDiv does for numbers below 0, too.
		x = (x - ((x%y)+y)%y) / y
	default:
		return 0, false
	}
	return x, true
}

// knownSize returns the value of an int64 scalar that is a constant, a size that a type tells, or computed of such. It
// knows no 1 that is computed: a tensor of this size would broadcast, and one of sizes that are not known does not.
func knownSize(v *fgraph.Variable) (int, bool) {
	n, ok := sizeValue(v, 0)
	_, computed := OpOf(v).(Elemwise)
	return n, ok && !(computed && n == 1)
}

func sizeValue(v *fgraph.Variable, depth int) (int, bool) {
	a := v.Owner()
	if a == nil || depth > maxSizeDepth {
		return constantInt(v)
	}
	switch op := a.Op().(type) {
	case ShapeIOp:
		n := TypeOf(a.Inputs()[0]).Dim(int(op.D))
		return n, n != Unknown
	case Elemwise:
		if len(a.Inputs()) != 2 {
			return 0, false
		}
		x, ok := sizeValue(a.Inputs()[0], depth+1)
		y, ok2 := sizeValue(a.Inputs()[1], depth+1)
		if ok && ok2 {
			return intConstant(op.Op, x, y)
		}
	}
	return 0, false
}

// MapSizes applies an element-wise operation to two sizes, which are int64 scalars. Of constants it is computed.
func MapSizes(op array.Opcode, a, b *fgraph.Variable) *fgraph.Variable { return intMap(op, a, b) }

// SizeVector returns the vector of sizes, which is a constant if all of them are.
func SizeVector(dims ...*fgraph.Variable) *fgraph.Variable { return sizeVector(dims) }

// product returns the product of sizes.
func product(s *Shapes, dims []*fgraph.Variable) *fgraph.Variable {
	p := s.size(1)
	for _, d := range dims {
		p = intMap(array.Mul, p, d)
	}
	return p
}

// isSize reports whether a variable is an int64 scalar.
func isSize(v *fgraph.Variable) bool {
	t, ok := v.Type().(Type)
	return ok && t.NDim() == 0 && t.DType() == array.Int64
}

// AsSize returns v, an integer or a bool of one element, as an int64 scalar that is a size or an
// index. It panics with an *Error in the name of op if v is anything else.
func AsSize(op string, v *fgraph.Variable) *fgraph.Variable {
	t := TypeOf(v)
	if t.DType().IsFloat() || !t.AllOnes() {
		fail(op, "a size is a %v, not an integer", t)
	}
	if c, ok := constantInt(v); ok {
		return Int(c)
	}
	return Cast(DimShuffle(v), array.Int64)
}

func isOne(v *fgraph.Variable) bool {
	n, ok := constantInt(v)
	return ok && n == 1
}

// positive reports whether an int64 scalar is known not to be negative: also the number of elements of a slice, which is
// the larger one of 0 and a difference, and what is computed of such.
func positive(v *fgraph.Variable) bool { return isPositive(v, 0) }

func isPositive(v *fgraph.Variable, depth int) bool {
	if n, ok := constantInt(v); ok {
		return n >= 0
	}
	if _, ok := LeastSize(v); ok || Nonnegative(v) {
		return true
	}
	if v = unfused(v); depth > maxSizeDepth || !isSize(v) {
		return false
	}
	each := func(x *fgraph.Variable) bool { return isPositive(x, depth+1) }
	switch OpOf(v) {
	case OpFor(array.Add), OpFor(array.Mul), OpFor(array.Minimum):
		return !slices.ContainsFunc(v.Owner().Inputs(), func(x *fgraph.Variable) bool { return !each(x) })
	case OpFor(array.Maximum):
		return slices.ContainsFunc(v.Owner().Inputs(), each)
	}
	return false
}

// ShapeIOp computes the size of the dimension that its field D names.
type ShapeIOp = shapeIOp

// ShapeOp computes the whole shape, as a vector of integers.
type ShapeOp = shapeOp

type (
	shapeIOp struct {
		noGradient
		D int8
	}
	shapeOp struct{ noGradient }
)

// ShapeI returns the size of a dimension of x, as an integer scalar.
func ShapeI(x *fgraph.Variable, d int) *fgraph.Variable {
	if d < 0 || d >= TypeOf(x).NDim() {
		fail("Shape_i", "dimension %d of a %v", d, x.Type())
	}
	return MustApply(ShapeIOp{D: int8(d)}, x)
}

func (op shapeIOp) String() string { return "Shape_i{" + strconv.Itoa(int(op.D)) + "}" }

func (op shapeIOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 || int(op.D) >= TypeOf(in[0]).NDim() {
		return nil, &Error{op.String(), 0, "has no such dimension"}
	}
	return one(ScalarType(array.Int64)), nil
}

func (op shapeIOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		return intScalar(ws, out[0], in[0].Dim(int(op.D)))
	}, nil
}

func intScalar(ws *array.Workspace, out *array.Array, v int) error {
	if err := ws.New(out, array.Int64); err != nil {
		return err
	}
	array.Slice[int64](out)[0] = int64(v)
	return nil
}

// Shape returns the shape of x.
func Shape(x *fgraph.Variable) *fgraph.Variable { return MustApply(ShapeOp{}, x) }

func (shapeOp) String() string { return "Shape" }

func (op shapeOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 {
		return nil, wrongCount(op, in, 1)
	}
	return []fgraph.Type{NewType(array.Int64, TypeOf(in[0]).NDim())}, nil
}

func (shapeOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := ws.New(out[0], array.Int64, in[0].NDim()); err != nil {
			return err
		}
		for i, n := range in[0].Shape() {
			array.Slice[int64](out[0])[i] = int64(n)
		}
		return nil
	}, nil
}
