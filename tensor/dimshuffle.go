package tensor

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// DimShuffleOp permutes, drops and adds dimensions without copying. Only dimensions whose type says
// size 1 can be dropped. Its methods NewOrder, IsIdentity, PadsLeft and Compose examine and combine
// orders. The field Inplace has no effect, as the output always is a view; Theano has a form of that
// name.
type DimShuffleOp = dimShuffleOp

type dimShuffleOp struct {
	order   [array.MaxDims]int8
	n       int8
	Inplace bool
}

// NewDimShuffle returns the op whose output has dimension order[i] of the input as dimension i, or
// a new one of size 1 if that is NewAxis.
func NewDimShuffle(order ...int) DimShuffleOp {
	if len(order) > array.MaxDims {
		fail("DimShuffle", "%d dimensions, there can be %d", len(order), array.MaxDims)
	}
	op := DimShuffleOp{n: int8(len(order))}
	for i, d := range order {
		op.order[i] = int8(max(d, array.NewAxis))
	}
	return op
}

// DimShuffle applies NewDimShuffle(order...) to x. It returns x itself if nothing changes.
func DimShuffle(x *fgraph.Variable, order ...int) *fgraph.Variable {
	op := NewDimShuffle(order...)
	if op.IsIdentity(TypeOf(x).NDim()) {
		return x
	}
	return MustApply(op, x)
}

// Transpose reverses the order of the dimensions of x.
func Transpose(x *fgraph.Variable) *fgraph.Variable {
	order := make([]int, TypeOf(x).NDim())
	for i := range order {
		order[i] = len(order) - 1 - i
	}
	return DimShuffle(x, order...)
}

// NewOrder returns for each dimension of the output that of the input, or NewAxis.
func (op dimShuffleOp) NewOrder() []int {
	order := make([]int, op.n)
	for i := range order {
		order[i] = int(op.order[i])
	}
	return order
}

// IsIdentity reports whether the op leaves a tensor of ndim dimensions as it is.
func (op dimShuffleOp) IsIdentity(ndim int) bool { return int(op.n) == ndim && op.PadsLeft(ndim) }

// PadsLeft reports whether the op only adds dimensions in front of ndim others.
func (op dimShuffleOp) PadsLeft(ndim int) bool {
	pad := int(op.n) - ndim
	if pad < 0 {
		return false
	}
	for i, d := range op.order[:op.n] {
		if want := max(i-pad, array.NewAxis); int(d) != want {
			return false
		}
	}
	return true
}

// Compose returns the op that is equivalent to first followed by op.
func (op dimShuffleOp) Compose(first DimShuffleOp) DimShuffleOp {
	for i, d := range op.order[:op.n] {
		if d >= 0 {
			op.order[i] = first.order[d]
		}
	}
	return op
}

// String returns for example DimShuffle{x,1,0}.
func (op dimShuffleOp) String() string {
	parts := make([]string, op.n)
	for i, d := range op.order[:op.n] {
		parts[i] = "x"
		if d >= 0 {
			parts[i] = strconv.Itoa(int(d))
		}
	}
	name := "DimShuffle{"
	if op.Inplace {
		name = "InplaceDimShuffle{"
	}
	return name + strings.Join(parts, ",") + "}"
}

func (op dimShuffleOp) ViewMap() []fgraph.Alias { return []fgraph.Alias{{Output: 0, Input: 0}} }

func (op dimShuffleOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 {
		return nil, wrongCount(op, in, 1)
	}
	t := TypeOf(in[0]).h.Value()
	if t.csr {
		return nil, argError(op, 0, "is a sparse matrix")
	}
	s := spec{dtype: t.dtype, ndim: uint8(op.n)}
	kept := 0
	for i, d := range op.order[:op.n] {
		switch {
		case d < 0:
			s.shape[i] = 1
			continue
		case d >= int8(t.ndim):
			return nil, argError(op, 0, "is a %v, which has no dimension %d", in[0].Type(), d)
		case kept>>d&1 != 0:
			return nil, opError(op, "a dimension is used twice")
		}
		kept |= 1 << d
		s.shape[i] = t.shape[d]
	}
	for d := range t.ndim {
		if kept>>d&1 == 0 && t.shape[d] != 1 {
			return nil, argError(op, 0, "is a %v, whose dimension %d can't be dropped, as it is not known to have size 1", in[0].Type(), d)
		}
	}
	return one(s.intern()), nil
}

// LayOut implements Viewing.
func (op dimShuffleOp) LayOut(_ *fgraph.Apply, x, v *array.Array) bool {
	return x.TransposeTo(v, op.NewOrder()...) == nil
}

func (op dimShuffleOp) Compile(*fgraph.Apply) (Kernel, error) {
	order := op.NewOrder()
	return func(_ *array.Workspace, in, out []*array.Array) error { return in[0].TransposeTo(out[0], order...) }, nil
}

func (op dimShuffleOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	dims := make([]*fgraph.Variable, op.n)
	for i, d := range op.order[:op.n] {
		if d < 0 {
			dims[i] = s.size(1)
		} else {
			dims[i] = s.Dim(a.Inputs()[0], int(d))
		}
	}
	return [][]*fgraph.Variable{dims}
}

func (op dimShuffleOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	// What was dropped had size 1 and comes back as a new dimension. What was new is dropped.
	back := slices.Repeat([]int{array.NewAxis}, TypeOf(a.Inputs()[0]).NDim())
	for i, d := range op.order[:op.n] {
		if d >= 0 {
			back[d] = i
		}
	}
	return []*fgraph.Variable{DimShuffle(out[0], back...)}
}
