package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// IncSubtensorOp adds its second input to the part of the first one that the indexes select, or puts it there.
type IncSubtensorOp struct {
	indexing
	Set, Inplace bool
}

// NewIncSubtensor returns the op that adds to the part that indexes select, or sets it. Variables among the bounds of indexes are inputs of
// the op.
func NewIncSubtensor(set bool, indexes ...Index) *IncSubtensorOp {
	ix, _ := newIndexing("IncSubtensor", indexes)
	return &IncSubtensorOp{indexing: ix, Set: set}
}

// IncSubtensor returns x with y, which is broadcast, added to the part that the indexes select.
func IncSubtensor(x, y *fgraph.Variable, indexes ...Index) *fgraph.Variable {
	return changeSubtensor("IncSubtensor", false, x, y, indexes)
}

// SetSubtensor returns x with y, which is broadcast, in the place of the part that the indexes select.
func SetSubtensor(x, y *fgraph.Variable, indexes ...Index) *fgraph.Variable {
	return changeSubtensor("SetSubtensor", true, x, y, indexes)
}

func changeSubtensor(name string, set bool, x, y *fgraph.Variable, indexes []Index) *fgraph.Variable {
	ix, in := newIndexing(name, indexes)
	if t := TypeOf(y); t.DType() != TypeOf(x).DType() {
		if array.Upcast(t.DType(), TypeOf(x).DType()) != TypeOf(x).DType() {
			fail(name, "a %v into a %v", t, x.Type())
		}
		y = castConstant(y, TypeOf(x).DType())
	}
	y = PadLeft(y, TypeOf(x).NDim()-ix.dropped())
	return Apply(&IncSubtensorOp{indexing: ix, Set: set}, append([]*fgraph.Variable{x, y}, in...)...)
}

// WithInplace returns the op in the form that does or does not take the memory of its first input.
func (op *IncSubtensorOp) WithInplace(inplace bool) *IncSubtensorOp {
	return &IncSubtensorOp{op.indexing, op.Set, inplace}
}

// Indexes returns the indexes of an apply of the op.
func (op *IncSubtensorOp) Indexes(a *fgraph.Apply) []Index { return op.indexes(a.Inputs()[2:]) }

// String returns for example IncSubtensor{1:3}.
func (op *IncSubtensorOp) String() string {
	return inplaceName(changeName(op.Set)+"Subtensor{"+op.text()+"}", op.Inplace)
}

func changeName(set bool) string {
	if set {
		return "Set"
	}
	return "Inc"
}

// EqualOp compares the indexes and what is done.
func (op *IncSubtensorOp) EqualOp(o fgraph.Op) bool {
	p, ok := o.(*IncSubtensorOp)
	return ok && op.equal(p.indexing) && op.Set == p.Set && op.Inplace == p.Inplace
}

// HashOp agrees with EqualOp.
func (op *IncSubtensorOp) HashOp() uint64 {
	seed := uint64(2)
	if op.Set {
		seed += 2
	}
	if op.Inplace {
		seed++
	}
	return op.hash(seed)
}

// DestroyMap tells whether the result takes the place of the first input.
func (op *IncSubtensorOp) DestroyMap() []fgraph.Alias { return firstDestroyed(op.Inplace) }

// Infer checks that the second input broadcasts to what is selected.
func (op *IncSubtensorOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) < 2 {
		return nil, &Error{op.String(), -1, "needs two tensors"}
	}
	s, err := op.infer(op, in[:1], in[2:])
	if err != nil {
		return nil, err
	}
	y := TypeOf(in[1]).h.Value()
	if y.dtype != s.dtype || y.ndim != s.ndim || y.csr {
		return nil, argError(op, 1, "is a %v, not a %v", in[1].Type(), s.intern())
	}
	for d, n := range y.shape[:y.ndim] {
		if m := s.shape[d]; n != 1 && n != m && n != Unknown && m != Unknown {
			return nil, argError(op, 1, "is a %v, which does not broadcast to a %v", in[1].Type(), s.intern())
		}
	}
	return []fgraph.Type{in[0].Type()}, nil
}

// Compile returns the change.
func (op *IncSubtensorOp) Compile(a *fgraph.Apply) (Kernel, error) {
	y := TypeOf(a.Inputs()[1]).h.Value()
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := target(ws, op.Inplace, out[0], in[0], 1); err != nil {
			return err
		}
		var part array.Array
		if err := op.view(op, &part, out[0], in[2:]); err != nil {
			return err
		}
		for d, n := range in[1].Shape() {
			if y.shape[d] != 1 && n != part.Dim(d) {
				return fmt.Errorf("%w: %v: a value of shape %v does not broadcast to %v", ErrShape, op, in[1].Shape(), part.Shape())
			}
		}
		if op.Set {
			array.CopyTo(&part, in[1])
		} else {
			ws.Add(&part, in[1])
		}
		return nil
	}, nil
}

// InferShape is that of the first input.
func (op *IncSubtensorOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return sameShapeAs(a.Inputs()[0], s)
}

// Grad passes the gradient on; what was overwritten has none.
func (op *IncSubtensorOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	grads := make([]*fgraph.Variable, len(a.Inputs()))
	indexes := op.Indexes(a)
	grads[0] = out[0]
	if op.Set {
		zero := PadLeft(Number(0, ScalarLike(out[0])), TypeOf(a.Inputs()[1]).NDim())
		grads[0] = SetSubtensor(out[0], zero, indexes...)
	}
	grads[1] = Unbroadcast(Subtensor(out[0], indexes...), a.Inputs()[1])
	return grads
}
