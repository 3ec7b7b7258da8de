package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// AllocOp fills a new tensor with its first input, broadcast to the sizes that are its other inputs.
type AllocOp struct{}

// Alloc returns a tensor of the given sizes, integer scalars, filled with value.
func Alloc(value *fgraph.Variable, dims ...*fgraph.Variable) *fgraph.Variable {
	in := []*fgraph.Variable{value}
	for _, d := range dims {
		in = append(in, AsSize("Alloc", d))
	}
	return Apply(AllocOp{}, in...)
}

// String returns Alloc.
func (AllocOp) String() string { return "Alloc" }

// sizesOf returns the static sizes that integer scalars stand for.
func sizesOf(op fgraph.Op, first int, in []*fgraph.Variable) (s spec, err error) {
	if len(in)-first > MaxDims {
		return s, &Error{op.String(), -1, fmt.Sprintf("%d dimensions, there can be %d", len(in)-first, MaxDims)}
	}
	s.ndim = uint8(len(in) - first)
	for i, v := range in[first:] {
		if !isSize(v) {
			return s, argError(op, first+i, "is a %v, not a size", v.Type())
		}
		s.shape[i] = Unknown
		if n, ok := constantInt(v); ok {
			if n < 0 {
				return s, argError(op, first+i, "is the negative size %d", n)
			}
			s.shape[i] = staticSize(n)
		}
	}
	return s, nil
}

// Infer takes sizes from constants.
func (op AllocOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) == 0 {
		return nil, &Error{op.String(), -1, "needs a value"}
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
		case *m == Unknown:
			*m = n
		default:
			return nil, argError(op, 0, "is a %v, which does not broadcast to size %d in dimension %d", in[0].Type(), *m, pad+d)
		}
	}
	return []fgraph.Type{s.intern()}, nil
}

// readSizes returns the values of integer scalars.
func readSizes(op fgraph.Op, buf *[MaxDims]int, in []*array.Array) ([]int, error) {
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

// Compile returns the filling.
func (op AllocOp) Compile(a *fgraph.Apply) (Kernel, error) {
	value := TypeOf(a.Inputs()[0]).h.Value()
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [MaxDims]int
		shape, err := readSizes(op, &buf, in[1:])
		if err != nil {
			return err
		}
		pad := len(shape) - int(value.ndim)
		for d, n := range in[0].Shape() {
			if value.shape[d] != 1 && n != shape[pad+d] {
				return fmt.Errorf("%w: %v: a value of shape %v does not broadcast to %v", ErrShape, op, in[0].Shape(), shape)
			}
		}
		if err := ws.New(out[0], value.dtype, shape...); err != nil {
			return err
		}
		array.CopyTo(out[0], in[0])
		return nil
	}, nil
}

// InferShape returns the sizes, which are inputs.
func (op AllocOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{a.Inputs()[1:]}
}

// Grad sums over what was repeated.
func (op AllocOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	grads := make([]*fgraph.Variable, len(a.Inputs()))
	grads[0] = Unbroadcast(out[0], a.Inputs()[0])
	return grads
}

// Fold reports that only small results are worth keeping.
func (op AllocOp) Fold(a *fgraph.Apply) bool {
	n := 1
	for _, d := range TypeOf(a.Out()).Shape() {
		n *= d
		if d == Unknown || n > 64 {
			return false
		}
	}
	// An Alloc says more than its elements as long as a rule can make use of it.
	for _, c := range a.Out().Clients() {
		if c.Apply == nil {
			return true
		}
	}
	return false
}

// Unbroadcast sums g over the dimensions in which x, which has fewer dimensions or some of size 1, was repeated to the shape of g.
func Unbroadcast(g, x *fgraph.Variable) *fgraph.Variable {
	gt, xt := TypeOf(g), TypeOf(x)
	pad := gt.NDim() - xt.NDim()
	var sum []int
	order := make([]int, xt.NDim())
	next := 0
	for d := range gt.NDim() {
		switch {
		case d < pad:
			if gt.Dim(d) == 1 && pad == 0 {
				next++
				continue
			}
			sum = append(sum, d)
		case xt.Dim(d-pad) == 1 && gt.Dim(d) != 1:
			sum = append(sum, d)
			order[d-pad] = NewAxis
		default:
			order[d-pad] = next
			next++
		}
	}
	if len(sum) > 0 {
		g = Sum(g, sum...)
	}
	return DimShuffle(g, order...)
}

// AllocEmptyOp makes a tensor with undefined elements, of the sizes that are its inputs. It serves ops that take memory to write to.
type AllocEmptyOp struct{ DType DType }

// AllocEmpty returns a tensor of the given sizes with undefined elements.
func AllocEmpty(dtype DType, dims ...*fgraph.Variable) *fgraph.Variable {
	in := make([]*fgraph.Variable, len(dims))
	for i, d := range dims {
		in[i] = AsSize("AllocEmpty", d)
	}
	return Apply(AllocEmptyOp{dtype}, in...)
}

// String returns for example AllocEmpty{float64}.
func (op AllocEmptyOp) String() string { return "AllocEmpty{" + op.DType.String() + "}" }

// Unmergeable tells that two of these are not the same memory.
func (op AllocEmptyOp) Unmergeable() bool { return true }

// Infer takes sizes from constants.
func (op AllocEmptyOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	s, err := sizesOf(op, 0, in)
	if err != nil {
		return nil, err
	}
	s.dtype = op.DType
	return []fgraph.Type{s.intern()}, nil
}

// Compile returns the allocation. The elements are zeros, so that what must not depend on them can't change from run to run.
func (op AllocEmptyOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [MaxDims]int
		shape, err := readSizes(op, &buf, in)
		if err != nil {
			return err
		}
		if err := ws.New(out[0], op.DType, shape...); err != nil {
			return err
		}
		array.CopyTo(out[0], array.Full(op.DType, 0))
		return nil
	}, nil
}

// InferShape returns the sizes, which are inputs.
func (op AllocEmptyOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{a.Inputs()}
}

// Fold reports that it must not be computed once and for all.
func (op AllocEmptyOp) Fold(*fgraph.Apply) bool { return false }

// Zeros returns a tensor of zeros of the given sizes.
func Zeros(dtype DType, dims ...*fgraph.Variable) *fgraph.Variable {
	return Alloc(Constant(array.New(dtype)), dims...)
}

// Ones returns a tensor of ones of the given sizes.
func Ones(dtype DType, dims ...*fgraph.Variable) *fgraph.Variable {
	return Alloc(Constant(array.Full(dtype, 1)), dims...)
}
