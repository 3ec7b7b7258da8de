package tensor

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// SpecifyShapeOp returns its input, whose type then has known sizes. It fails if the input has
// others.
type SpecifyShapeOp = specifyShapeOp

type specifyShapeOp struct {
	viewsFirst
	passesGradient
	t Type // only the shape matters
}

// NewSpecifyShape returns the op that promises the given sizes, each of which may be Unknown.
func NewSpecifyShape(shape ...int) SpecifyShapeOp { return SpecifyShapeOp{t: NewType(0, shape...)} }

// SpecifyShape returns x with the given sizes in its type, each of which may be Unknown.
// Running it fails if x has other sizes.
func SpecifyShape(x *fgraph.Variable, shape ...int) *fgraph.Variable {
	t := TypeOf(x)
	if t.NDim() != len(shape) {
		fail("SpecifyShape", "%d sizes for a %v", len(shape), t)
	}
	s := t.h.Value()
	for d, n := range shape {
		if n < Unknown || n > math.MaxInt32 {
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
	s.dtype = 0 // does not matter
	return MustApply(SpecifyShapeOp{t: s.intern()}, x)
}

func (op specifyShapeOp) String() string { return "SpecifyShape{" + op.t.shapeText() + "}" }

func (op specifyShapeOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 {
		return nil, wrongCount(op, in, 1)
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
	return one(t.intern()), nil
}

func (op specifyShapeOp) Compile(a *fgraph.Apply) (Kernel, error) {
	t := TypeOf(a.Out())
	return func(_ *array.Workspace, in, out []*array.Array) error {
		if err := t.Holds(in[0]); err != nil {
			return fmt.Errorf("%w: %w", ErrShape, err)
		}
		*out[0] = *in[0]
		return nil
	}, nil
}

func (op specifyShapeOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
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
