package expr

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// structure holds the functions that make tensors, and put them together and apart. Names and
// arguments are NumPy's, with those of its linalg, and SciPy's for block_diag.
var structure = map[string]function{
	"zeros": filled(0), "ones": filled(1), "full": full, "zeros_like": filledLike(0), "ones_like": filledLike(1), "full_like": fullLike,
	"eye": eye, "identity": identity, "tri": tri, "tril": triangle(tensor.Tril), "triu": triangle(tensor.Triu),
	"diag": diag, "diagonal": diagonal, "trace": trace, "linspace": linspace, "diff": diff, "pad": pad,
	"kron":       pairOf(tensor.Kron),
	"outer":      pairOf(func(x, y *fgraph.Variable) *fgraph.Variable { return tensor.Outer(flat(x), flat(y)) }),
	"block_diag": func(c *call) *fgraph.Variable { return tensor.BlockDiag(tensors(c.name, c.args)...) },
	"vstack":     stacked(0, 2), "hstack": stacked(1, 1), "dstack": stacked(2, 3), "column_stack": columnStack,
	"fill_diagonal": func(c *call) *fgraph.Variable {
		c.count(2)
		x := c.tensor(0, "a")
		return tensor.FillDiagonal(x, tensors(c.name, []value{tensorValue(x), c.need(1, "val")})[1])
	},
	"det":            func(c *call) *fgraph.Variable { c.count(1); return tensor.Det(c.tensor(0, "a")) },
	"matrix_inverse": func(c *call) *fgraph.Variable { c.count(1); return tensor.Inv(c.tensor(0, "a")) },
	"flatnonzero":    func(c *call) *fgraph.Variable { c.count(1); return tensor.Nonzero(flat(c.tensor(0, "a")))[0] },
}

// flat returns x as a vector.
func flat(x *fgraph.Variable) *fgraph.Variable {
	if tensor.TypeOf(x).NDim() == 1 {
		return x
	}
	return tensor.Flatten(x, 1)
}

// pairOf returns the function that applies f to its two arguments, a and b.
func pairOf(f func(x, y *fgraph.Variable) *fgraph.Variable) function {
	return func(c *call) *fgraph.Variable {
		in := c.tensors("a", "b")
		return f(in[0], in[1])
	}
}

// filled returns the function that allocates a tensor with all elements v.
func filled(v float64) function {
	return func(c *call) *fgraph.Variable {
		dtype := c.dtype(-1, array.Float64)
		if n := len(c.args); n > 1 && c.args[n-1].kind == kindName { // zeros((2, 3), 'int64')
			c.count(2)
			dtype, c.args = c.args[n-1].dtype(c.name), c.args[:n-1]
		}
		list := c.args
		if s, ok := c.arg(-1, "shape"); ok {
			c.count(0)
			list = []value{s}
		}
		return tensor.Alloc(tensor.Constant(array.Full(dtype, v)), sizes(c.name, list)...)
	}
}

func full(c *call) *fgraph.Variable {
	c.count(3)
	shape := sizes(c.name, []value{c.need(0, "shape")})
	v := c.tensor(1, "fill_value")
	return tensor.Alloc(tensor.Cast(v, c.dtype(2, tensor.TypeOf(v).DType())), shape...)
}

// filledLike returns the function that fills the shape of a tensor with v.
func filledLike(v float64) function {
	return func(c *call) *fgraph.Variable {
		c.count(2)
		x := c.tensor(0, "x")
		if d := c.dtype(1, tensor.TypeOf(x).DType()); d != tensor.TypeOf(x).DType() {
			return tensor.Second(x, tensor.Constant(array.Full(d, v)))
		}
		return tensor.FillLike(x, v)
	}
}

func fullLike(c *call) *fgraph.Variable {
	c.count(3)
	x, v := c.tensor(0, "a"), c.tensor(1, "fill_value")
	return tensor.Second(x, tensor.Cast(v, c.dtype(2, tensor.TypeOf(x).DType())))
}

func eye(c *call) *fgraph.Variable {
	c.count(4)
	n := c.need(0, "N").size(c.name)
	return tensor.Eye(c.dtype(3, array.Float64), n, c.size(1, "M", n), c.size(2, "k", tensor.Int(0)))
}

// identity returns the identity matrix of a size that is written as a number, as in NumPy. Of
// anything else it is Theano's op, which returns its argument.
func identity(c *call) *fgraph.Variable {
	x, ok := c.arg(0, "n")
	if !ok || x.kind != kindNumber || x.num.dtype != array.Int64 {
		return mapped(array.Identity)(c)
	}
	c.count(2)
	n := x.size(c.name)
	return tensor.Eye(c.dtype(1, array.Float64), n, n, tensor.Int(0))
}

func tri(c *call) *fgraph.Variable {
	c.count(4)
	n := c.need(0, "N").size(c.name)
	return tensor.Tri(c.dtype(3, array.Float64), n, c.size(1, "M", n), c.size(2, "k", tensor.Int(0)))
}

// triangle returns tril or triu.
func triangle(f func(x, k *fgraph.Variable) *fgraph.Variable) function {
	return func(c *call) *fgraph.Variable {
		c.count(2)
		return f(c.tensor(0, "m"), c.size(1, "k", tensor.Int(0)))
	}
}

func diag(c *call) *fgraph.Variable {
	c.count(2)
	return tensor.Diag(c.tensor(0, "v"), c.integer(1, "k", 0))
}

func diagonal(c *call) *fgraph.Variable {
	c.count(4)
	return tensor.Diagonal(c.tensor(0, "a"), c.integer(1, "offset", 0), c.integer(2, "axis1", 0), c.integer(3, "axis2", 1))
}

func trace(c *call) *fgraph.Variable {
	c.count(5)
	x := c.tensor(0, "a")
	// Before the sum: in NumPy the type is also the one to sum in.
	x = tensor.Cast(x, c.dtype(4, tensor.TypeOf(x).DType()))
	return tensor.Trace(x, c.integer(1, "offset", 0), c.integer(2, "axis1", 0), c.integer(3, "axis2", 1))
}

// linspace returns floats unless an element type is named. Integers are rounded down.
func linspace(c *call) *fgraph.Variable {
	c.count(4)
	ends := tensors(c.name, []value{c.need(0, "start"), c.need(1, "stop")})
	y := tensor.Linspace(ends[0], ends[1], c.integer(2, "num", 50), c.flag(3, "endpoint", true))
	dtype, axis := c.dtype(-1, tensor.TypeOf(y).DType()), c.axis(-1, 0)
	if !dtype.IsFloat() && dtype != array.Bool {
		// The cast alone would round toward 0.
		y = tensor.Map(array.Floor, y)
	}
	return tensor.MoveAxes(tensor.Cast(y, dtype), []int{0}, []int{axis})
}

// diff joins what is named prepend and append to the tensor before it takes differences.
func diff(c *call) *fgraph.Variable {
	c.count(5)
	x, n, axis := c.tensor(0, "a"), c.integer(1, "n", 1), c.axis(2, -1)
	axis = tensor.NormalAxes(c.name, x, []int{axis})[0]
	joined := []*fgraph.Variable{x}
	for i, name := range []string{"prepend", "append"} {
		v, ok := c.arg(3+i, name)
		if !ok {
			continue
		}
		y := tensors(c.name, []value{tensorValue(x), v})[1]
		if tensor.TypeOf(y).NDim() == 0 {
			// A number stands for one element in each line along the axis.
			y = tensor.Alloc(y, sizesOf(x, axis)...)
		}
		if name == "append" {
			joined = append(joined, y)
		} else {
			joined = []*fgraph.Variable{y, x}
		}
	}
	if len(joined) > 1 {
		x = tensor.Join(axis, joined...)
	}
	return tensor.Diff(x, n, axis)
}

// stacked returns the function that joins tensors of at least least dimensions along an axis. The
// elements of vectors that hstack joins lie along the first one.
func stacked(axis, least int) function {
	return func(c *call) *fgraph.Variable {
		c.count(1)
		list := c.listOf(0, "tup")
		for i, v := range list {
			list[i] = tensor.AtLeast(v, least)
		}
		if len(list) > 0 && tensor.TypeOf(list[0]).NDim() == 1 {
			return tensor.Join(0, list...)
		}
		return tensor.Join(axis, list...)
	}
}

// columnStack joins vectors as columns, and matrices.
func columnStack(c *call) *fgraph.Variable {
	c.count(1)
	list := c.listOf(0, "tup")
	for i, v := range list {
		if n := tensor.TypeOf(v).NDim(); n < 2 {
			list[i] = tensor.DimShuffle(tensor.AtLeast(v, 1), 0, array.NewAxis)
		}
	}
	return tensor.Join(1, list...)
}

// split is NumPy's, or with n_splits PyTensor's, which takes the sizes of as many parts.
func split(c *call) value {
	n, ok := c.arg(-1, "n_splits")
	if !ok {
		return divide(c, tensor.Split, c.axis(2, 0), 3)
	}
	c.count(3)
	parts, axis := n.integer(c.name), c.axis(2, 0)
	x, where := c.tensor(0, "x"), c.need(1, "splits_size")
	var list []*fgraph.Variable
	if where.kind == kindTensor && tensor.TypeOf(where.v).NDim() == 1 && parts > 0 && parts < tensor.MaxParts {
		// Here the type needn't know how long the vector is, since the number of parts is given.
		for i := range parts {
			list = append(list, tensor.Subtensor(where.v, tensor.At(tensor.Int(i))))
		}
	} else {
		list = sizes(c.name, []value{where})
	}
	if len(list) != parts {
		fail(c.name, "%d sizes for %d parts", len(list), parts)
	}
	return results(tensor.SplitSizes(x, axis, list...))
}

func arraySplit(c *call) value { return divide(c, tensor.ArraySplit, c.axis(2, 0), 3) }

// splitAlong returns split along an axis of tensors with at least axis+1 dimensions. The exception
// is hsplit, which splits vectors, too.
func splitAlong(axis int) func(c *call) value {
	return func(c *call) value {
		n, axis := tensor.TypeOf(c.tensor(0, "ary")).NDim(), axis
		if n == 1 && axis == 1 {
			axis = 0
		} else if n <= max(axis, 1) {
			fail(c.name, "a tensor of %d dimensions", n)
		}
		return divide(c, tensor.Split, axis, 2)
	}
}

// divide cuts a tensor into a number of parts, or at the places in a list.
func divide(c *call, parts func(x *fgraph.Variable, parts, axis int) []*fgraph.Variable, axis, most int) value {
	c.count(most)
	x, where := c.tensor(0, "ary"), c.need(1, "indices_or_sections")
	if where.kind == kindNumber && where.num.dtype == array.Int64 {
		return results(parts(x, where.integer(c.name), axis))
	}
	if where.kind != kindList {
		fail(c.name, "a number of parts or a list of positions is expected")
	}
	return results(tensor.SplitAt(x, axis, sizes(c.name, []value{where})...))
}

func meshgrid(c *call) value {
	indexing := c.text(-1, "indexing", "xy")
	if indexing != "xy" && indexing != "ij" {
		fail(c.name, "the indexing is xy or ij, not %q", indexing)
	}
	vectors := lists.Map(c.args, func(x value) *fgraph.Variable { return x.tensor(c.name) })
	return results(tensor.Meshgrid(indexing == "ij", c.flag(-1, "sparse", false), vectors...))
}

func broadcastArrays(c *call) value {
	if len(c.args) == 0 {
		fail(c.name, "no tensors")
	}
	list := lists.Map(c.args, func(x value) *fgraph.Variable { return x.tensor(c.name) })
	return results(tensor.BroadcastAll(list...))
}

func nonzero(c *call) value {
	c.count(1)
	return indexResults(tensor.Nonzero(c.tensor(0, "a")))
}

// indexResults returns a tuple of results: as an index it is as many indexes.
func indexResults(list []*fgraph.Variable) value {
	x := results(list)
	x.tuple = true
	return x
}

// openMesh returns ix_, which indexes what is in the rows and columns that vectors name.
func openMesh(c *call) value {
	list := make([]*fgraph.Variable, len(c.args))
	for i, x := range c.args {
		list[i] = x.indexTensor(c.name)
		switch t := tensor.TypeOf(list[i]); {
		case t.NDim() != 1:
			fail(c.name, "a %v is no vector", t)
		case t.DType() == array.Bool:
			list[i] = tensor.Nonzero(list[i])[0]
		}
	}
	return indexResults(tensor.Meshgrid(true, true, list...))
}

func slogdet(c *call) value {
	c.count(1)
	sign, log := tensor.SLogDet(c.tensor(0, "a"))
	return results([]*fgraph.Variable{sign, log})
}

// where is nonzero of a condition alone.
func where(c *call) value {
	if len(c.args) == 1 {
		return indexResults(tensor.Nonzero(c.tensor(0, "condition")))
	}
	return tensorValue(mapped(array.Switch)(c))
}

// atLeast returns the function that gives each argument at least n dimensions.
func atLeast(n int) func(c *call) value {
	return func(c *call) value {
		if len(c.args) == 0 {
			fail(c.name, "no tensors")
		}
		list := lists.Map(c.args, func(x value) *fgraph.Variable { return tensor.AtLeast(x.tensor(c.name), n) })
		if len(list) == 1 {
			return tensorValue(list[0])
		}
		return results(list)
	}
}

// pad takes the widths of margins: a number for all, a pair for all dimensions, or a pair for each.
// The constants of the mode constant are given in the same way.
func pad(c *call) *fgraph.Variable {
	c.count(3)
	x := c.tensor(0, "array")
	mode := c.text(2, "mode", "constant")
	n := tensor.TypeOf(x).NDim()
	margins := make([]tensor.Margin, n)
	for d, w := range pairs(c.name, c.need(1, "pad_width"), n) {
		margins[d] = tensor.Margin{Before: w[0].size(c.name), After: w[1].size(c.name)}
	}
	constants, given := c.arg(-1, "constant_values")
	switch {
	case mode != "constant" && given:
		fail(c.name, "constant_values in the mode %s", mode)
	case mode != "constant":
		return tensor.Pad(x, mode, margins...)
	case !given:
		return tensor.PadValue(x, tensor.Int(0), margins...)
	case constants.kind != kindList:
		return tensor.PadValue(x, constants.tensor(c.name), margins...)
	}
	for d, v := range pairs(c.name, constants, n) {
		// One dimension after the other, as in NumPy: a corner has the constant of the last of its dimensions.
		x = padSide(x, v[0].tensor(c.name), d, margins[d].Before, tensor.Int(0))
		x = padSide(x, v[1].tensor(c.name), d, tensor.Int(0), margins[d].After)
	}
	return x
}

// padSide adds a margin to one dimension.
func padSide(x, v *fgraph.Variable, d int, before, after *fgraph.Variable) *fgraph.Variable {
	margins := make([]tensor.Margin, tensor.TypeOf(x).NDim())
	for i := range margins {
		margins[i] = tensor.Margin{Before: tensor.Int(0), After: tensor.Int(0)}
	}
	margins[d] = tensor.Margin{Before: before, After: after}
	return tensor.PadValue(x, v, margins...)
}

// pairs returns a pair for each of n dimensions. A single element is used for both of a pair, and a
// single pair for all dimensions.
func pairs(what string, x value, n int) [][2]value {
	both := func(x value) [2]value {
		switch {
		case x.kind != kindList:
			return [2]value{x, x}
		case len(x.list) == 1:
			return [2]value{x.list[0], x.list[0]}
		case len(x.list) == 2:
			return [2]value{x.list[0], x.list[1]}
		}
		fail(what, "%d elements where a pair is expected", len(x.list))
		return [2]value{}
	}
	list := make([][2]value, n)
	flat := true
	for _, y := range x.list {
		flat = flat && y.kind != kindList
	}
	for d := range list {
		switch {
		case x.kind != kindList || flat:
			list[d] = both(x)
		case len(x.list) == 1:
			list[d] = both(x.list[0])
		case len(x.list) == n:
			list[d] = both(x.list[d])
		default:
			fail(what, "%d pairs for %d dimensions", len(x.list), n)
		}
	}
	return list
}
