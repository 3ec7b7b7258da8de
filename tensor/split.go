package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// MaxParts bounds the parts of a tensor, so that a few characters don't describe a large graph.
const MaxParts = 256

// Split cuts x along a dimension into parts of one size. The error at run time wraps ErrAssert if
// that is not possible.
func Split(x *fgraph.Variable, parts, axis int) []*fgraph.Variable {
	const name = "split"
	axis = checkParts(name, x, parts, axis)
	n := sizeOf(x, axis)
	if k, ok := constantInt(n); ok && k%parts != 0 {
		fail(name, "size %d of dimension %d is not a multiple of %d", k, axis, parts)
	} else if !ok && parts > 1 {
		n = Assert(n, fmt.Sprintf("split: the size is not a multiple of %d", parts), Map(array.Eq, Map(array.Mod, n, Int(parts)), Int(0)))
	}
	size, cuts := intMap(array.IntDiv, n, Int(parts)), make([]*fgraph.Variable, parts-1)
	for i := range cuts {
		cuts[i] = intMap(array.Mul, size, Int(i+1))
	}
	return SplitAt(x, axis, cuts...)
}

// ArraySplit cuts x along a dimension into parts of nearly one size: the first ones may be larger by
// one.
func ArraySplit(x *fgraph.Variable, parts, axis int) []*fgraph.Variable {
	axis = checkParts("array_split", x, parts, axis)
	n := sizeOf(x, axis)
	size, cuts := intMap(array.IntDiv, n, Int(parts)), make([]*fgraph.Variable, parts-1)
	rest := intMap(array.Sub, n, intMap(array.Mul, size, Int(parts)))
	for i := range cuts {
		// The first parts, as many as rest, have an element more. So the first i+1 have i+1 more, but not more
		// than rest.
		cuts[i] = intMap(array.Add, intMap(array.Mul, size, Int(i+1)), intMap(array.Minimum, Int(i+1), rest))
	}
	return SplitAt(x, axis, cuts...)
}

func checkParts(op string, x *fgraph.Variable, parts, axis int) int {
	if parts < 1 || parts > MaxParts {
		fail(op, "%d parts, there can be 1 to %d", parts, MaxParts)
	}
	return NormalAxes(op, x, []int{axis})[0]
}

// SplitAt cuts x along a dimension before the positions cuts, which are bounds of slices.
func SplitAt(x *fgraph.Variable, axis int, cuts ...*fgraph.Variable) []*fgraph.Variable {
	axis = NormalAxes("split", x, []int{axis})[0]
	parts := make([]*fgraph.Variable, len(cuts)+1)
	var start *fgraph.Variable
	for i := range parts {
		var stop *fgraph.Variable
		if i < len(cuts) {
			stop = cuts[i]
		}
		parts[i] = Subtensor(x, along(axis, SliceOf(start, stop, 1))...)
		start = stop
	}
	return parts
}

// SplitSizes cuts x along a dimension into parts of these sizes, which are integer scalars. The error
// at run time wraps ErrAssert if they are not all of x.
func SplitSizes(x *fgraph.Variable, axis int, sizes ...*fgraph.Variable) []*fgraph.Variable {
	axis = NormalAxes("split", x, []int{axis})[0]
	var cuts []*fgraph.Variable
	end, signs := Int(0), []*fgraph.Variable{}
	for _, n := range sizes {
		n = AsSize("split", n)
		if !positive(n) {
			signs = append(signs, Map(array.Ge, n, Int(0)))
		}
		end = intMap(array.Add, end, n)
		cuts = append(cuts, end)
	}
	if n := sizeOf(x, axis); !SameSize(end, n) {
		signs = append(signs, Map(array.Eq, end, n))
	}
	if len(signs) > 0 {
		x = Assert(x, "split: the sizes of the parts are not those of a tensor of this size", signs...)
	}
	return SplitAt(x, axis, cuts[:len(cuts)-1]...)
}
