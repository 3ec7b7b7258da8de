package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// AdvancedSubtensorOp selects elements, or rows, by integer tensors: inputs x, i0, i1, …, one for each of the first K dimensions.
type AdvancedSubtensorOp struct{ K int8 }

// AdvancedIncSubtensorOp adds to the elements that indexes select, or sets them: inputs x, y, i0, i1, …. Where an index is repeated
// all values are added, and the last one is set.
type AdvancedIncSubtensorOp struct {
	K            int8
	Set, Inplace bool
}

// Take returns x[i0, i1, …], where the indexes are integer tensors of one shape.
func Take(x *fgraph.Variable, indexes ...*fgraph.Variable) *fgraph.Variable {
	return Apply(AdvancedSubtensorOp{int8(len(indexes))}, append([]*fgraph.Variable{x}, indexes...)...)
}

// IncTake returns x with y, which has the shape of Take(x, indexes...), added where the indexes say.
func IncTake(x, y *fgraph.Variable, indexes ...*fgraph.Variable) *fgraph.Variable {
	return Apply(AdvancedIncSubtensorOp{K: int8(len(indexes))}, append([]*fgraph.Variable{x, y}, indexes...)...)
}

// SetTake returns x with y where the indexes say.
func SetTake(x, y *fgraph.Variable, indexes ...*fgraph.Variable) *fgraph.Variable {
	return Apply(AdvancedIncSubtensorOp{K: int8(len(indexes)), Set: true}, append([]*fgraph.Variable{x, y}, indexes...)...)
}

// String returns AdvancedSubtensor1 for one index, as Theano does.
func (op AdvancedSubtensorOp) String() string {
	if op.K == 1 {
		return "AdvancedSubtensor1"
	}
	return fmt.Sprintf("AdvancedSubtensor{%d}", op.K)
}

// String returns for example AdvancedIncSubtensor1.
func (op AdvancedIncSubtensorOp) String() string {
	name := "Advanced" + changeName(op.Set) + "Subtensor"
	if op.K == 1 {
		return inplaceName(name+"1", op.Inplace)
	}
	return inplaceName(fmt.Sprintf("%s{%d}", name, op.K), op.Inplace)
}

// DestroyMap tells whether the result takes the place of x.
func (op AdvancedIncSubtensorOp) DestroyMap() []fgraph.Alias { return firstDestroyed(op.Inplace) }

// taken returns the sizes of what indexes select of x.
func taken(op fgraph.Op, x *fgraph.Variable, first int, indexes []*fgraph.Variable, k int) (spec, error) {
	t := TypeOf(x).h.Value()
	if len(indexes) != k || k == 0 || k > int(t.ndim) || t.csr {
		return t, &Error{op.String(), -1, fmt.Sprintf("%d indexes for a %v", len(indexes), x.Type())}
	}
	s := TypeOf(indexes[0]).h.Value()
	for i, v := range indexes {
		u := TypeOf(v)
		if u.DType() != Int64 || u.NDim() != int(s.ndim) || u.NDim() == 0 {
			return t, argError(op, first+i, "is a %v, not an integer tensor like the other indexes", u)
		}
		for d := range u.NDim() {
			n, err := agree(op, first+i, int(s.shape[d]), u.Dim(d))
			if err != nil {
				return t, err
			}
			s.shape[d] = n
		}
	}
	if int(s.ndim)+int(t.ndim)-k > MaxDims {
		return t, &Error{op.String(), -1, "too many dimensions"}
	}
	s.dtype = t.dtype
	for _, n := range t.shape[k:t.ndim] {
		s.shape[s.ndim] = n
		s.ndim++
	}
	return s, nil
}

// Infer checks the indexes.
func (op AdvancedSubtensorOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) < 2 {
		return nil, &Error{op.String(), -1, "needs a tensor and indexes"}
	}
	s, err := taken(op, in[0], 1, in[1:], int(op.K))
	if err != nil {
		return nil, err
	}
	return []fgraph.Type{s.intern()}, nil
}

// Infer checks the indexes and y.
func (op AdvancedIncSubtensorOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) < 3 {
		return nil, &Error{op.String(), -1, "needs two tensors and indexes"}
	}
	s, err := taken(op, in[0], 2, in[2:], int(op.K))
	if err != nil {
		return nil, err
	}
	y := TypeOf(in[1])
	if y.DType() != s.dtype || y.NDim() != int(s.ndim) {
		return nil, argError(op, 1, "is a %v, not a %v", y, s.intern())
	}
	for d := range y.NDim() {
		if _, err := agree(op, 1, int(s.shape[d]), y.Dim(d)); err != nil {
			return nil, err
		}
	}
	return []fgraph.Type{in[0].Type()}, nil
}

func sameIndexShapes(op fgraph.Op, indexes []*array.Array) error {
	for _, i := range indexes[1:] {
		if !array.SameShape(i, indexes[0]) {
			return fmt.Errorf("%w: %v: indexes of shapes %v and %v", ErrShape, op, indexes[0].Shape(), i.Shape())
		}
	}
	return nil
}

// Compile returns the selection.
func (op AdvancedSubtensorOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := sameIndexShapes(op, in[1:]); err != nil {
			return err
		}
		shape := append(append([]int{}, in[1].Shape()...), in[0].Shape()[op.K:]...)
		if err := ws.New(out[0], in[0].DType(), shape...); err != nil {
			return err
		}
		return shapeFault(array.Take(out[0], in[0], in[1:]...))
	}, nil
}

// Compile returns the change.
func (op AdvancedIncSubtensorOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := sameIndexShapes(op, in[2:]); err != nil {
			return err
		}
		shape := append(append([]int{}, in[2].Shape()...), in[0].Shape()[op.K:]...)
		if fmt.Sprint(shape) != fmt.Sprint(in[1].Shape()) {
			return fmt.Errorf("%w: %v: a value of shape %v for %v", ErrShape, op, in[1].Shape(), shape)
		}
		if err := target(ws, op.Inplace, out[0], in[0], 1); err != nil {
			return err
		}
		return shapeFault(ws.Put(out[0], in[1], !op.Set, in[2:]...))
	}, nil
}

// InferShape joins the shape of the indexes and the remaining one of x.
func (op AdvancedSubtensorOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x, i := a.Inputs()[0], a.Inputs()[1]
	dims := []*fgraph.Variable{}
	for d := range TypeOf(i).NDim() {
		dims = append(dims, s.Dim(i, d))
	}
	for d := int(op.K); d < TypeOf(x).NDim(); d++ {
		dims = append(dims, s.Dim(x, d))
	}
	return [][]*fgraph.Variable{dims}
}

// InferShape is that of x.
func (op AdvancedIncSubtensorOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return sameShapeAs(a.Inputs()[0], s)
}

// Grad adds the gradient up where the elements were taken from.
func (op AdvancedSubtensorOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	grads := make([]*fgraph.Variable, len(a.Inputs()))
	grads[0] = IncTake(ZerosLike(a.Inputs()[0]), out[0], a.Inputs()[1:]...)
	return grads
}

// Grad passes the gradient on. Where the same element is set twice the gradient of y is that of the last value, which is not known;
// it is refused.
func (op AdvancedIncSubtensorOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	grads := make([]*fgraph.Variable, len(a.Inputs()))
	indexes := a.Inputs()[2:]
	grads[0] = out[0]
	if op.Set {
		grads[0] = SetTake(out[0], ZerosLike(a.Inputs()[1]), indexes...)
	}
	grads[1] = Take(out[0], indexes...)
	return grads
}
