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
