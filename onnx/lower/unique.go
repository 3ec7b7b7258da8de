package lower

import (
	"cmp"
	"slices"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

type uniqueness struct{ Unsorted bool }

// unique lowers Unique: of elements, or of the parts along an axis.
func (c *call) unique() []*value {
	x := tensor.Cast(c.x(0), wide(c.x(0)))
	shape := c.shape(x)
	axis := -1
	if c.attribute("axis") != nil {
		axis = c.axis(c.int("axis", 0), len(shape))
		x = tensor.MoveAxes(x, []int{axis}, []int{0})
	} else {
		x = c.flat(x)
	}
	strings := x
	// Numbers of strings don't tell their order.
	if c.elem(0) == onnx.String {
		x = c.ranks(x)
	}
	rest := c.shape(x)[1:]
	types := []tensor.Type{tensor.NewType(wide(x), append([]int{tensor.Unknown}, rest...)...)}
	for range 3 {
		types = append(types, tensor.VectorType(array.Int64))
	}
	found := routine(c, "Unique", uniqueOf, uniqueness{!c.bool("sorted", true)}, []variable{x}, types...)
	y := found[0]
	// Ranks are no strings: these are taken from where each is first.
	if c.elem(0) == onnx.String {
		y = tensor.Take(strings, found[1])
	}
	if axis >= 0 {
		y = tensor.MoveAxes(y, []int{0}, []int{axis})
	}
	out := c.like(y)
	for _, v := range found[1:] {
		out = append(out, &value{v: v, elem: onnx.Int64})
	}
	return out
}

// uniqueOf returns the different rows of an array, where each one is first, which of them every row is,
// and how many rows each one is.
func uniqueOf(p uniqueness, in []*array.Array) ([]*array.Array, error) {
	x := in[0]
	n := x.Dim(0)
	compare := func(i, j int) int { return 0 }
	if n > 0 {
		size := x.Len() / n
		if x.DType() == array.Int64 {
			compare = rowOrder(array.Slice[int64](x), size)
		} else {
			compare = rowOrder(array.Slice[float64](x), size)
		}
	}
	order := lists.Range[int](n)
	slices.SortStableFunc(order, compare)
	// The first of equal rows comes first, since the sort is stable.
	var groups [][]int
	for k, i := range order {
		if k == 0 || compare(order[k-1], i) != 0 {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], i)
	}
	// ONNX then has them in the order in which each is first.
	if p.Unsorted {
		slices.SortFunc(groups, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	}
	first, inverse, counts := make([]int64, len(groups)), make([]int64, n), make([]int64, len(groups))
	for g, rows := range groups {
		first[g], counts[g] = int64(rows[0]), int64(len(rows))
		for _, i := range rows {
			inverse[i] = int64(g)
		}
	}
	y := array.New(x.DType(), append([]int{len(groups)}, x.Shape()[1:]...)...)
	if x.DType() == array.Int64 {
		copyRows(array.Slice[int64](y), array.Slice[int64](x), first)
	} else {
		copyRows(array.Slice[float64](y), array.Slice[float64](x), first)
	}
	return []*array.Array{y, array.Of(first, len(first)), array.Of(inverse, n), array.Of(counts, len(counts))}, nil
}

// rowOrder compares rows of so many elements by the first that differs.
func rowOrder[T int64 | float64](x []T, size int) func(i, j int) int {
	return func(i, j int) int { return slices.Compare(x[i*size:][:size], x[j*size:][:size]) }
}

func copyRows[T int64 | float64](y, x []T, rows []int64) {
	if len(rows) == 0 {
		return
	}
	size := len(y) / len(rows)
	for k, i := range rows {
		copy(y[k*size:][:size], x[int(i)*size:][:size])
	}
}
