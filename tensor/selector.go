package tensor

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Selector is one of the indexes in brackets of NumPy's x[i, 1:3, None, mask].
type Selector struct {
	kind   selectorKind
	index  Index            // byIndex
	tensor *fgraph.Variable // byTensor
}

type selectorKind uint8

const (
	byIndex selectorKind = iota
	byTensor
	newDim
	ellipsis // separates tensors, even if it selects nothing
)

// ByIndex returns the selector of a slice, or of one element.
func ByIndex(i Index) Selector { return Selector{index: i} }

// ByTensor returns the selector of the elements that a tensor of integers names, or of those where
// a mask is true: a tensor of bools, which takes as many dimensions as it has.
func ByTensor(v *fgraph.Variable) Selector { return Selector{kind: byTensor, tensor: v} }

// NewDim returns the selector that adds a dimension of size 1.
func NewDim() Selector { return Selector{kind: newDim} }

// Ellipsis returns the selector that means as many full slices as are missing.
func Ellipsis() Selector { return Selector{kind: ellipsis} }

// dims returns how many dimensions the selector indexes.
func (s Selector) dims() int {
	switch {
	case s.kind == newDim, s.kind == ellipsis:
		return 0
	case s.kind == byTensor && TypeOf(s.tensor).DType() == array.Bool:
		return TypeOf(s.tensor).NDim()
	}
	return 1
}

// integers replaces masks by tensors of integers, and integers without dimensions by indexes of one
// element. It returns x, of which the sizes that constant masks imply are known.
func integers(op string, x *fgraph.Variable, list []Selector) (*fgraph.Variable, []Selector) {
	shape, out, d := TypeOf(x).Shape(), []Selector{}, 0
	for _, s := range list {
		first := d
		d += s.dims()
		if s.kind != byTensor {
			out = append(out, s)
			continue
		}
		t := TypeOf(s.tensor)
		switch {
		case t.DType().IsFloat() || t.IsCSR():
			fail(op, "an index is a %v, not an integer", t)
		case t.DType() == array.Bool && t.NDim() == 0:
			fail(op, "a bool without dimensions is no index")
		case t.DType() == array.Bool:
			for _, i := range positionsOf(op, s.tensor, x, shape, first) {
				out = append(out, ByTensor(i))
			}
		case t.NDim() == 0:
			out = append(out, ByIndex(At(s.tensor)))
		default:
			out = append(out, ByTensor(Cast(s.tensor, array.Int64)))
		}
	}
	if TypeOf(x).IsCSR() {
		return x, out
	}
	return SpecifyShape(x, shape...), out
}

// positionsOf returns the positions of the true elements of a mask of the dimensions of x from
// first on. It notes in shape what a constant mask implies.
func positionsOf(op string, mask, x *fgraph.Variable, shape []int, first int) []*fgraph.Variable {
	t, known := TypeOf(mask), true
	sizes := []*fgraph.Variable{mask}
	for d := range t.NDim() {
		n, m := t.Dim(d), shape[first+d]
		if n != Unknown && m != Unknown && n != m {
			fail(op, "a mask of size %d for dimension %d of a %v", n, first+d, x.Type())
		}
		known = known && n != Unknown && m != Unknown
		sizes = append(sizes, sizeOf(x, first+d))
	}
	if a := ConstantOf(mask); a != nil {
		copy(shape[first:], a.Shape())
		return constantPositions(a)
	}
	// The sizes are inputs only to be compared with the mask. Types have done that, or both come from one
	// tensor.
	if known || first == 0 && t.NDim() == len(shape) && sameShape(mask, x) {
		sizes = sizes[:1]
	}
	a, err := Make(NonzeroOp{}, sizes...)
	if err != nil {
		panic(err)
	}
	return a.Outputs()
}

// constantPositions returns the positions of the true elements of an array, for each dimension.
func constantPositions(mask *array.Array) []*fgraph.Variable {
	out := make([]*array.Array, mask.NDim())
	for d := range out {
		out[d] = new(array.Array)
	}
	var ws array.Workspace
	if err := ws.NonzeroTo(out, mask); err != nil {
		panic(&Error{"index", -1, err.Error()})
	}
	return lists.Map(out, func(a *array.Array) *fgraph.Variable { return Constant(a.Clone()) })
}

// sameShape reports whether two tensors are seen to have the same shape, because element-wise ops
// compute both from the same one.
func sameShape(a, b *fgraph.Variable) bool {
	of := shapedLike(a)
	return slices.ContainsFunc(shapedLike(b), func(v *fgraph.Variable) bool { return slices.Contains(of, v) })
}

// shapedLike returns v and some of the tensors that have its shape and from which element-wise ops
// compute it.
func shapedLike(v *fgraph.Variable) []*fgraph.Variable {
	const most = 16
	list := []*fgraph.Variable{v}
	for i := 0; i < len(list); i++ {
		if _, ok := OpOf(list[i]).(Elemwise); !ok {
			continue
		}
		for _, in := range list[i].Owner().Inputs() {
			broadcast := false
			for d := range TypeOf(in).NDim() {
				broadcast = broadcast || TypeOf(in).Dim(d) == 1 && TypeOf(v).Dim(d) != 1
			}
			if !broadcast && len(list) < most {
				list = append(list, in)
			}
		}
	}
	return list
}

// BroadcastAll returns tensors broadcast to one shape.
func BroadcastAll(list ...*fgraph.Variable) []*fgraph.Variable {
	list = pad(list)
	out := slices.Clone(list)
	for i := range out {
		for _, v := range list {
			t, u := TypeOf(out[i]), TypeOf(v)
			for d := range t.NDim() {
				if t.Dim(d) == 1 && u.Dim(d) != 1 {
					out[i] = Second(v, out[i])
					break
				}
			}
		}
	}
	return out
}
