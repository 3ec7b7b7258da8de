package lower

import (
	"math"

	"github.com/nnopt/nnopt/onnx"
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
