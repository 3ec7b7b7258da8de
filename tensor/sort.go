package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

type (
	// SortOp sorts the elements along the dimension Axis: the smallest first, NaN last.
	SortOp = sortOp
	// ArgsortOp finds the positions of the elements in the order in which SortOp sorts them. Of
	// equal elements, the first one comes first.
	ArgsortOp = argsortOp
)

type (
	sortOp struct {
		likeFirst
		Axis int8
	}
	argsortOp struct {
		likeFirst
		noGradient
		Axis int8
	}
)

// Sort returns x with the elements along a dimension sorted: the smallest first, NaN last.
func Sort(x *fgraph.Variable, axis int) *fgraph.Variable {
	return MustApply(SortOp{Axis: int8(NormalAxes("sort", x, []int{axis})[0])}, x)
}

// Argsort returns the positions of the elements of x along a dimension, in the order in which Sort
// sorts them. Of equal elements, the first one comes first.
func Argsort(x *fgraph.Variable, axis int) *fgraph.Variable {
	return MustApply(ArgsortOp{Axis: int8(NormalAxes("argsort", x, []int{axis})[0])}, x)
}

// TopK returns the k largest elements of x along a dimension, or the smallest ones, in order, and
// their positions. Of equal elements, the first one comes first. NaN is larger than all numbers.
func TopK(x, k *fgraph.Variable, axis int, largest bool) (values, places *fgraph.Variable) {
	const name = "topk"
	axis = NormalAxes(name, x, []int{axis})[0]
	k = natural(name, AsSize(name, k))
	if n, ok := constantInt(k); ok {
		if size := TypeOf(x).Dim(axis); size != Unknown && n > size {
			fail(name, "%d elements of dimension %d, which has size %d", n, axis, size)
		}
	}
	if largest {
		// From behind, equal elements are in the opposite order, which is then the right one.
		end := intMap(array.Sub, sizeOf(x, axis), Int(1))
		places = Sub(PadLeft(end, TypeOf(x).NDim()), reversed(Argsort(reversed(x, axis), axis), axis))
	} else {
		places = Argsort(x, axis)
	}
	places = Subtensor(places, along(axis, SliceOf(nil, k, 1))...)
	return GatherElements(x, places, axis), places
}

func (op sortOp) String() string    { return fmt.Sprintf("sort{axis=%d}", op.Axis) }
func (op argsortOp) String() string { return fmt.Sprintf("argsort{axis=%d}", op.Axis) }

func (op sortOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return typed(alongAxis(op, in, op.Axis))
}

func (op argsortOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	t, err := alongAxis(op, in, op.Axis)
	if err != nil {
		return nil, err
	}
	return one(t.With(array.Int64)), nil
}

func (op sortOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := ws.New(out[0], in[0].DType(), in[0].Shape()...); err != nil {
			return err
		}
		ws.Sort(out[0], in[0], int(op.Axis))
		return nil
	}, nil
}

func (op argsortOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := ws.New(out[0], array.Int64, in[0].Shape()...); err != nil {
			return err
		}
		ws.ArgSort(out[0], in[0], int(op.Axis))
		return nil
	}, nil
}

// Grad gives each element the gradient of the place where it went.
func (op sortOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	axis := int(op.Axis)
	// Argsort is a permutation, and to sort it gives its inverse.
	places := Argsort(Argsort(a.Inputs()[0], axis), axis)
	return []*fgraph.Variable{TakeAlongAxis(out[0], places, axis)}
}

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
