package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// UniqueOp makes the sorted vector of the different elements of its input. All NaNs are one, the
// last.
type UniqueOp = uniqueOp

type uniqueOp struct{}

// Unique returns the different elements of x, sorted.
func Unique(x *fgraph.Variable) *fgraph.Variable { return MustApply(UniqueOp{}, x) }

func (uniqueOp) String() string { return "Unique" }

func (op uniqueOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 {
		return nil, wrongCount(op, in, 1)
	}
	t := TypeOf(in[0])
	if t.IsCSR() {
		return nil, argError(op, 0, "is a sparse matrix")
	}
	n := Unknown
	if repeatsOne(in[0]) {
		n = 1
	}
	return one(NewType(t.DType(), n)), nil
}

// repeatsOne reports whether all elements of v are known to be one, and that there is one.
func repeatsOne(v *fgraph.Variable) bool {
	for _, n := range TypeOf(v).Shape() {
		if n <= 0 { // or is not known
			return false
		}
	}
	for range 100 { // deeper than anybody nests them
		if TypeOf(v).AllOnes() {
			return true
		}
		a := v.Owner()
		if a == nil {
			return false
		}
		switch op := a.Op().(type) {
		case DimShuffleOp, AllocOp, ReshapeOp, SpecifyShapeOp:
			v = a.Inputs()[0]
		case Elemwise:
			if op.Op != array.Second {
				return false
			}
			v = a.Inputs()[1]
		default:
			return false
		}
	}
	return false
}

func (op uniqueOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		n := in[0].Len()
		var flat array.Array
		if !in[0].ReshapeTo(&flat, n) {
			flat = *in[0].Clone().Reshape(n)
		}
		sorted := array.New(flat.DType(), n)
		ws.Sort(sorted, &flat, 0)
		// Equal elements are neighbours now, and the first one of them stays.
		var first []int64
		for i := range n {
			if i == 0 || !sameElement(sorted, i-1, i) {
				first = append(first, int64(i))
			}
		}
		return ws.Take(out[0], sorted, array.Of(first, len(first)))
	}, nil
}

// sameElement reports whether two elements of an array are equal, or both are NaN.
func sameElement(a *array.Array, i, j int) bool {
	if !a.DType().IsFloat() {
		return a.Int(i) == a.Int(j)
	}
	x, y := a.Float(i), a.Float(j)
	return x == y || x != x && y != y
}
