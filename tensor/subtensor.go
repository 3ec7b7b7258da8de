package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// SubtensorOp selects a part of its first input. Its other inputs are those bounds of its
// indexes that are not constants.
type SubtensorOp struct{ subtensorOp }

type subtensorOp struct {
	viewsFirst
	indexing
}

// NewSubtensor returns the op with the given indexes. Bounds that are not constants become inputs
// of the op.
func NewSubtensor(indexes ...Index) *SubtensorOp {
	ix, _ := newIndexing("Subtensor", indexes)
	return &SubtensorOp{subtensorOp{indexing: ix}}
}

// Subtensor returns the part of x that the indexes select in its first dimensions, or x itself if
// that is all of it.
func Subtensor(x *fgraph.Variable, indexes ...Index) *fgraph.Variable {
	for len(indexes) > 0 && indexes[len(indexes)-1].IsEverything() {
		indexes = indexes[:len(indexes)-1]
	}
	if len(indexes) == 0 {
		return x
	}
	return RawSubtensor(x, indexes...)
}

// RawSubtensor is Subtensor that keeps indexes that select everything.
func RawSubtensor(x *fgraph.Variable, indexes ...Index) *fgraph.Variable {
	ix, in := newIndexing("Subtensor", indexes)
	return MustApply(&SubtensorOp{subtensorOp{indexing: ix}}, append([]*fgraph.Variable{x}, in...)...)
}

// Indexes returns the indexes of an apply of the op.
func (op *SubtensorOp) Indexes(a *fgraph.Apply) []Index { return op.indexes(a.Inputs()[1:]) }

// String returns for example Subtensor{1:3,_}, where an underscore is an input.
func (op *subtensorOp) String() string { return "Subtensor{" + op.text() + "}" }

// EqualOp reports whether two ops are the same op.
func (op *subtensorOp) EqualOp(o fgraph.Op) bool {
	p, ok := o.(*SubtensorOp)
	return ok && op.equal(p.indexing)
}

// HashOp returns a hash that agrees with EqualOp.
func (op *subtensorOp) HashOp() uint64 { return op.hash(1) }

// Infer implements Op.
func (op *subtensorOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) == 0 {
		return nil, opError(op, "needs a tensor")
	}
	return inferred(op.infer(op, in, 1))
}

// Compile implements Op.
func (op *subtensorOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(_ *array.Workspace, in, out []*array.Array) error { return op.view(op, out[0], in[0], in[1:]) }, nil
}

// LayOut implements Viewing.
func (op *subtensorOp) LayOut(a *fgraph.Apply, x, v *array.Array) bool {
	return len(a.Inputs()) == 1 && op.view(op, v, x, nil) == nil
}

// InferShape implements ShapeInferer.
func (op *subtensorOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x := a.Inputs()[0]
	indexes := op.indexes(a.Inputs()[1:])
	dims := []*fgraph.Variable{}
	for d := range TypeOf(x).NDim() {
		switch {
		case d >= len(indexes):
			dims = append(dims, s.Dim(x, d))
		case indexes[d].Slice:
			dims = append(dims, indexes[d].length(s.Dim(x, d)))
		}
	}
	return [][]*fgraph.Variable{dims}
}

// Grad implements Differentiable.
func (op *subtensorOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	return gradients(a, IncSubtensor(ZerosLike(a.Inputs()[0]), out[0], op.indexes(a.Inputs()[1:])...))
}

// IncSubtensorOp adds its second input, which is broadcast, to the part of the first one that its
// indexes select, or replaces the part. Its other inputs are those bounds of the indexes that are
// not constants.
type IncSubtensorOp struct{ incSubtensorOp }

type incSubtensorOp struct {
	likeFirst
	indexing
	Set, Inplace bool
}

// NewIncSubtensor returns the op with the given indexes. Bounds that are not constants become
// inputs of the op.
func NewIncSubtensor(set bool, indexes ...Index) *IncSubtensorOp {
	ix, _ := newIndexing("IncSubtensor", indexes)
	return &IncSubtensorOp{incSubtensorOp{indexing: ix, Set: set}}
}

// IncSubtensor returns x with y, which is broadcast, added to the part that the indexes select.
func IncSubtensor(x, y *fgraph.Variable, indexes ...Index) *fgraph.Variable {
	return changeSubtensor("IncSubtensor", false, x, y, indexes)
}

// SetSubtensor returns x with the part that the indexes select replaced by y, which is broadcast.
func SetSubtensor(x, y *fgraph.Variable, indexes ...Index) *fgraph.Variable {
	return changeSubtensor("SetSubtensor", true, x, y, indexes)
}

func changeSubtensor(name string, set bool, x, y *fgraph.Variable, indexes []Index) *fgraph.Variable {
	ix, in := newIndexing(name, indexes)
	y = PadLeft(fitting(name, y, x), TypeOf(x).NDim()-ix.dropped())
	return MustApply(&IncSubtensorOp{incSubtensorOp{indexing: ix, Set: set}}, append([]*fgraph.Variable{x, y}, in...)...)
}

// fitting returns y with the element type of x. It fails if that does not hold all values of y.
func fitting(op string, y, x *fgraph.Variable) *fgraph.Variable {
	t := TypeOf(x)
	if array.Upcast(TypeOf(y).DType(), t.DType()) != t.DType() {
		fail(op, "a %v does not fit into a %v without a cast to %v", y.Type(), t, t.DType())
	}
	return castConstant(y, t.DType())
}

// Selection returns the op that selects the part which the op changes.
func (op *IncSubtensorOp) Selection() *SubtensorOp {
	return &SubtensorOp{subtensorOp{indexing: op.indexing}}
}

// Change returns the op that sets the part which the op selects, or adds to it.
func (op *SubtensorOp) Change(set bool) *IncSubtensorOp {
	return &IncSubtensorOp{incSubtensorOp{indexing: op.indexing, Set: set}}
}

// WithInplace returns the op that does or does not overwrite its first input.
func (op *IncSubtensorOp) WithInplace(inplace bool) *IncSubtensorOp {
	return &IncSubtensorOp{incSubtensorOp{indexing: op.indexing, Set: op.Set, Inplace: inplace}}
}

// With applies an op that writes to other indexes, in the same way.
func (op *IncSubtensorOp) With(x, y *fgraph.Variable, indexes ...Index) *fgraph.Variable {
	if op.Set {
		return SetSubtensor(x, y, indexes...)
	}
	return IncSubtensor(x, y, indexes...)
}

// Overwriting returns the op that overwrites its first input.
func (op *IncSubtensorOp) Overwriting() Op { return op.WithInplace(true) }

// Indexes returns the indexes of an apply of the op.
func (op *IncSubtensorOp) Indexes(a *fgraph.Apply) []Index { return op.indexes(a.Inputs()[2:]) }

// String returns for example IncSubtensor{1:3}.
func (op *incSubtensorOp) String() string {
	return inplaceName(changeName(op.Set)+"Subtensor{"+op.text()+"}", op.Inplace)
}

func changeName(set bool) string {
	if set {
		return "Set"
	}
	return "Inc"
}

// EqualOp reports whether two ops are the same op.
func (op *incSubtensorOp) EqualOp(o fgraph.Op) bool {
	p, ok := o.(*IncSubtensorOp)
	return ok && op.equal(p.indexing) && op.Set == p.Set && op.Inplace == p.Inplace
}

// HashOp returns a hash that agrees with EqualOp.
func (op *incSubtensorOp) HashOp() uint64 {
	seed := uint64(2)
	if op.Set {
		seed += 2
	}
	if op.Inplace {
		seed++
	}
	return op.hash(seed)
}

// DestroyMap says which inputs the op overwrites.
func (op *incSubtensorOp) DestroyMap() []fgraph.Alias { return destroys(op.Inplace, 0) }

// Infer implements Op.
func (op *incSubtensorOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) < 2 {
		return nil, opError(op, "needs %d arguments, not %d", 2, len(in))
	}
	s, err := op.infer(op, in, 2)
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

// Compile implements Op.
func (op *incSubtensorOp) Compile(a *fgraph.Apply) (Kernel, error) {
	y := TypeOf(a.Inputs()[1]).h.Value()
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := target(ws, op.Inplace, out[0], in[0], 1); err != nil {
			return err
		}
		part := ws.View(0)
		if err := op.view(op, part, out[0], in[2:]); err != nil {
			return err
		}
		for d, n := range in[1].Shape() {
			if y.shape[d] != 1 && n != part.Dim(d) {
				return fmt.Errorf("%w: %v: a value of shape %v does not broadcast to %v", ErrShape, op, in[1].Shape(), part.Shape())
			}
		}
		if op.Set {
			ws.Copy(part, in[1])
		} else {
			ws.Add(part, in[1])
		}
		return nil
	}, nil
}

// Grad implements Differentiable.
func (op *incSubtensorOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x, indexes := out[0], op.indexes(a.Inputs()[2:])
	if op.Set {
		// What was replaced has no influence on the result.
		x = SetSubtensor(x, constantOnes(array.Full(TypeOf(x).DType(), 0), TypeOf(a.Inputs()[1]).NDim()), indexes...)
	}
	return gradients(a, x, unbroadcast(Subtensor(out[0], indexes...), a.Inputs()[1]))
}
