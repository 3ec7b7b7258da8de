package lower

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

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
