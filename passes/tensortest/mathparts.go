package tensortest

import (
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// along makes a part that works along a dimension.
func (g *Generator) along(pick picker) *variable {
	x := pick(hasDims(1, 3))
	if x == nil {
		return nil
	}
	axis := g.rng.IntN(tensor.TypeOf(x).NDim())
	switch g.rng.IntN(6) {
	case 0:
		return tensor.Cumsum(x, axis)
	case 1:
		return tensor.Cumprod(x, axis)
	case 2:
		return tensor.Sort(x, axis)
	case 3:
		return tensor.Argsort(x, axis)
	case 4:
		return tensor.TakeAlongAxis(x, tensor.Argsort(x, axis), axis)
	}
	return tensor.Argmin(x, axis)
}

// products makes products of matrices with other dimensions.
func (g *Generator) products(pick picker) *variable {
	x := pick(hasDims(1, 4))
	if x == nil {
		return nil
	}
	a := g.values[x]
	last := a.NDim() - 1
	y := pick(func(it item) bool {
		return hasDims(1, 4)(it) && it.value.DType() == a.DType() && it.value.Dim(max(0, it.value.NDim()-2)) == a.Dim(last)
	})
	if y == nil {
		return nil
	}
	switch m := g.values[y].NDim(); g.rng.IntN(4) {
	case 0:
		return tensor.Dot(x, y)
	case 1:
		return tensor.Tensordot(x, y, []int{last}, []int{max(0, m-2)})
	case 2:
		// They share i, the last dimension of x and the last but one of y. Letters before it are equal from the
		// end, as in a product of stacks.
		names := []string{"i", "bi", "abi", "dabi"}[last] + "," + []string{"i", "ij", "bij", "abij"}[m-1]
		return tensor.Einsum(names+"->"+[]string{"", "b", "ba"}[g.rng.IntN(3)], x, y)
	}
	return tensor.Matmul(x, y)
}

// equalElements reports whether two floats are so close that rounding decides their order.
func equalElements(x *array.Array, near float64) bool {
	for i := range x.Len() {
		for j := range i {
			if d := x.Float(i) - x.Float(j); x.DType().IsFloat() && d < near && d > -near {
				return true
			}
		}
	}
	return false
}
