package tensor

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// Repeat repeats each element of x along a dimension as often as counts says, an integer scalar for
// all elements or a vector with one for each.
func Repeat(x, counts *fgraph.Variable, axis int) *fgraph.Variable {
	const name = "repeat"
	t := TypeOf(x)
	axis = NormalAxes(name, x, []int{axis})[0]
	c := TypeOf(counts)
	switch {
	case c.DType().IsFloat() || c.NDim() > 1:
		fail(name, "the counts are a %v, not an integer or a vector of integers", c)
	// A number for each element needs an index. So does one for all of them where no dimension is left for
	// stretch.
	case !c.AllOnes() || t.NDim() == array.MaxDims:
		n := sizeOf(x, axis)
		if c.AllOnes() {
			counts = Alloc(DimShuffle(counts), n)
		}
		return takeAlong(x, axis, MustApply(RepeatIndexOp{}, Cast(counts, array.Int64), n))
	}
	return stretch(x, AsSize(name, counts), axis, axis+1)
}

// Tile returns copies of x side by side: as many along each dimension as reps says. Missing
// dimensions of x are added in front; of missing numbers in front each is 1.
func Tile(x *fgraph.Variable, reps ...*fgraph.Variable) *fgraph.Variable {
	const name = "tile"
	if len(reps) > array.MaxDims {
		fail(name, "%d dimensions, there can be %d", len(reps), array.MaxDims)
	}
	x = PadLeft(x, len(reps))
	skip := TypeOf(x).NDim() - len(reps)
	for i, r := range reps {
		r, axis := AsSize(name, r), skip+i
		switch n := sizeOf(x, axis); {
		case isOne(r):
		case TypeOf(x).NDim() == array.MaxDims:
			// No dimension is left for stretch, so elements are selected by their positions modulo n.
			end := intMap(array.Mul, n, natural(name, r))
			x = takeAlong(x, axis, Map(array.Mod, ARange(Int(0), end, Int(1)), n))
		default:
			x = stretch(x, r, axis, axis)
		}
	}
	return x
}

// stretch repeats x n times along a new dimension at place at, which it merges with the dimension
// axis.
func stretch(x, n *fgraph.Variable, axis, at int) *fgraph.Variable {
	if isOne(n) {
		return x
	}
	sizes := dimSizes(x)
	y := Alloc(DimShuffle(x, slices.Insert(allDims(x), at, array.NewAxis)...), slices.Insert(slices.Clone(sizes), at, n)...)
	sizes[axis] = intMap(array.Mul, sizes[axis], n)
	return Reshape(y, sizes...)
}

// takeAlong selects elements along a dimension by a tensor of integers, whose dimensions replace it.
func takeAlong(x *fgraph.Variable, axis int, index *fgraph.Variable) *fgraph.Variable {
	return NewPart("take", x, alongBy(axis, ByTensor(index))...).Get()
}

// TakeAlongAxis selects elements along a dimension: the result at (…, j, …) is x at (…, index[…, j, …],
// …). The index has the other sizes of x, or 1.
func TakeAlongAxis(x, index *fgraph.Variable, axis int) *fgraph.Variable {
	const name = "take_along_axis"
	n := TypeOf(x).NDim()
	if TypeOf(index).NDim() != n {
		fail(name, "an index that is a %v for a %v", index.Type(), x.Type())
	}
	axis = NormalAxes(name, x, []int{axis})[0]
	at := make([]Selector, n)
	for d := range at {
		at[d] = ByTensor(asDim(positions(sizeOf(x, d), 0), d, n))
	}
	if TypeOf(index).DType() == array.Bool {
		fail(name, "the index is a %v, not integers", index.Type())
	}
	at[axis] = ByTensor(index)
	return NewPart(name, x, at...).Get()
}

// natural returns an integer scalar that must not be negative. That is checked now if it is a
// constant, otherwise when the function runs.
func natural(op string, n *fgraph.Variable) *fgraph.Variable {
	if k, ok := constantInt(n); ok {
		if k < 0 {
			fail(op, "the negative number %d", k)
		}
		return n
	}
	if positive(n) {
		return n
	}
	return Assert(n, op+" takes no negative number", Map(array.Ge, n, Int(0)))
}

// Roll moves the elements of x along a dimension by shift places, an integer scalar. What leaves
// one end comes in at the other.
func Roll(x, shift *fgraph.Variable, axis int) *fgraph.Variable {
	const name = "roll"
	axis = NormalAxes(name, x, []int{axis})[0]
	shift = AsSize(name, shift)
	n := sizeOf(x, axis)
	size, known := constantInt(n)
	k, constant := constantInt(shift)
	switch {
	case known && size <= 1 || constant && k == 0:
		return x
	case known && constant:
		// The % of Go has the sign of k.
		if k = ((k % size) + size) % size; k == 0 {
			return x
		}
		shift = Int(k)
	default:
		// Nothing can be taken modulo the size of an empty dimension, in which there is nothing to move.
		shift = Map(array.Mod, shift, intMap(array.Maximum, n, Int(1)))
	}
	cut := intMap(array.Sub, n, shift)
	return Join(axis, Subtensor(x, along(axis, SliceOf(cut, nil, 1))...), Subtensor(x, along(axis, SliceOf(nil, cut, 1))...))
}
