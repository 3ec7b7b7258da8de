package lower

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
)

// The operators that cut tensors, join them and pad them.
var slicing = map[string]func(c *call) []*value{
	"Slice": func(c *call) []*value {
		x := c.x(0)
		starts, ends := c.elements(1), c.elements(2)
		axes := c.intsOr(3, span(0, len(starts)))
		steps := c.intsOr(4, slices.Repeat([]int{1}, len(starts)))
		indexes := slices.Repeat([]tensor.Index{tensor.Everything()}, ndim(x))
		if len(ends) != len(starts) || len(axes) != len(starts) || len(steps) != len(starts) {
			c.fail("%d starts, %d ends and %d axes", len(starts), len(ends), len(axes))
		}
		for i, axis := range c.axes(axes, ndim(x)) {
			step := steps[i]
			c.failIf(step == 0, "a step of 0")
			indexes[axis] = c.slice(x, axis, starts[i], ends[i], step)
		}
		return c.like(tensor.Subtensor(x, indexes...))
	},
	"Split": func(c *call) []*value {
		x := c.x(0)
		axis := c.axis(c.int("axis", 0), ndim(x))
		var out []*value
		at, n := 0, c.dim(x, axis)
		for k, t := range c.results(1) {
			dims, _ := c.computable(t)
			size := c.number(dims[axis])
			// Sizes may be so large that their sum is no number.
			c.failIf(size > n-at, "part %d has %d elements, of %d that are left", k, size, n-at)
			out = append(out, c.typed(part(x, axis, tensor.SliceOf(tensor.Int(at), tensor.Int(at+size), 1)), c.elem(0)))
			at += size
		}
		return out
	},
	"Concat": func(c *call) []*value {
		var list []variable
		for k := range c.in {
			list = append(list, c.x(k))
		}
		return c.like(tensor.Join(c.axis(c.int("axis", 1), ndim(c.x(0))), list...))
	},
	"Pad": func(c *call) []*value {
		x := c.x(0)
		pads := c.intsOr(1, nil)
		n := ndim(x)
		axes := c.axes(c.intsOr(3, span(0, n)), n)
		c.failIf(len(pads) != 2*len(axes), "%d numbers of padding for %d dimensions", len(pads), len(axes))
		before, after := make([]int, n), make([]int, n)
		for i, a := range axes {
			before[a], after[a] = pads[i], pads[i+len(axes)]
		}
		// Negative padding cuts off.
		cut, margins := make([]tensor.Index, n), make([]tensor.Margin, n)
		for i := range n {
			if cut[i] = tensor.Everything(); before[i] >= 0 && after[i] >= 0 {
				margins[i] = tensor.Margin{Before: tensor.Int(before[i]), After: tensor.Int(after[i])}
				continue
			}
			size := c.dim(x, i)
			if before[i] < -size || after[i] < -size || min(before[i], 0)+min(after[i], 0) < -size {
				c.fail("padding of %d and %d elements cuts off more than the %d of dimension %d", before[i], after[i], size, i)
			}
			cut[i] = tensor.SliceOf(tensor.Int(max(0, -before[i])), tensor.Int(size-max(0, -after[i])), 1)
			margins[i] = tensor.Margin{Before: tensor.Int(max(0, before[i])), After: tensor.Int(max(0, after[i]))}
		}
		x = tensor.Subtensor(x, cut...)
		switch mode := c.text("mode", "constant"); mode {
		case "constant":
			v := number(0, x)
			if c.has(2) {
				v = tensor.Cast(c.reshape(c.x(2), nil), tensor.TypeOf(x).DType())
			}
			return c.like(tensor.PadValue(x, v, margins...))
		default:
			return c.like(tensor.Pad(x, mode, margins...))
		}
	},
}

// slice returns what Slice selects of an axis.
func (c *call) slice(x variable, axis int, start, end ir.Dim, step int) tensor.Index {
	first, known := start.Number()
	last, ends := end.Number()
	if n := tensor.TypeOf(x).Dim(axis); c.open != nil && (n == tensor.Unknown || !known || !ends) {
		switch {
		case step > 0 && ends && last >= math.MaxInt32: // as files say that there is no end
			return tensor.SliceOf(c.size(start), nil, step)
		case step > 0: // as in NumPy
			return tensor.SliceOf(c.size(start), c.size(end), step)
		case known && first == -1 && ends && last <= math.MinInt32:
			// All of the dimension backwards is the one step back that needs no size.
			return tensor.SliceOf(nil, nil, step)
		}
		c.fail("%w: a slice from %v to %v with the step %d", ErrSizes, start, end, step)
	}
	n, from, to := c.dim(x, axis), int(first), int(last)
	if from < 0 {
		from += n
	}
	if to < 0 {
		// No further than -1, the place in front of all, at which a step back ends.
		to = max(to, -n-1) + n
	}
	if step > 0 {
		from, to = min(max(from, 0), n), min(max(to, 0), n)
		return tensor.SliceOf(tensor.Int(from), tensor.Int(max(to, from)), step)
	}
	// Unlike in NumPy, a start in front of all is the first element.
	from, to = min(max(from, 0), n-1), min(max(to, -1), n-1)
	switch {
	case from <= to:
		return tensor.SliceOf(tensor.Int(0), tensor.Int(0), 1)
	case to < 0:
		return tensor.SliceOf(tensor.Int(from), nil, step)
	}
	return tensor.SliceOf(tensor.Int(from), tensor.Int(to), step)
}

// bound returns an index that may count from the end, within 0 and n.
func bound(i, n int) int {
	if i < 0 {
		i += n
	}
	return min(max(i, 0), n)
}
