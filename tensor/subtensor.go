package tensor

import (
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
