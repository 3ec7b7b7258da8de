package lower

import (
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// training are the operators that make a step of training. Their inputs are a rate, how many steps there were, and
// lists: of tensors, of their gradients, and of what is accumulated.
var training = map[string]func(c *call) []*value{
	"ai.onnx.preview.training.Adagrad": func(c *call) []*value {
		rate := tensor.TrueDiv(c.x(0), tensor.Add(c.weighed("decay_factor", 0, tensor.Cast(c.x(1), array.Float32)), tensor.Number(1, c.x(0))))
		return c.steps(3, func(x, g variable, sums []variable) []variable {
			h := tensor.Add(sums[0], tensor.Sqr(g))
			return []variable{tensor.Sub(x, tensor.TrueDiv(tensor.Mul(rate, g), c.root(h))), h}
		})
	},
	"ai.onnx.preview.training.Adam": func(c *call) []*value {
		a, b := c.float("alpha", 0.9), c.float("beta", 0.999)
		rate, t := c.x(0), tensor.Cast(c.x(1), array.Float32)
		one := number(1, rate)
		left := func(f float64) variable { return tensor.Sub(one, tensor.Pow(number(f, t), t)) }
		rate = tensor.Switch(tensor.Map(array.Gt, t, number(0, t)), tensor.TrueDiv(tensor.Mul(rate, tensor.Sqrt(left(b))), left(a)), rate)
		return c.steps(4, func(x, g variable, sums []variable) []variable {
			v := tensor.Add(tensor.Mul(number(a, g), sums[0]), tensor.Mul(number(1-a, g), g))
			h := tensor.Add(tensor.Mul(number(b, g), sums[1]), tensor.Mul(number(1-b, g), tensor.Sqr(g)))
			x = tensor.Sub(x, tensor.TrueDiv(tensor.Mul(rate, v), c.root(h)))
			return []variable{tensor.Mul(number(1-c.float("norm_coefficient_post", 0), x), x), v, h}
		})
	},
	"ai.onnx.preview.training.Momentum": func(c *call) []*value {
		a, rate, t := c.float("alpha", 0), c.x(0), c.x(1)
		b := tensor.Switch(tensor.Map(array.Gt, t, number(0, t)), number(c.float("beta", 0), rate), number(1, rate))
		nesterov := c.text("mode", "standard") == "nesterov"
		return c.steps(3, func(x, g variable, sums []variable) []variable {
			v := tensor.Add(tensor.Mul(number(a, g), sums[0]), tensor.Mul(b, g))
			move := v
			if nesterov {
				move = tensor.Add(g, tensor.Mul(number(a, v), v))
			}
			return []variable{tensor.Sub(x, tensor.Mul(rate, move)), v}
		})
	},
}

// weighed multiplies a tensor by an attribute.
func (c *call) weighed(name string, otherwise float64, x variable) variable {
	return tensor.Mul(number(c.float(name, otherwise), x), x)
}

// root returns the square root, and a little more.
func (c *call) root(h variable) variable {
	return tensor.Add(tensor.Sqrt(h), number(c.float("epsilon", 1e-6), h))
}

// steps makes a step of training for each tensor. The inputs are so many lists one behind the other: tensors,
// gradients, and what is accumulated. An L2 penalty adds a part of a tensor to its gradient.
func (c *call) steps(lists int, step func(x, g variable, sums []variable) []variable) []*value {
	n := (len(c.in) - 2) / lists
	if n < 1 || len(c.in) != 2+n*lists {
		c.fail("%d inputs for %d lists", len(c.in), lists)
	}
	out := make([]*value, n*(lists-1))
	for i := range n {
		var sums []variable
		for k := 2; k < lists; k++ {
			sums = append(sums, c.x(2+k*n+i))
		}
		x := c.x(2 + i)
		// norm_coefficient weighs an L2 penalty, whose gradient is a part of the tensor itself.
		for k, v := range step(x, tensor.Add(c.weighed("norm_coefficient", 0, x), c.x(2+n+i)), sums) {
			out[k*n+i] = c.typed(v, c.elem(2+i))
		}
	}
	return out
}
