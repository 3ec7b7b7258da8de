package tensor

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tensor/array"
)

// AllocOp fills a new tensor with its first input, broadcast to the sizes that are its other
// inputs.
type AllocOp = allocOp

type allocOp struct{}

// Alloc returns a tensor of the given sizes, integer scalars, filled with value.
func Alloc(value *fgraph.Variable, dims ...*fgraph.Variable) *fgraph.Variable {
	in := []*fgraph.Variable{value}
	for _, d := range dims {
		in = append(in, AsSize("Alloc", d))
	}
	return MustApply(AllocOp{}, in...)
}

// Zeros returns a tensor of zeros of the given sizes.
func Zeros(dtype array.DType, dims ...*fgraph.Variable) *fgraph.Variable {
	return Alloc(Constant(array.New(dtype)), dims...)
}

func (allocOp) String() string { return "Alloc" }

// sizesOf returns a type whose sizes are the inputs from first on, as far as these are known.
func sizesOf(op fgraph.Op, first int, in []*fgraph.Variable) (s spec, err error) {
	if len(in)-first > array.MaxDims {
		return s, opError(op, "%d dimensions, there can be %d", len(in)-first, array.MaxDims)
	}
	s.ndim = uint8(len(in) - first)
	for i, v := range in[first:] {
		if !isSize(v) {
			return s, argError(op, first+i, "is a %v, not a size", v.Type())
		}
		s.shape[i] = Unknown
		if n, ok := knownSize(v); ok {
			if n < 0 {
				return s, argError(op, first+i, "is the negative size %d", n)
			}
			s.shape[i] = staticSize(n)
		}
	}
	return s, nil
}

func (op allocOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) == 0 {
		return nil, opError(op, "needs a value")
	}
	s, err := sizesOf(op, 1, in)
	if err != nil {
		return nil, err
	}
	v := TypeOf(in[0]).h.Value()
	s.dtype = v.dtype
	pad := int(s.ndim) - int(v.ndim)
	if pad < 0 || v.csr {
		return nil, argError(op, 0, "is a %v, which does not broadcast to %d dimensions", in[0].Type(), s.ndim)
	}
	for d, n := range v.shape[:v.ndim] {
		switch m := &s.shape[pad+d]; {
		case n == 1 || n == *m || n == Unknown:
		// A value of more than one element does not stretch, so the size is known by it.
		case *m == Unknown:
			*m = n
		default:
			return nil, argError(op, 0, "is a %v, which does not broadcast to size %d in dimension %d", in[0].Type(), *m, pad+d)
		}
	}
	return one(s.intern()), nil
}

// readSizes returns the values of integer scalars.
func readSizes(op fgraph.Op, buf *[array.MaxDims]int, in []*array.Array) ([]int, error) {
	shape := buf[:len(in)]
	for i, a := range in {
		n := a.Int(0)
		if n < 0 || n > 1<<40 {
			return nil, fmt.Errorf("%w: %v: size %d of dimension %d", ErrShape, op, n, i)
		}
		shape[i] = int(n)
	}
	return shape, nil
}

func (op allocOp) Compile(a *fgraph.Apply) (Kernel, error) {
	value := TypeOf(a.Inputs()[0]).h.Value()
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		shape, err := readSizes(op, &buf, in[1:])
		if err != nil {
			return err
		}
		pad := len(shape) - int(value.ndim)
		for d, n := range in[0].Shape() {
			if value.shape[d] != 1 && n != shape[pad+d] {
				return fmt.Errorf("%w: %v: a value of shape %v does not broadcast to %v", ErrShape, op, in[0].Shape(), slices.Clone(shape))
			}
		}
		if err := ws.New(out[0], value.dtype, shape...); err != nil {
			return err
		}
		ws.Copy(out[0], in[0])
		return nil
	}, nil
}

func (op allocOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{a.Inputs()[1:]}
}

func (op allocOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	return gradients(a, unbroadcast(out[0], a.Inputs()[0]))
}

// Fold reports whether the result is small and no op reads it: rules know more about an Alloc than
// about a constant.
func (op allocOp) Fold(a *fgraph.Apply) bool {
	n := 1
	for _, d := range TypeOf(a.Out()).Shape() {
		n *= d
		if d == Unknown || n > 64 {
			return false
		}
	}
	return slices.ContainsFunc(a.Out().Clients(), func(c fgraph.Client) bool { return c.Apply == nil })
}

// AllocEmptyOp makes a tensor with undefined elements, of the sizes that are its inputs. Ops that
// work in place write to it. Its field DType is the element type.
type AllocEmptyOp = allocEmptyOp

type allocEmptyOp struct{ DType array.DType }

// AllocEmpty returns a tensor of the given sizes with undefined elements.
func AllocEmpty(dtype array.DType, dims ...*fgraph.Variable) *fgraph.Variable {
	in := lists.Map(dims, func(d *fgraph.Variable) *fgraph.Variable { return AsSize("AllocEmpty", d) })
	return MustApply(AllocEmptyOp{DType: dtype}, in...)
}

func (op allocEmptyOp) String() string { return "AllocEmpty{" + op.DType.String() + "}" }

// Unmergeable tells that two of these are different memory.
func (op allocEmptyOp) Unmergeable() bool { return true }

func (op allocEmptyOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	s, err := sizesOf(op, 0, in)
	if err != nil {
		return nil, err
	}
	s.dtype = op.DType
	return one(s.intern()), nil
}

// Compile returns a kernel that writes zeros, so that a result that wrongly depends on them is the
// same in every run.
func (op allocEmptyOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		shape, err := readSizes(op, &buf, in)
		if err != nil {
			return err
		}
		if err := ws.New(out[0], op.DType, shape...); err != nil {
			return err
		}
		ws.Copy(out[0], array.Full(op.DType, 0))
		return nil
	}, nil
}

func (op allocEmptyOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{a.Inputs()}
}

// Fold keeps constant folding from making one memory of several.
func (op allocEmptyOp) Fold(*fgraph.Apply) bool { return false }
