package lower

import (
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// The operators that tell shapes, or make tensors of them.
var shapes = map[string]func(c *call) []*value{
	"Shape": func(c *call) []*value {
		x := c.x(0)
		n := ndim(x)
		from, to := bound(c.int("start", 0), n), bound(c.int("end", n), n)
		list := make([]variable, 0, n)
		for i := from; i < to; i++ {
			if c.open != nil && tensor.TypeOf(x).Dim(i) == tensor.Unknown {
				list = append(list, tensor.ShapeI(x, i))
			} else {
				list = append(list, tensor.Int(c.dim(x, i)))
			}
		}
		return []*value{{v: tensor.SizeVector(list...), elem: onnx.Int64}}
	},
	"Size": func(c *call) []*value {
		return []*value{{v: tensor.Constant(array.Scalar(int64(product(c.shape(c.x(0)))))), elem: onnx.Int64}}
	},
	"Expand": func(c *call) []*value { return c.like(tensor.Alloc(c.x(0), c.scalars(c.made(1))...)) },
	"Tile": func(c *call) []*value {
		c.made(1) // which is known, and not too large
		return c.like(tensor.Tile(c.x(0), c.scalars(c.elements(1))...))
	},
	"ConstantOfShape": func(c *call) []*value {
		v, elem := tensor.Constant(array.Scalar(float32(0))), onnx.Float
		if a := c.attribute("value"); a != nil && a.Tensor != nil {
			t, err := c.tensorOf(a.Tensor, c.dir())
			c.failIf(err != nil || t.Len() != 1, "its value: %v", err)
			v, elem = c.reshape(tensor.Constant(t), nil), a.Tensor.DataType
		}
		return c.out(tensor.Alloc(v, c.scalars(c.made(0))...), elem)
	},
	"Range": func(c *call) []*value {
		if v := c.rangeOfSizes(); v != nil {
			return c.out(v, c.elem(0))
		}
		from, to, step := c.one(0), c.one(1), c.one(2)
		c.failIf(step == 0, "a step of 0")
		count := math.Ceil((to - from) / step)
		c.failIf(!(count <= maxMade), "%w: %g numbers", ErrUnsupported, count)
		n := max(0, int(count))
		a := array.New(tensor.TypeOf(c.x(0)).DType(), n)
		for i := range n {
			if a.DType().IsFloat() {
				a.SetFloat(i, from+float64(float64(i)*step))
			} else {
				a.SetInt(i, int64(from)+int64(i)*int64(step))
			}
		}
		return c.out(tensor.Constant(a), c.elem(0))
	},
	"AffineGrid": (*call).affineGrid,
	"EyeLike": func(c *call) []*value {
		s := c.madeShape()
		elem := onnx.DataType(c.int("dtype", int(c.elem(0))))
		return c.out(tensor.Eye(array.Float64, tensor.Int(s[0]), tensor.Int(s[1]), tensor.Int(c.int("k", 0))), elem)
	},
}

// rangeOfSizes returns a range of integers that are computed of sizes, nil if the graph is not for any sizes.
func (c *call) rangeOfSizes() variable {
	if _, ok := c.inferred(); !ok || tensor.TypeOf(c.x(0)).DType().IsFloat() {
		return nil
	}
	var bounds [3]variable
	for k := range bounds {
		list := c.elements(k)
		if len(list) != 1 {
			return nil
		}
		bounds[k] = c.size(list[0])
	}
	return tensor.ARange(bounds[0], bounds[1], bounds[2])
}

// maxMade bounds the elements of a tensor that a node makes of a shape.
const maxMade = 1 << 26

// bounded fails for a shape of too many elements.
func (c *call) bounded(shape []int) {
	n := 1
	for _, s := range shape {
		c.failIf(s < 0 || s > maxMade || n*max(s, 1) > maxMade, "%w: a tensor of shape %v", ErrUnsupported, shape)
		n *= max(s, 1)
	}
}

// The operators that keep all elements and give them another shape or order.
var reshapes = map[string]func(c *call) []*value{
	"Reshape": reshaping(1), "Flatten": reshaping(), "Squeeze": reshaping(1), "Unsqueeze": reshaping(1),
	"Transpose": func(c *call) []*value {
		x := c.x(0)
		perm := c.list("perm")
		if perm == nil {
			perm = span(0, ndim(x))
			slices.Reverse(perm)
		}
		return c.like(tensor.DimShuffle(x, perm...))
	},
	"DepthToSpace": func(c *call) []*value {
		x, s, y, b := c.x(0), c.dims(c.x(0)), c.result(), c.block()
		blocks := tensor.DimShuffle(c.reshapeTo(x, []ir.Dim{s[0], b, b, y[1], s[2], s[3]}), 0, 3, 4, 1, 5, 2)
		if c.text("mode", "DCR") == "CRD" {
			blocks = tensor.DimShuffle(c.reshapeTo(x, []ir.Dim{s[0], y[1], b, b, s[2], s[3]}), 0, 1, 4, 2, 5, 3)
		}
		return c.like(c.reshapeTo(blocks, y))
	},
	"SpaceToDepth": func(c *call) []*value {
		x, s, y, b := c.x(0), c.dims(c.x(0)), c.result(), c.block()
		blocks := tensor.DimShuffle(c.reshapeTo(x, []ir.Dim{s[0], s[1], y[2], b, y[3], b}), 0, 3, 5, 1, 2, 4)
		return c.like(c.reshapeTo(blocks, y))
	},
}

// reshaping lowers an operator that gives its input another shape, which the values of some inputs say.
func reshaping(values ...int) func(c *call) []*value {
	return func(c *call) []*value { return c.like(c.reshapeTo(c.x(0), c.result(values...))) }
}

// block returns the size of blocks of an image.
func (c *call) block() ir.Dim { return ir.Known(c.op.Int("blocksize", 1)) }

// hasBody reports whether an op can be computed by others.
func hasBody(op *ir.Op) bool { return op.Operator() != nil && op.Operator().Body != nil }

// types returns the operators whose types are known.
func (l *lowering) types() *ir.Operators {
	switch {
	case l.options.Types != nil:
	case l.source != nil:
		l.options.Types = l.source.Operators
	default:
		l.options.Types = ir.Standard()
	}
	return l.options.Types
}

// expanded lowers what an op is made of. Some inputs are left out.
func (c *call) expanded(without ...int) ([]*value, error) {
	s := newScope(nil)
	inputs := make([]*fgraph.Variable, len(c.in))
	for k, x := range c.in {
		if slices.Contains(without, k) {
			x = nil
		}
		v, err := c.standIn(k, x)
		if err != nil {
			return nil, err
		}
		inputs[k], s.values[v] = v, x
	}
	results, applies, err := c.types().Expand(c.op, inputs)
	if err != nil {
		if c.open != nil {
			return nil, fmt.Errorf("%w: %w", ErrSizes, err)
		}
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	for _, a := range applies {
		part := &call{lowering: c.lowering, op: a.Op().(*ir.Op), apply: a, scope: s}
		out, err := part.lower()
		if err != nil {
			return nil, fmt.Errorf("its part %s: %w", part.op.Name(), err)
		}
		for k, v := range a.Outputs() {
			if s.values[v] = out[k]; c.open != nil {
				c.open.note(out[k].v, ir.TypeOf(v))
			}
		}
	}
	out := make([]*value, len(results))
	for k, v := range results {
		if v != nil {
			out[k], _ = c.of(v, s)
		}
	}
	return out, nil
}

// parts is expanded, and fails where that returns an error.
func (c *call) parts(without ...int) []*value {
	out, err := c.expanded(without...)
	c.failIf(err != nil, "%w", err)
	return out
}

// standIn returns a variable for an input of the op, with all that is known of it: nothing has been inferred of a node
// alone, and less of sizes that are known now.
func (c *call) standIn(k int, x *value) (*fgraph.Variable, error) {
	if x == nil {
		return ir.Missing(), nil
	}
	if x.v == nil {
		return nil, fmt.Errorf("%w: input %d is no tensor", ErrUnsupported, k)
	}
	// Constants stay such, since what an op is made of may depend on their elements.
	if c.apply != nil && c.apply.Inputs()[k].IsConstant() {
		return c.apply.Inputs()[k], nil
	}
	if a := tensor.ConstantOf(x.v); a != nil {
		t, err := TensorOf("", a, x.elem)
		return ir.Constant(ir.NewValue(t, ""), ""), err
	}
	t := ir.NewType(x.elem, c.dims(x.v)...)
	if c.apply != nil {
		if both, ok := t.Meet(ir.TypeOf(c.apply.Inputs()[k])); ok {
			t = both
		}
	}
	return fgraph.NewInput(t, ""), nil
}

// groupQuery lowers GroupQueryAttention. Nearly always the keys of all items fill the buffer of the past. Then lengths say
// nothing, and new keys are joined to those of the past. A graph for any sizes provides that they do.
func (c *call) groupQuery() []*value {
	length := c.dims(c.x(0))[1]
	past := ir.Known(0)
	if c.has(3) {
		past = c.dims(c.x(3))[2]
	}
	all := c.size(past.Plus(length))
	full := tensor.Map(array.Eq, c.reshape(c.integers(6), nil), all)
	if !past.Is(0) || !c.bool("causal", true) {
		ends := tensor.Add(c.integers(5), tensor.Int(1))
		full = tensor.Mul(full, reduceAll(array.Min, tensor.Map(array.Eq, ends, all)))
	}
	var left []int
	if c.open != nil {
		left = []int{5, 6}
		q := *c.in[0]
		q.v = tensor.Assert(q.v, "GroupQueryAttention: the past has as many entries as its buffer", full)
		c.open.note(q.v, ir.TypeOf(c.apply.Inputs()[0]))
		c.in = append([]*value{&q}, c.in[1:]...)
	} else if a, err := c.valueOf(full); err != nil {
		c.fail("lengths: %w", err)
	} else if a.Float(0) != 0 {
		left = []int{5, 6}
	}
	return c.parts(left...)
}

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
		return c.like(tensor.Join(c.axis(c.int("axis", 1), ndim(c.x(0))), c.xs()...))
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
