package lower

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/internal/lists"
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
	// The indexed dimension comes first, and the new ones go back to its place.
	first := tensor.MoveAxes(x, []int{axis}, []int{0})
	at := c.dims(c.x(1))
	y := tensor.Take(first, c.reshapeTo(indexes, []ir.Dim{together(at)}))
	dims = slices.Delete(slices.Clone(dims), axis, axis+1)
	y = c.reshapeTo(y, append(at, dims...))
	var from, to []int
	for i := range at {
		from, to = append(from, i), append(to, axis+i)
	}
	return tensor.MoveAxes(y, from, to)
}

// index makes indexes that count from the end count from the beginning.
func (c *call) index(v variable, n ir.Dim) variable {
	v = tensor.Cast(v, array.Int64)
	if tensor.Nonnegative(v) {
		return v
	}
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

// scatterND lowers ScatterND. Reductions that an incremented part does not have are a routine.
func (c *call) scatterND() []*value {
	r := c.oneOf("reduction", "none", "none", "add", "mul", "min", "max")
	if r == "none" || r == "add" {
		return c.like(tensor.ScatterND(c.x(0), c.integers(1), c.x(2), r == "add"))
	}
	x, at, y := c.shape(c.x(0)), c.shape(c.x(1)), c.shape(c.x(2))
	k := len(at) - 1
	if k < 0 || at[k] < 1 || at[k] > len(x) || !slices.Equal(y, append(slices.Clone(at[:k]), x[at[k]:]...)) {
		c.fail("indexes of shape %v and updates of shape %v for %v", at, y, x)
	}
	return c.reduceInto(scatter{Axis: -1, Reduction: r}, c.integers(1))
}

func (c *call) scatterElements() []*value {
	axis := c.axis(c.int("axis", 0), ndim(c.x(0)))
	r := c.oneOf("reduction", "none", "none", "add", "mul", "min", "max")
	if r == "none" || r == "add" {
		return c.like(tensor.ScatterElements(c.x(0), c.index(c.x(1), c.dims(c.x(0))[axis]), c.x(2), axis, r == "add"))
	}
	x, at, y := c.shape(c.x(0)), c.shape(c.x(1)), c.shape(c.x(2))
	c.failIf(!slices.Equal(at, y) || len(at) != len(x), "indexes of shape %v and updates of shape %v for %v", at, y, x)
	for d, n := range at {
		c.failIf(d != axis && n > x[d], "indexes of shape %v for %v", at, x)
	}
	return c.reduceInto(scatter{Axis: axis, Reduction: r}, c.integers(1))
}

type scatter struct {
	Axis      int // of elements, or -1 for parts
	Reduction string
}

func (c *call) reduceInto(p scatter, at variable) []*value {
	d := wide(c.x(0))
	in := []variable{tensor.Cast(c.x(0), d), at, tensor.Cast(c.x(2), d)}
	return c.like(routine(c, "Scatter", scattered, p, in, tensor.NewType(d, c.shape(c.x(0))...))[0])
}

// scattered combines elements of an array with those of another one.
func scattered(p scatter, in []*array.Array) ([]*array.Array, error) {
	y := in[0].Clone()
	places, size, err := p.places(y.Shape(), in[1])
	if err != nil {
		return nil, err
	}
	if y.DType() == array.Int64 {
		combine(array.Slice[int64](y), array.Slice[int64](in[2]), places, size, p.Reduction)
	} else {
		combine(array.Slice[float64](y), array.Slice[float64](in[2]), places, size, p.Reduction)
	}
	return []*array.Array{y}, nil
}

func combine[T int64 | float64](y, x []T, places []int, size int, reduction string) {
	for i, place := range places {
		for k := range size {
			at, v := &y[place+k], x[i*size+k]
			switch reduction {
			case "mul":
				*at *= v
			case "min":
				*at = min(*at, v)
			case "max":
				*at = max(*at, v)
			}
		}
	}
}

// places returns where the parts that indexes name begin, and how many elements each has.
func (p scatter) places(shape []int, indexes *array.Array) (places []int, size int, err error) {
	at := array.Slice[int64](indexes)
	if p.Axis < 0 {
		k := indexes.Dim(indexes.NDim() - 1)
		size = product(shape[k:])
		for i := 0; i < len(at); i += k {
			place := 0
			for d, v := range at[i:][:k] {
				if place, err = step(place, v, shape[d]); err != nil {
					return nil, 0, err
				}
			}
			places = append(places, place*size)
		}
		return places, size, nil
	}
	own := make([]int, len(shape)) // the place of an index among indexes
	for _, v := range at {
		place := 0
		for d, n := range shape {
			k := int64(own[d])
			if d == p.Axis {
				k = v
			}
			if place, err = step(place, k, n); err != nil {
				return nil, 0, err
			}
		}
		places = append(places, place)
		for d := len(own) - 1; d >= 0; d-- {
			if own[d]++; own[d] < indexes.Dim(d) {
				break
			}
			own[d] = 0
		}
	}
	return places, 1, nil
}

// step goes from a place to one in a further dimension, whose index may count from the end.
func step(place int, i int64, n int) (int, error) {
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i >= int64(n) {
		return 0, fmt.Errorf("%w: %d of %d", array.ErrIndex, i, n)
	}
	return place*n + int(i), nil
}

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
