package tensor

import (
	"fmt"
	"math"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// SpecifyShapeOp returns its first input, whose type then has known sizes. It fails if the input has
// others. The other inputs are sizes that only a run knows.
type SpecifyShapeOp = specifyShapeOp

type specifyShapeOp struct {
	viewsFirst
	passesGradient
	t     Type       // only the shape matters
	given array.Axes // the dimensions whose sizes are inputs, in order; their size in t is Unknown
}

// NewSpecifyShape returns the op that promises the given sizes, each of which may be Unknown, and for
// the dimensions in the set those of its inputs.
func NewSpecifyShape(given array.Axes, shape ...int) SpecifyShapeOp {
	return SpecifyShapeOp{t: NewType(0, shape...), given: given}
}

// SpecifyShape returns x with the given sizes in its type, each of which may be Unknown.
// Running it fails if x has other sizes.
func SpecifyShape(x *fgraph.Variable, shape ...int) *fgraph.Variable {
	sizes := make([]*fgraph.Variable, len(shape))
	for d, n := range shape {
		if n < Unknown || n > math.MaxInt32 {
			fail("SpecifyShape", "size %d for dimension %d", n, d)
		}
		if n != Unknown {
			sizes[d] = Int(n)
		}
	}
	return SpecifySizes(x, sizes...)
}

// SpecifySizes is SpecifyShape for sizes that are integer scalars, or nil if they are not known.
// Those that are constants are in the type of the result.
func SpecifySizes(x *fgraph.Variable, sizes ...*fgraph.Variable) *fgraph.Variable {
	const name = "SpecifyShape"
	t := TypeOf(x)
	if t.NDim() != len(sizes) {
		fail(name, "%d sizes for a %v", len(sizes), t)
	}
	s, in, given := t.h.Value(), []*fgraph.Variable{x}, array.Axes(0)
	for d, v := range sizes {
		if v == nil {
			continue
		}
		v = AsSize(name, v)
		n, ok := constantInt(v)
		if !ok {
			in, given = append(in, v), given|1<<d
			continue
		}
		if m := s.shape[d]; m == Unknown && n >= 0 && n <= math.MaxInt32 {
			s.shape[d] = staticSize(n)
		} else if n != int(m) {
			fail(name, "size %d for dimension %d of a %v", n, d, t)
		}
	}
	if given == 0 && s.intern() == t {
		return x
	}
	s.dtype = 0 // does not matter
	for d := range sizes {
		if given.Has(d) {
			s.shape[d] = Unknown
		}
	}
	return MustApply(SpecifyShapeOp{t: s.intern(), given: given}, in...)
}

// Sizes returns the sizes that an apply of the op promises, nil for those that it says nothing of.
func (op specifyShapeOp) Sizes(a *fgraph.Apply) []*fgraph.Variable {
	sizes, rest := make([]*fgraph.Variable, op.t.NDim()), a.Inputs()[1:]
	for d := range sizes {
		if op.given.Has(d) {
			sizes[d], rest = rest[0], rest[1:]
		} else if n := op.t.Dim(d); n != Unknown {
			sizes[d] = Int(n)
		}
	}
	return sizes
}

// String returns for example SpecifyShape{[2, ?, _]}, where an underscore is an input.
func (op specifyShapeOp) String() string {
	text := strings.Split(op.t.shapeText(), ", ")
	for d := range text {
		if op.given.Has(d) {
			text[d] = strings.Replace(text[d], "?", "_", 1)
		}
	}
	return "SpecifyShape{" + strings.Join(text, ", ") + "}"
}

func (op specifyShapeOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) == 0 {
		return nil, wrongCount(op, in, 1)
	}
	t, u := TypeOf(in[0]).h.Value(), op.t.h.Value()
	if t.ndim != u.ndim || t.csr || op.given>>t.ndim != 0 {
		return nil, argError(op, 0, "is a %v", in[0].Type())
	}
	sizes := in[1:]
	for d, n := range u.shape[:u.ndim] {
		if op.given.Has(d) {
			if len(sizes) == 0 || n != Unknown {
				return nil, opError(op, "a size is missing")
			} else if !isSize(sizes[0]) {
				return nil, argError(op, len(in)-len(sizes), "is a %v, not an integer", sizes[0].Type())
			}
			sizes = sizes[1:]
		}
		if m := t.shape[d]; m != Unknown && n != Unknown && n != m {
			return nil, argError(op, 0, "is a %v", in[0].Type())
		} else if n != Unknown {
			t.shape[d] = n
		}
	}
	if len(sizes) > 0 {
		return nil, opError(op, "%d sizes too many", len(sizes))
	}
	return one(t.intern()), nil
}

func (op specifyShapeOp) Compile(a *fgraph.Apply) (Kernel, error) {
	t := TypeOf(a.Out())
	return func(_ *array.Workspace, in, out []*array.Array) error {
		if err := t.Holds(in[0]); err != nil {
			return fmt.Errorf("%w: %w", ErrShape, err)
		}
		sizes := in[1:]
		for d := range in[0].NDim() {
			if !op.given.Has(d) {
				continue
			}
			if n := sizes[0].Int(0); n != int64(in[0].Dim(d)) {
				return fmt.Errorf("%w: %v: size %d for dimension %d of a tensor of shape %v", ErrShape, op, n, d, in[0].Shape())
			}
			sizes = sizes[1:]
		}
		*out[0] = *in[0]
		return nil
	}, nil
}

func (op specifyShapeOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	rest := a.Inputs()[1:]
	dims := make([]*fgraph.Variable, TypeOf(a.Out()).NDim())
	for d := range dims {
		if op.given.Has(d) {
			dims[d], rest = rest[0], rest[1:]
		}
		if n, ok := s.number(a.Out(), d); ok {
			dims[d] = s.size(n)
		} else if dims[d] == nil {
			dims[d] = s.Dim(a.Inputs()[0], d)
		}
	}
	return [][]*fgraph.Variable{dims}
}

// AssertOp returns its first input if all others, which are bools without dimensions, are true.
// Otherwise it fails with the message in its field Message.
type AssertOp = assertOp

type assertOp struct {
	likeFirst
	viewsFirst
	passesGradient
	Message string
}

// Assert returns x, provided that the conditions hold when the function runs.
func Assert(x *fgraph.Variable, message string, conditions ...*fgraph.Variable) *fgraph.Variable {
	in := []*fgraph.Variable{x}
	for _, c := range conditions {
		in = append(in, truth(c))
	}
	return MustApply(AssertOp{Message: message}, in...)
}

// truth returns whether the only element of v is not zero, as a bool without dimensions.
func truth(v *fgraph.Variable) *fgraph.Variable {
	v = DimShuffle(v)
	if a := ConstantOf(v); a != nil {
		return castConstant(v, array.Bool)
	} else if TypeOf(v).DType() != array.Bool {
		return Map(array.Neq, v, Number(0, v))
	}
	return v
}

func (op assertOp) String() string { return "Assert{" + op.Message + "}" }

func (op assertOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) == 0 {
		return nil, opError(op, "needs a value")
	}
	for i, v := range in[1:] {
		if TypeOf(v) != ScalarType(array.Bool) {
			return nil, argError(op, i+1, "is a %v, not a bool", v.Type())
		}
	}
	return []fgraph.Type{in[0].Type()}, nil
}

func (op assertOp) Compile(*fgraph.Apply) (Kernel, error) {
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
