package tensor

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// The functions below move, add and drop dimensions. They have the meaning that NumPy gives their
// names. Negative dimensions count from the end.

// allDims returns the dimensions of x.
func allDims(x *fgraph.Variable) []int { return upTo(TypeOf(x).NDim()) }

// differentAxes is NormalAxes for dimensions that must not be named twice.
func differentAxes(op string, x *fgraph.Variable, axes []int) []int {
	normal := NormalAxes(op, x, axes)
	for i, d := range normal {
		if slices.Contains(normal[:i], d) {
			fail(op, "axis %d is named twice", d)
		}
	}
	return normal
}

// MoveAxes moves dimensions of x to other places. The others keep their order.
func MoveAxes(x *fgraph.Variable, from, to []int) *fgraph.Variable {
	const name = "moveaxis"
	if len(from) != len(to) {
		fail(name, "%d dimensions to %d places", len(from), len(to))
	}
	from, to = differentAxes(name, x, from), differentAxes(name, x, to)
	order := make([]int, TypeOf(x).NDim())
	next := 0
	for d := range order {
		if i := slices.Index(to, d); i >= 0 {
			order[d] = from[i]
			continue
		}
		for slices.Contains(from, next) {
			next++
		}
		order[d] = next
		next++
	}
	return DimShuffle(x, order...)
}

// SwapAxes exchanges two dimensions of x.
func SwapAxes(x *fgraph.Variable, a, b int) *fgraph.Variable {
	axes := NormalAxes("swapaxes", x, []int{a, b})
	order := allDims(x)
	order[axes[0]], order[axes[1]] = axes[1], axes[0]
	return DimShuffle(x, order...)
}

// AlongAxis applies a function of the last dimension, such as [Softmax], to another dimension of x.
func AlongAxis(f func(*fgraph.Variable) *fgraph.Variable, x *fgraph.Variable, axis int) *fgraph.Variable {
	last := TypeOf(x).NDim() - 1
	if axis == last {
		return f(x)
	}
	return SwapAxes(f(SwapAxes(x, axis, last)), axis, last)
}

// ExpandDims adds dimensions of size 1, which the result has at the places axes.
func ExpandDims(x *fgraph.Variable, axes ...int) *fgraph.Variable {
	const name = "expand_dims"
	n := TypeOf(x).NDim() + len(axes)
	if n > array.MaxDims {
		fail(name, "%d dimensions, there can be %d", n, array.MaxDims)
	}
	order := make([]int, n)
	for _, d := range axes {
		at := d
		if at < 0 {
			at += n
		}
		if at < 0 || at >= n {
			fail(name, "axis %d of a tensor of %d dimensions", d, n)
		}
		if order[at] == array.NewAxis {
			fail(name, "axis %d is named twice", d)
		}
		order[at] = array.NewAxis
	}
	next := 0
	for d := range order {
		if order[d] != array.NewAxis {
			order[d] = next
			next++
		}
	}
	return DimShuffle(x, order...)
}

// Squeeze drops dimensions of size 1. If none is named, it drops those that are known to have
// size 1; NumPy also drops those that turn out to.
func Squeeze(x *fgraph.Variable, axes ...int) *fgraph.Variable {
	const name = "squeeze"
	t := TypeOf(x)
	if len(axes) == 0 {
		for d := range t.NDim() {
			if t.Dim(d) == 1 {
				axes = append(axes, d)
			}
		}
	}
	axes = differentAxes(name, x, axes)
	shape, order := t.Shape(), []int{}
	for d, n := range shape {
		switch {
		case !slices.Contains(axes, d):
			order = append(order, d)
		case n == Unknown || n == 1:
			shape[d] = 1
		default:
			fail(name, "dimension %d of a %v does not have size 1", d, t)
		}
	}
	// Only a dimension whose type says size 1 can be dropped. SpecifyShape makes it say so, and a run fails if
	// it is not true.
	return DimShuffle(SpecifyShape(x, shape...), order...)
}

// Flip reverses the order of the elements along the named dimensions, or along all if none is named.
func Flip(x *fgraph.Variable, axes ...int) *fgraph.Variable {
	if len(axes) == 0 {
		axes = allDims(x)
	}
	axes = differentAxes("flip", x, axes)
	indexes := make([]Index, TypeOf(x).NDim())
	for d := range indexes {
		if indexes[d] = Everything(); slices.Contains(axes, d) {
			indexes[d].Step = -1
		}
	}
	return Subtensor(x, indexes...)
}

// AtLeast returns x with at least ndim dimensions, 1 to 3. A vector becomes a row, or the middle
// one of three dimensions; a matrix becomes the first two of three.
func AtLeast(x *fgraph.Variable, ndim int) *fgraph.Variable {
	switch n := TypeOf(x).NDim(); {
	case n >= ndim:
		return x
	case ndim == 3 && n == 2:
		return DimShuffle(x, 0, 1, array.NewAxis)
	case ndim == 3 && n == 1:
		return DimShuffle(x, array.NewAxis, 0, array.NewAxis)
	}
	return PadLeft(x, ndim)
}

// along returns the indexes that apply i to one dimension, and select everything of those before it.
func along(axis int, i Index) []Index {
	return append(slices.Repeat([]Index{Everything()}, axis), i)
}

// alongBy is along for a selector.
func alongBy(axis int, s Selector) []Selector {
	return append(slices.Repeat([]Selector{ByIndex(Everything())}, axis), s)
}

// asDim returns a vector as dimension d of n, of which the others have size 1.
func asDim(v *fgraph.Variable, d, n int) *fgraph.Variable {
	order := slices.Repeat([]int{array.NewAxis}, n)
	order[d] = 0
	return DimShuffle(v, order...)
}

// sizeOf returns the size of a dimension of x, as a constant if it is known.
func sizeOf(x *fgraph.Variable, d int) *fgraph.Variable {
	if n := TypeOf(x).Dim(d); n != Unknown {
		return Int(n)
	}
	return ShapeI(x, d)
}
