package expr

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// shuffles holds the functions that move, repeat and select elements, or change the dimensions of a
// tensor. Names and arguments are NumPy's.
var shuffles = map[string]function{
	"squeeze": squeeze, "expand_dims": expandDims, "swapaxes": swapAxes, "moveaxis": moveAxis, "broadcast_to": broadcastTo,
	"tile": tile, "repeat": repeat, "roll": roll, "take": take, "take_along_axis": takeAlongAxis,
	"flip":             func(c *call) *fgraph.Variable { c.count(2); return tensor.Flip(c.tensor(0, "m"), c.axes(1)...) },
	"matrix_transpose": unaryOf(matrixTranspose),
	"flipud":           flipped(0), "fliplr": flipped(1),
	"join_dims": joinDims, "split_dims": splitDims,
	"unique": func(c *call) *fgraph.Variable { c.count(1); return tensor.Unique(c.tensor(0, "ar")) },
}

// joinDims merges n_axes dimensions into one, from start_axis on.
func joinDims(c *call) *fgraph.Variable {
	c.count(3)
	x := c.tensor(0, "x")
	start, n := c.integer(1, "start_axis", 0), c.integer(2, "n_axes", tensor.TypeOf(x).NDim())
	ndim := tensor.TypeOf(x).NDim()
	if start < 0 {
		start += ndim
	}
	if start < 0 || n < 0 || start+n > ndim {
		fail(c.name, "%d dimensions from %d on of a %v", n, start, x.Type())
	}
	dims := sizesOf(x, -1)
	joined := tensor.Int(1)
	for _, d := range dims[start : start+n] {
		joined = tensor.MapSizes(array.Mul, joined, d)
	}
	return tensor.Reshape(x, slices.Concat(dims[:start], []*fgraph.Variable{joined}, dims[start+n:])...)
}

// splitDims makes several dimensions of one.
func splitDims(c *call) *fgraph.Variable {
	c.count(3)
	x := c.tensor(0, "x")
	axis := tensor.NormalAxes(c.name, x, []int{c.integer(2, "axis", 0)})[0]
	dims := sizesOf(x, -1)
	return tensor.Reshape(x, slices.Concat(dims[:axis], sizes(c.name, []value{c.need(1, "shape")}), dims[axis+1:])...)
}

func squeeze(c *call) *fgraph.Variable {
	c.count(2)
	x, axes := c.tensor(0, "a"), c.axes(1)
	// An empty list names no dimension. Squeeze would take it for all that have size 1.
	if axes != nil && len(axes) == 0 {
		return x
	}
	return tensor.Squeeze(x, axes...)
}

func expandDims(c *call) *fgraph.Variable {
	c.count(2)
	x := c.tensor(0, "a")
	return tensor.ExpandDims(x, c.need(1, "axis").integers(c.name)...)
}

func swapAxes(c *call) *fgraph.Variable {
	c.count(3)
	return tensor.SwapAxes(c.tensor(0, "a"), c.need(1, "axis1").integer(c.name), c.need(2, "axis2").integer(c.name))
}

// matrixTranspose transposes the matrices in the last two dimensions.
func matrixTranspose(x *fgraph.Variable) *fgraph.Variable { return tensor.SwapAxes(x, -2, -1) }

func moveAxis(c *call) *fgraph.Variable {
	c.count(3)
	return tensor.MoveAxes(c.tensor(0, "a"), c.need(1, "source").integers(c.name), c.need(2, "destination").integers(c.name))
}

func broadcastTo(c *call) *fgraph.Variable {
	c.count(2)
	return tensor.Alloc(c.tensor(0, "array"), sizes(c.name, []value{c.need(1, "shape")})...)
}

// flipped returns the function that reverses the elements along an axis.
func flipped(axis int) function {
	return func(c *call) *fgraph.Variable { c.count(1); return tensor.Flip(c.tensor(0, "m"), axis) }
}

func tile(c *call) *fgraph.Variable {
	c.count(2)
	return tensor.Tile(c.tensor(0, "A"), sizes(c.name, []value{c.need(1, "reps")})...)
}

// along returns a tensor and the axis along which a function works: the argument axis, or the only
// dimension of the flat tensor if that is missing.
func (c *call) along(i int, x *fgraph.Variable) (*fgraph.Variable, int) {
	if a, ok := c.arg(i, "axis"); ok && a.kind != kindNone {
		return x, a.integer(c.name)
	}
	return flat(x), 0
}

func repeat(c *call) *fgraph.Variable {
	c.count(3)
	x, axis := c.along(2, c.tensor(0, "a"))
	return tensor.Repeat(x, c.tensor(1, "repeats"), axis)
}

// roll moves the elements along one axis, along several ones, or those of the flat tensor.
func roll(c *call) *fgraph.Variable {
	c.count(3)
	x, shift := c.tensor(0, "a"), c.need(1, "shift")
	a, ok := c.arg(2, "axis")
	if !ok || a.kind == kindNone {
		// Without an axis, elements move from the end of a row to the next one.
		return tensor.Reshape(tensor.Roll(flat(x), shift.size(c.name), 0), sizesOf(x, -1)...)
	}
	axes := a.integers(c.name)
	shifts := sizes(c.name, []value{shift})
	n := max(len(axes), len(shifts))
	if len(axes) != n && len(axes) != 1 || len(shifts) != n && len(shifts) != 1 {
		fail(c.name, "%d shifts for %d axes", len(shifts), len(axes))
	}
	for i := range n {
		x = tensor.Roll(x, shifts[min(i, len(shifts)-1)], axes[min(i, len(axes)-1)])
	}
	return x
}

// sizesOf returns the sizes of a tensor, with 1 for the dimension one.
func sizesOf(x *fgraph.Variable, one int) []*fgraph.Variable {
	t := tensor.TypeOf(x)
	list := make([]*fgraph.Variable, t.NDim())
	for d := range list {
		switch n := t.Dim(d); {
		case d == one:
			list[d] = tensor.Int(1)
		case n != tensor.Unknown:
			// A constant lets types be inferred from the size, which an apply of the shape would hide.
			list[d] = tensor.Int(n)
		default:
			list[d] = tensor.ShapeI(x, d)
		}
	}
	return list
}

// take selects elements by a tensor of integers. The mode says what becomes of those that are out of
// range: raise, wrap or clip.
func take(c *call) *fgraph.Variable {
	c.count(4)
	x, axis := c.along(2, c.tensor(0, "a"))
	axis = tensor.NormalAxes(c.name, x, []int{axis})[0]
	i := c.need(1, "indices").indexTensor(c.name)
	n := sizesOf(x, -1)[axis]
	switch mode := c.text(3, "mode", "raise"); mode {
	case "raise":
	case "wrap":
		// The result has the sign of n, so that negative indexes wrap as well.
		i = tensor.Map(array.Mod, i, n)
	case "clip":
		i = tensor.Minimum(tensor.Maximum(i, tensor.Int(0)), tensor.Sub(n, tensor.Int(1)))
	default:
		fail(c.name, "the mode is raise, wrap or clip, not %q", mode)
	}
	// As an index, a tensor of bools would be a mask. Here they are 0 and 1.
	if t := tensor.TypeOf(i); t.DType() == array.Bool {
		i = tensor.Cast(i, array.Int64)
	}
	return tensor.NewPart(c.name, x, after(axis, tensor.ByTensor(i))...).Get()
}

func takeAlongAxis(c *call) *fgraph.Variable {
	c.count(3)
	x, i := c.tensor(0, "arr"), c.need(1, "indices").indexTensor(c.name)
	if a := c.need(2, "axis"); a.kind != kindNone {
		return tensor.TakeAlongAxis(x, i, a.integer(c.name))
	}
	return tensor.TakeAlongAxis(flat(x), i, 0)
}
