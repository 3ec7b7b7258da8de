package tensor

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// JoinOp joins its inputs, which have the same number of dimensions, along one dimension: its field
// Axis.
type JoinOp = joinOp

type joinOp struct{ Axis int8 }

// Join joins tensors along a dimension; a negative one counts from the end. They are upcast to one
// element type.
func Join(axis int, xs ...*fgraph.Variable) *fgraph.Variable {
	if len(xs) == 0 {
		fail("join", "no tensors")
	}
	axis = NormalAxes("join", xs[0], []int{axis})[0]
	types := dtypesOf(xs)
	in := make([]*fgraph.Variable, len(xs))
	dtype := array.Upcast(types[0], types[1:]...) // once: there may be 100,000
	for i, x := range xs {
		in[i] = Cast(x, dtype)
	}
	return MustApply(JoinOp{Axis: int8(axis)}, in...)
}

// Stack joins tensors along a new dimension of the result; a negative one counts from the end.
func Stack(axis int, xs ...*fgraph.Variable) *fgraph.Variable {
	if len(xs) == 0 {
		fail("stack", "no tensors")
	}
	n := TypeOf(xs[0]).NDim()
	at := axis
	if at < 0 {
		at += n + 1
	}
	if at < 0 || at > n {
		fail("stack", "axis %d of a tensor of %d dimensions", axis, n+1)
	}
	if n == 0 {
		return MakeVector(xs...)
	}
	order := make([]int, n)
	for d := range order {
		order[d] = d
	}
	order = slices.Insert(order, at, array.NewAxis)
	in := make([]*fgraph.Variable, len(xs))
	for i, x := range xs {
		if TypeOf(x).NDim() != n {
			fail("stack", "a %v and a %v", xs[0].Type(), x.Type())
		}
		in[i] = DimShuffle(x, order...)
	}
	return Join(at, in...)
}

func (op joinOp) String() string { return fmt.Sprintf("Join{%d}", op.Axis) }

func (op joinOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) == 0 {
		return nil, opError(op, "needs tensors")
	}
	s := TypeOf(in[0]).h.Value()
	if int(op.Axis) >= int(s.ndim) || s.csr {
		return nil, argError(op, 0, "is a %v", in[0].Type())
	}
	total := s.shape[op.Axis]
	for i, v := range in[1:] {
		t := TypeOf(v).h.Value()
		if t.ndim != s.ndim || t.dtype != s.dtype || t.csr {
			return nil, argError(op, i+1, "is a %v, the first one is a %v", v.Type(), in[0].Type())
		}
		for d, n := range t.shape[:t.ndim] {
			if d == int(op.Axis) {
				if total == Unknown || n == Unknown {
					total = Unknown
				} else {
					total = staticSize(int(total) + int(n))
				}
				continue
			}
			m, err := agree(op, i+1, int(s.shape[d]), int(n))
			if err != nil {
				return nil, err
			}
			s.shape[d] = m
		}
	}
	s.shape[op.Axis] = total
	return one(s.intern()), nil
}

func (op joinOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		shape := buf[:copy(buf[:], in[0].Shape())]
		for _, x := range in[1:] {
			for d, n := range x.Shape() {
				if d == int(op.Axis) {
					shape[d] += n
				} else if n != shape[d] {
					return fmt.Errorf("%w: %v of shapes %v and %v", ErrShape, op, in[0].Shape(), x.Shape())
				}
			}
		}
		if err := ws.New(out[0], in[0].DType(), shape...); err != nil {
			return err
		}
		var ranges [array.MaxDims]array.Range
		for d, n := range shape {
			ranges[d] = array.Range{Step: 1, Count: n}
		}
		place := ws.View(0)
		r := &ranges[op.Axis]
		for _, x := range in {
			r.Count = x.Dim(int(op.Axis))
			out[0].RangeTo(place, ranges[:len(shape)]...)
			if !x.Begins(out[0]) || r.Start > 0 { // what is there already has memory to grow, see exec.Runner.LendRoom
				ws.Copy(place, x)
			}
			r.Start += r.Count
		}
		return nil
	}, nil
}

func (op joinOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	dims := append([]*fgraph.Variable{}, s.Shape(a.Inputs()[0])...)
	for _, x := range a.Inputs()[1:] {
		dims[op.Axis] = intMap(array.Add, dims[op.Axis], s.Dim(x, int(op.Axis)))
	}
	return [][]*fgraph.Variable{dims}
}

func (op joinOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	grads := make([]*fgraph.Variable, len(a.Inputs()))
	start := Int(0)
	for i, x := range a.Inputs() {
		stop := intMap(array.Add, start, sizeOf(x, int(op.Axis)))
		grads[i] = Subtensor(out[0], along(int(op.Axis), SliceOf(start, stop, 1))...)
		start = stop
	}
	return grads
}
