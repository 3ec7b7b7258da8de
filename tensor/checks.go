package tensor

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// AssertOp passes its first input on if all others, bools without dimensions, are true, and else fails with a message.
type AssertOp struct{ Message string }

// Assert returns x, provided that the conditions hold when the function runs.
func Assert(x *fgraph.Variable, message string, conditions ...*fgraph.Variable) *fgraph.Variable {
	in := []*fgraph.Variable{x}
	for _, c := range conditions {
		in = append(in, castConstant(DimShuffle(c), Bool))
	}
	return Apply(AssertOp{message}, in...)
}

// String returns for example Assert{sizes differ}.
func (op AssertOp) String() string { return "Assert{" + op.Message + "}" }

// ViewMap tells that the output is the first input.
func (op AssertOp) ViewMap() []fgraph.Alias { return []fgraph.Alias{{Output: 0, Input: 0}} }

// Infer wants bools.
func (op AssertOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) == 0 {
		return nil, &Error{op.String(), -1, "needs a value"}
	}
	for i, v := range in[1:] {
		if TypeOf(v) != ScalarType(Bool) {
			return nil, argError(op, i+1, "is a %v, not a bool", v.Type())
		}
	}
	return []fgraph.Type{in[0].Type()}, nil
}

// Compile returns the check.
func (op AssertOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(_ *array.Workspace, in, out []*array.Array) error {
		for _, c := range in[1:] {
			if c.Float(0) == 0 {
				return fmt.Errorf("%w: %s", ErrAssert, op.Message)
			}
		}
		*out[0] = *in[0]
		return nil
	}, nil
}

// InferShape is that of the value.
func (op AssertOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return sameShapeAs(a.Inputs()[0], s)
}

// Grad passes the gradient on.
func (op AssertOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	grads := make([]*fgraph.Variable, len(a.Inputs()))
	grads[0] = out[0]
	return grads
}

// SpecifyShapeOp passes its input on if it has the sizes that its type promises.
type SpecifyShapeOp struct{ t Type } // of which the shape counts

// NewSpecifyShape returns the op that promises the given sizes, each of which may be Unknown.
func NewSpecifyShape(shape ...int) SpecifyShapeOp { return SpecifyShapeOp{NewType(0, shape...)} }

// SpecifyShape returns x with a type that knows sizes, one a dimension, or Unknown. The function fails where they are not so.
func SpecifyShape(x *fgraph.Variable, shape ...int) *fgraph.Variable {
	t := TypeOf(x)
	if t.NDim() != len(shape) {
		fail("SpecifyShape", "%d sizes for a %v", len(shape), t)
	}
	s := t.h.Value()
	for d, n := range shape {
		if n < Unknown || n > mostSize {
			fail("SpecifyShape", "size %d for dimension %d", n, d)
		}
		if m := s.shape[d]; n != Unknown && m == Unknown {
			s.shape[d] = staticSize(n)
		} else if n != Unknown && n != int(m) {
			fail("SpecifyShape", "size %d for dimension %d of a %v", n, d, t)
		}
	}
	if s.intern() == t {
		return x
	}
	s.dtype = 0 // of no meaning to the op
	return Apply(SpecifyShapeOp{s.intern()}, x)
}

// String returns for example SpecifyShape{[?, 3]}.
func (op SpecifyShapeOp) String() string { return "SpecifyShape{" + op.t.shapeText() + "}" }

// ViewMap tells that the output is the input.
func (op SpecifyShapeOp) ViewMap() []fgraph.Alias { return []fgraph.Alias{{Output: 0, Input: 0}} }

// Infer returns the type that knows the sizes.
func (op SpecifyShapeOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 {
		return nil, &Error{op.String(), -1, "takes one argument"}
	}
	t, u := TypeOf(in[0]).h.Value(), op.t.h.Value()
	if t.ndim != u.ndim || t.csr {
		return nil, argError(op, 0, "is a %v", in[0].Type())
	}
	for d, n := range u.shape[:u.ndim] {
		if m := t.shape[d]; m != Unknown && n != Unknown && n != m {
			return nil, argError(op, 0, "is a %v", in[0].Type())
		} else if n != Unknown {
			t.shape[d] = n
		}
	}
	return []fgraph.Type{t.intern()}, nil
}

// Compile returns the check.
func (op SpecifyShapeOp) Compile(a *fgraph.Apply) (Kernel, error) {
	t := TypeOf(a.Out())
	return func(_ *array.Workspace, in, out []*array.Array) error {
		if err := t.Holds(in[0]); err != nil {
			return fmt.Errorf("%w: %w", ErrShape, err)
		}
		*out[0] = *in[0]
		return nil
	}, nil
}

// InferShape is that of the input; what the type knows is taken from there.
func (op SpecifyShapeOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	t := TypeOf(a.Out())
	dims := make([]*fgraph.Variable, t.NDim())
	for d := range dims {
		if n := t.Dim(d); n != Unknown {
			dims[d] = s.Size(n)
		} else {
			dims[d] = s.Dim(a.Inputs()[0], d)
		}
	}
	return [][]*fgraph.Variable{dims}
}

// Grad passes the gradient on.
func (op SpecifyShapeOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	return []*fgraph.Variable{out[0]}
}

// ARangeOp makes the vector start, start+step, … up to but without stop, of integers.
type ARangeOp struct{}

// ARange returns the integers from start up to but without stop, step apart.
func ARange(start, stop, step *fgraph.Variable) *fgraph.Variable {
	return Apply(ARangeOp{}, AsSize("arange", start), AsSize("arange", stop), AsSize("arange", step))
}

// String returns ARange.
func (ARangeOp) String() string { return "ARange" }

// Infer knows the length if all inputs are constants.
func (op ARangeOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 3 {
		return nil, &Error{op.String(), -1, "takes three arguments"}
	}
	var n [3]int
	constant := true
	for i, v := range in {
		if !isSize(v) {
			return nil, argError(op, i, "is a %v, not an integer", v.Type())
		}
		k, ok := constantInt(v)
		n[i] = k
		constant = constant && ok
	}
	if !constant {
		return []fgraph.Type{VectorType(Int64)}, nil
	}
	length, err := rangeLength(n[0], n[1], n[2])
	if err != nil {
		return nil, argError(op, 2, "is 0")
	}
	return []fgraph.Type{NewType(Int64, length)}, nil
}

// rangeLength returns the number of elements, which may be more than any array has. Distances may be more than any int.
func rangeLength(start, stop, step int) (int, error) {
	span, stride := uint64(stop)-uint64(start), uint64(step)
	if step < 0 {
		start, stop, span, stride = stop, start, -span, -stride
	}
	switch {
	case step == 0:
		return 0, fmt.Errorf("%w: arange with step 0", ErrShape)
	case stop <= start:
		return 0, nil
	}
	return int(min((span-1)/stride+1, math.MaxInt)), nil
}

// Compile returns the counting.
func (op ARangeOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		start, stop, step := in[0].Int(0), in[1].Int(0), in[2].Int(0)
		n, err := rangeLength(int(start), int(stop), int(step))
		if err != nil {
			return err
		}
		if err := ws.New(out[0], Int64, n); err != nil {
			return err
		}
		for i := range array.Slice[int64](out[0]) {
			array.Slice[int64](out[0])[i] = start + int64(i)*step
		}
		return nil
	}, nil
}

// mostStep bounds the steps with which a distance that is no int has more elements than fit into memory.
const mostStep = 1 << 20

// InferShape computes the length.
func (op ARangeOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	start, stop, step := a.Inputs()[0], a.Inputs()[1], a.Inputs()[2]
	n, ok := constantInt(step)
	if !ok || n == 0 || n > mostStep || n < -mostStep {
		return nil
	}
	if n < 0 {
		start, stop, n = stop, start, -n
	}
	span := intMap(array.Sub, stop, start)
	if n > 1 {
		span = intMap(array.IntDiv, intMap(array.Add, span, Int(n-1)), Int(n))
	}
	if first, ok := constantInt(start); !ok || first != 0 || !positive(span) {
		span = intMap(array.Maximum, span, Int(0))
	}
	return [][]*fgraph.Variable{{span}}
}

// Grad is zero.
func (op ARangeOp) Grad(*fgraph.Apply, []*fgraph.Variable) []*fgraph.Variable {
	return make([]*fgraph.Variable, 3)
}
