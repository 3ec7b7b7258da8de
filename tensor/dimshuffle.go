package tensor

import (
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// NewAxis stands in a DimShuffle for a new dimension of size 1.
const NewAxis = array.NewAxis

// DimShuffleOp permutes, drops and adds dimensions, without copying: dimension i of the output is dimension order[i] of the input, or
// new with size 1. Only dimensions known to have size 1 can be dropped.
type DimShuffleOp struct {
	order   [MaxDims]int8
	n       int8
	Inplace bool // Theano's old name for the form that is a view, which ours always is; local_dimshuffle_no_inplace_at_canonicalize drops it
}

// NewDimShuffle returns the op of an order.
func NewDimShuffle(order ...int) DimShuffleOp {
	if len(order) > MaxDims {
		fail("DimShuffle", "%d dimensions, there can be %d", len(order), MaxDims)
	}
	op := DimShuffleOp{n: int8(len(order))}
	for i, d := range order {
		op.order[i] = int8(max(d, NewAxis))
	}
	return op
}

// DimShuffle permutes, drops and adds dimensions of x; x itself if nothing changes. NewAxis in the order adds a dimension.
func DimShuffle(x *fgraph.Variable, order ...int) *fgraph.Variable {
	op := NewDimShuffle(order...)
	if op.IsIdentity(TypeOf(x).NDim()) {
		return x
	}
	return Apply(op, x)
}

// Transpose reverses the order of the dimensions of x.
func Transpose(x *fgraph.Variable) *fgraph.Variable {
	order := make([]int, TypeOf(x).NDim())
	for i := range order {
		order[i] = len(order) - 1 - i
	}
	return DimShuffle(x, order...)
}

// Order returns the order.
func (op DimShuffleOp) Order() []int {
	order := make([]int, op.n)
	for i := range order {
		order[i] = int(op.order[i])
	}
	return order
}

// IsIdentity reports whether nothing changes for a tensor of ndim dimensions.
func (op DimShuffleOp) IsIdentity(ndim int) bool {
	if int(op.n) != ndim {
		return false
	}
	for i, d := range op.order[:op.n] {
		if int(d) != i {
			return false
		}
	}
	return true
}

// PadsLeft reports whether the op adds dimensions in front and does nothing else.
func (op DimShuffleOp) PadsLeft(ndim int) bool {
	pad := int(op.n) - ndim
	if pad < 0 {
		return false
	}
	for i, d := range op.order[:op.n] {
		if want := max(i-pad, NewAxis); int(d) != want {
			return false
		}
	}
	return true
}

// Compose returns the op that does what op does to the result of first.
func (op DimShuffleOp) Compose(first DimShuffleOp) DimShuffleOp {
	for i, d := range op.order[:op.n] {
		if d >= 0 {
			op.order[i] = first.order[d]
		}
	}
	return op
}

// String returns for example DimShuffle{x,1,0}.
func (op DimShuffleOp) String() string {
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

// ViewMap tells that the output shows the input.
func (op DimShuffleOp) ViewMap() []fgraph.Alias { return []fgraph.Alias{{Output: 0, Input: 0}} }

// Infer moves sizes.
func (op DimShuffleOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 {
		return nil, &Error{op.String(), -1, "takes one argument"}
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
			return nil, &Error{op.String(), -1, "a dimension is used twice"}
		}
		kept |= 1 << d
		s.shape[i] = t.shape[d]
	}
	for d := range t.ndim {
		if kept>>d&1 == 0 && t.shape[d] != 1 {
			return nil, argError(op, 0, "is a %v, whose dimension %d can't be dropped, as it is not known to have size 1", in[0].Type(), d)
		}
	}
	return []fgraph.Type{s.intern()}, nil
}

// Compile makes a view.
func (op DimShuffleOp) Compile(*fgraph.Apply) (Kernel, error) {
	order := op.Order()
	return func(_ *array.Workspace, in, out []*array.Array) error { return in[0].TransposeTo(out[0], order...) }, nil
}

// InferShape moves sizes.
func (op DimShuffleOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	dims := make([]*fgraph.Variable, op.n)
	for i, d := range op.order[:op.n] {
		if d < 0 {
			dims[i] = s.Size(1)
		} else {
			dims[i] = s.Dim(a.Inputs()[0], int(d))
		}
	}
	return [][]*fgraph.Variable{dims}
}

// Grad moves dimensions back.
func (op DimShuffleOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	back := make([]int, TypeOf(a.Inputs()[0]).NDim())
	for i := range back {
		back[i] = NewAxis
	}
	for i, d := range op.order[:op.n] {
		if d >= 0 {
			back[d] = i
		}
	}
	return []*fgraph.Variable{DimShuffle(out[0], back...)}
}
