package lower

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

var indexing = map[string]func(c *call) []*value{
	"Gather": func(c *call) []*value { return c.like(c.gather(c.x(0), c.axis(c.int("axis", 0), ndim(c.x(0))))) },
	"GatherElements": func(c *call) []*value {
		axis := c.axis(c.int("axis", 0), ndim(c.x(0)))
		return c.like(tensor.GatherElements(c.x(0), c.index(c.x(1), c.dims(c.x(0))[axis]), axis))
	},
	"GatherND": func(c *call) []*value {
		if c.int("batch_dims", 0) == 0 {
			return c.like(tensor.GatherND(c.x(0), tensor.Cast(c.x(1), array.Int64)))
		}
		return c.like(c.gatherBatches(c.int("batch_dims", 0)))
	},
	"Scatter":         (*call).scatterElements,
	"ScatterElements": (*call).scatterElements,
	"ScatterND":       (*call).scatterND,
	"Unique":          (*call).unique,
	"TfIdfVectorizer": (*call).tfidf,
	"OneHot": func(c *call) []*value {
		depth := int(c.one(1))
		if c.open == nil { // else a call knows
			c.bounded(append([]int{depth}, c.shape(c.x(0))...))
		}
		x := c.index(tensor.Cast(c.x(0), array.Int64), ir.Known(int64(depth)))
		axis := c.axis(c.int("axis", -1), ndim(x)+1)
		classes := slices.Repeat([]int{1}, ndim(x)+1)
		classes[axis] = depth
		range_ := c.reshape(arange(depth), classes)
		is := tensor.Map(array.Eq, tensor.ExpandDims(x, axis), range_)
		values := c.x(2)
		return c.out(tensor.Switch(is, tensor.Subtensor(values, tensor.At(tensor.Int(1))), tensor.Subtensor(values, tensor.At(tensor.Int(0)))), c.elem(2))
	},
	"TopK": func(c *call) []*value {
		x := c.x(0)
		k := int(c.one(1))
		axis := c.axis(c.int("axis", -1), ndim(x))
		values, places := tensor.TopK(x, tensor.Int(k), axis, c.bool("largest", true))
		return []*value{c.typed(values, c.elem(0)), c.typed(places, onnx.Int64)}
	},
	"NonZero": func(c *call) []*value {
		x := c.x(0)
		if ndim(x) == 0 {
			x = c.reshape(x, []int{1})
			y := tensor.Stack(0, tensor.Nonzero(x)...)
			return c.out(tensor.Subtensor(y, tensor.SliceOf(tensor.Int(0), tensor.Int(0), 1)), onnx.Int64)
		}
		return c.out(tensor.Stack(0, tensor.Nonzero(x)...), onnx.Int64)
	},
	"Compress": func(c *call) []*value {
		x := c.x(0)
		axis := 0
		if c.attribute("axis") != nil {
			axis = c.axis(c.int("axis", 0), ndim(x))
		} else {
			x = c.flat(x)
		}
		list := c.array(1)
		var at []int64
		for i := range list.Len() {
			if list.Float(i) != 0 {
				at = append(at, int64(i))
			}
		}
		return c.like(takeAlong(x, axis, at))
	},
	"Trilu": func(c *call) []*value {
		x, k := c.x(0), 0
		if c.has(1) {
			k = int(c.one(1))
		}
		n := ndim(x)
		c.failIf(n < 2, "%d dimensions", n)
		sizes := c.scalars(c.dims(x))
		upper := c.bool("upper", true)
		rows, columns := tensor.ARange(tensor.Int(0), sizes[n-2], tensor.Int(1)), tensor.ARange(tensor.Int(0), sizes[n-1], tensor.Int(1))
		d := tensor.Sub(tensor.DimShuffle(columns, -1, 0), tensor.DimShuffle(rows, 0, -1))
		keep := tensor.Map(array.Ge, d, number(float64(k), d))
		if !upper {
			keep = tensor.Map(array.Le, d, number(float64(k), d))
		}
		return c.like(tensor.Switch(keep, x, number(0, x)))
	},
	"ReverseSequence": func(c *call) []*value {
		x := c.x(0)
		batch, time := c.axis(c.int("batch_axis", 1), ndim(x)), c.axis(c.int("time_axis", 0), ndim(x))
		y := tensor.MoveAxes(x, []int{batch, time}, []int{0, 1})
		shape, lengths := c.shape(y), c.ints(1)
		c.failIf(len(lengths) != shape[0] || batch == time, "%d lengths for %d items", len(lengths), shape[0])
		at := make([]int64, 0, shape[0]*shape[1])
		for b, n := range lengths {
			for t := range shape[1] {
				if t < n {
					t = n - 1 - t
				}
				at = append(at, int64(b*shape[1]+t))
			}
		}
		flat := c.reshape(y, append([]int{shape[0] * shape[1]}, shape[2:]...))
		y = c.reshape(tensor.Take(flat, tensor.Constant(array.Of(at, len(at)))), shape)
		return c.like(tensor.MoveAxes(y, []int{0, 1}, []int{batch, time}))
	},
}

// gather takes what input 1 says of a tensor along an axis.
func (c *call) gather(x variable, axis int) variable {
	dims := c.dims(x)
	indexes := c.index(c.x(1), dims[axis])
	n := ndim(indexes)
	// The indexed dimension comes first, and the new ones go back to its place.
	first := tensor.MoveAxes(x, []int{axis}, []int{0})
	at := c.dims(c.x(1))
	y := tensor.Take(first, c.reshapeTo(indexes, []ir.Dim{together(at)}))
	dims = slices.Delete(slices.Clone(dims), axis, axis+1)
	y = c.reshapeTo(y, append(at, dims...))
	var from, to []int
	for i := range n {
		from, to = append(from, i), append(to, axis+i)
	}
	if n > 0 {
		return tensor.MoveAxes(y, from, to)
	}
	return c.reshapeTo(y, dims)
}

// index makes indexes that count from the end count from the beginning.
func (c *call) index(v variable, n ir.Dim) variable {
	v = tensor.Cast(v, array.Int64)
	count := tensor.PadLeft(c.size(n), ndim(v))
	if k, ok := n.Number(); ok {
		count = number(float64(k), v)
	}
	return tensor.Switch(tensor.Map(array.Lt, v, number(0, v)), tensor.Add(v, count), v)
}

// takeAlong takes elements along a dimension.
func takeAlong(x variable, d int, list []int64) variable {
	first := tensor.MoveAxes(x, []int{d}, []int{0})
	return tensor.MoveAxes(tensor.Take(first, tensor.Constant(array.Of(list, len(list)))), []int{0}, []int{d})
}

// flat makes a vector of a tensor.
func (c *call) flat(v variable) variable { return c.reshape(v, []int{product(c.shape(v))}) }

// gatherBatches is GatherND for each item of some first dimensions.
func (c *call) gatherBatches(dims int) variable {
	x, at := c.x(0), tensor.Cast(c.x(1), array.Int64)
	xs, as := c.shape(x), c.shape(at)
	if dims < 0 || dims >= len(xs) || dims >= len(as) || !slices.Equal(xs[:dims], as[:dims]) {
		c.fail("%d first dimensions of %v and %v", dims, xs, as)
	}
	n := product(xs[:dims])
	// The number of the item becomes one more index.
	item := c.reshape(arange(n), append([]int{n}, slices.Repeat([]int{1}, len(as)-dims)...))
	flat := c.reshape(at, append([]int{n}, as[dims:]...))
	one := slices.Clone(c.shape(flat))
	one[len(one)-1] = 1
	items := tensor.Alloc(item, sizes(one)...)
	y := tensor.GatherND(c.reshape(x, append([]int{n}, xs[dims:]...)), tensor.Join(len(one)-1, items, flat))
	return c.reshape(y, append(slices.Clone(xs[:dims]), c.shape(y)[1:]...))
}
