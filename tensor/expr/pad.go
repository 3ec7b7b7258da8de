package expr

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
)

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
		return tensor.Pad(x, tensor.PadMode(mode), margins...)
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
