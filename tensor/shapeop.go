package tensor

import (
	"strconv"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

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
