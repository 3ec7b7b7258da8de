package lower

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

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
	"Reshape": func(c *call) []*value {
		if dims, ok := c.inferred(); ok {
			return c.like(c.reshapeTo(c.x(0), dims))
		}
		shape := c.ints(1)
		have, all := c.shape(c.x(0)), c.bool("allowzero", false)
		for i, n := range shape {
			if n == 0 && !all && i < len(have) {
				shape[i] = have[i]
			}
		}
		if slices.Contains(shape, -1) && slices.Contains(shape, 0) {
			c.fail("a size that is left open beside one of 0 may be any")
		}
		return c.like(c.reshape(c.x(0), complete(shape, product(have))))
	},
	"Flatten": func(c *call) []*value {
		if dims, ok := c.inferred(); ok {
			return c.like(c.reshapeTo(c.x(0), dims))
		}
		shape := c.shape(c.x(0))
		axis := c.axis(c.int("axis", 1), len(shape)+1)
		if a := c.int("axis", 1); a < 0 {
			axis = a + len(shape)
		}
		return c.like(c.reshape(c.x(0), []int{product(shape[:axis]), product(shape[axis:])}))
	},
	"Squeeze": func(c *call) []*value {
		x := c.x(0)
		if dims, ok := c.inferred(); ok {
			return c.like(c.reshapeTo(x, dims))
		}
		dims := c.dims(x)
		notOne := func(i int) bool { return !dims[i].Is(1) }
		axes := c.axes(c.intsOr(1, slices.DeleteFunc(span(0, ndim(x)), notOne)), ndim(x))
		var rest []ir.Dim
		for i, d := range dims {
			if !slices.Contains(axes, i) {
				rest = append(rest, d)
			} else if n := c.number(d); n != 1 {
				c.fail("axis %d has %d elements", i, n)
			}
		}
		return c.like(c.reshapeTo(x, rest))
	},
	"Unsqueeze": func(c *call) []*value {
		if dims, ok := c.inferred(); ok {
			return c.like(c.reshapeTo(c.x(0), dims))
		}
		axes := c.ints(1)
		axes = c.axes(axes, ndim(c.x(0))+len(axes))
		if c.open != nil { // of which ir does not know the sizes
			return c.like(tensor.ExpandDims(c.x(0), axes...))
		}
		shape := c.shape(c.x(0))
		slices.Sort(axes)
		for _, a := range axes {
			if a > len(shape) {
				c.fail("there is no axis %d", a)
			}
			shape = slices.Insert(shape, a, 1)
		}
		return c.like(c.reshape(c.x(0), shape))
	},
	"Transpose": func(c *call) []*value {
		x := c.x(0)
		perm := c.list("perm")
		if perm == nil {
			perm = span(0, ndim(x))
			slices.Reverse(perm)
		}
		return c.like(tensor.DimShuffle(x, perm...))
	},
	"Concat": func(c *call) []*value {
		var list []variable
		for k := range c.in {
			list = append(list, c.x(k))
		}
		return c.like(tensor.Join(c.axis(c.int("axis", 1), ndim(c.x(0))), list...))
	},
	"Split": func(c *call) []*value {
		x := c.x(0)
		axis := c.axis(c.int("axis", 0), ndim(x))
		n := c.dim(x, axis)
		parts := c.intsOr(1, c.list("split")) // an attribute in opset 1
		if parts == nil {
			count := c.int("num_outputs", c.op.Outputs)
			if count != c.op.Outputs { // also before a list of so many is made
				c.fail("num_outputs is %d, and there are %d", count, c.op.Outputs)
			}
			size, rest := (n+count-1)/count, n
			for range count {
				parts = append(parts, min(size, max(rest, 0)))
				rest -= size
			}
		}
		var out []*value
		at := 0
		for i, size := range parts {
			if size < 0 || size > n-at || i == len(parts)-1 && size != n-at {
				c.fail("parts of sizes %v of %d elements", parts, n)
			}
			out = append(out, c.typed(part(x, axis, tensor.SliceOf(tensor.Int(at), tensor.Int(at+size), 1)), c.elem(0)))
			at += size
		}
		return out
	},
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
			if step == 0 {
				c.fail("a step of 0")
			}
			indexes[axis] = c.slice(x, axis, starts[i], ends[i], step)
		}
		return c.like(tensor.Subtensor(x, indexes...))
	},
	"Expand": func(c *call) []*value {
		x := c.x(0)
		if dims, ok := c.inferred(); ok {
			return c.like(tensor.Alloc(x, c.scalars(dims)...))
		}
		shape := broadcast(c.shape(x), c.ints(1))
		if shape == nil {
			c.fail("%v does not broadcast to %v", c.shape(x), c.ints(1))
		}
		c.bounded(shape)
		return c.like(tensor.Alloc(x, sizes(shape)...))
	},
	"Tile": func(c *call) []*value {
		if _, ok := c.inferred(); ok {
			return c.like(tensor.Tile(c.x(0), c.scalars(c.elements(1))...))
		}
		reps := c.ints(1)
		c.bounded(append(slices.Clone(reps), c.shape(c.x(0))...))
		return c.like(tensor.Tile(c.x(0), sizes(reps)...))
	},
	"ConstantOfShape": func(c *call) []*value {
		v, elem := tensor.Constant(array.Scalar(float32(0))), onnx.Float
		if a := c.attribute("value"); a != nil && a.Tensor != nil {
			t, err := c.tensorOf(a.Tensor, c.dir())
			if err != nil || t.Len() != 1 {
				c.fail("its value: %v", err)
			}
			v, elem = c.reshape(tensor.Constant(t), nil), a.Tensor.DataType
		}
		if dims, ok := c.inferred(); ok {
			return c.out(tensor.Alloc(v, c.scalars(dims)...), elem)
		}
		shape := c.ints(0)
		c.bounded(shape)
		return c.out(tensor.Alloc(v, sizes(shape)...), elem)
	},
	"Range": func(c *call) []*value {
		if v := c.rangeOfSizes(); v != nil {
			return c.out(v, c.elem(0))
		}
		from, to, step := c.one(0), c.one(1), c.one(2)
		if step == 0 {
			c.fail("a step of 0")
		}
		count := math.Ceil((to - from) / step)
		if !(count <= maxMade) {
			c.fail("%w: %g numbers", ErrUnsupported, count)
		}
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
	"DepthToSpace": func(c *call) []*value {
		x, s, b := c.x(0), c.image(), c.block()
		depth := c.quotient(s[1], b.Times(b))
		y := tensor.DimShuffle(c.reshapeTo(x, []ir.Dim{s[0], b, b, depth, s[2], s[3]}), 0, 3, 4, 1, 5, 2)
		if c.text("mode", "DCR") == "CRD" {
			y = tensor.DimShuffle(c.reshapeTo(x, []ir.Dim{s[0], depth, b, b, s[2], s[3]}), 0, 1, 4, 2, 5, 3)
		}
		return c.like(c.reshapeTo(y, []ir.Dim{s[0], depth, s[2].Times(b), s[3].Times(b)}))
	},
	"SpaceToDepth": func(c *call) []*value {
		x, s, b := c.x(0), c.image(), c.block()
		height, width := c.quotient(s[2], b), c.quotient(s[3], b)
		y := tensor.DimShuffle(c.reshapeTo(x, []ir.Dim{s[0], s[1], height, b, width, b}), 0, 3, 5, 1, 2, 4)
		return c.like(c.reshapeTo(y, []ir.Dim{s[0], s[1].Times(b).Times(b), height, width}))
	},
	"Pad": func(c *call) []*value {
		x := c.x(0)
		pads := c.intsOr(1, nil)
		n := ndim(x)
		axes := c.axes(c.intsOr(3, span(0, n)), n)
		if len(pads) != 2*len(axes) {
			c.fail("%d numbers of padding for %d dimensions", len(pads), len(axes))
		}
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
			return c.like(tensor.Pad(x, tensor.PadMode(mode), margins...))
		}
	},
	"CenterCropPad": (*call).centerCropPad,
	"AffineGrid":    (*call).affineGrid,
	"EyeLike": func(c *call) []*value {
		s := c.shape(c.x(0))
		if len(s) != 2 {
			c.fail("%d dimensions", len(s))
		}
		elem := onnx.DataType(c.int("dtype", int(c.elem(0))))
		return c.out(tensor.Eye(array.Float64, tensor.Int(s[0]), tensor.Int(s[1]), tensor.Int(c.int("k", 0))), elem)
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

// complete replaces -1 in a shape by what is left of so many elements.
func complete(shape []int, elements int) []int {
	at, rest := slices.Index(shape, -1), 1
	for _, n := range shape {
		if n != -1 {
			rest *= n
		}
	}
	shape = slices.Clone(shape)
	if at >= 0 && rest > 0 {
		shape[at] = elements / rest
	} else if at >= 0 {
		// Beside a size of 0 any size would do.
		shape[at] = 0
	}
	return shape
}

// broadcast returns the shape that two shapes have in common, nil if there is none.
func broadcast(a, b []int) []int {
	if len(a) < len(b) {
		a, b = b, a
	}
	shape := slices.Clone(a)
	for i, n := range b {
		k := len(a) - len(b) + i
		switch {
		case n == shape[k] || n == 1:
		case shape[k] == 1:
			shape[k] = n
		default:
			return nil
		}
	}
	if shape == nil {
		shape = []int{}
	}
	return shape
}

// image returns the sizes of the first input, which is a batch of images.
func (c *call) image() []ir.Dim {
	s := c.dims(c.x(0))
	if len(s) != 4 {
		c.fail("an image of shape %v", s)
	}
	return s
}

// block returns the size of blocks of an image.
func (c *call) block() ir.Dim {
	b := c.int("blocksize", 1)
	if b <= 0 {
		c.fail("blocks of %d", b)
	}
	return ir.Known(int64(b))
}

// quotient divides a size, which has to be a multiple.
func (c *call) quotient(d, by ir.Dim) ir.Dim {
	q, ok := d.Exactly(by)
	switch _, number := d.Number(); {
	case !ok && number:
		c.fail("%v is no multiple of %v", d, by)
	case !ok:
		c.fail("%w: whether %v is a multiple of %v", ErrSizes, d, by)
	}
	return q
}

// maxMade bounds the elements of a tensor that a node makes of a shape.
const maxMade = 1 << 26

// bounded fails for a shape of too many elements.
func (c *call) bounded(shape []int) {
	n := 1
	for _, s := range shape {
		if s < 0 || s > maxMade || n*max(s, 1) > maxMade {
			c.fail("%w: a tensor of shape %v", ErrUnsupported, shape)
		}
		n *= max(s, 1)
	}
}
