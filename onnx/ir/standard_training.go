package ir

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// training is the domain of operators that train, which were never final.
const training = "ai.onnx.preview.training"

// standardTraining are operators that train. The inputs of optimizers are a rate, how many steps there were, and lists of
// tensors, of their gradients, and of what is accumulated; the results are new tensors and what is accumulated.
var standardTraining = slices.Concat(
	[]Operator{
		{Domain: training, Type: "Adagrad", MinInputs: 3, MaxInputs: -1, Body: func(b *Builder) []variable {
			rate := b.div(b.x(0), b.add(b.mul(b.cast(b.x(1), onnx.Float), b.float("decay_factor", 0)), 1))
			return b.steps(3, func(x, g variable, sums []variable) []variable {
				h := b.add(sums[0], b.mul(g, g))
				return []variable{b.sub(x, b.div(b.mul(g, rate), b.rooted(h))), h}
			})
		}},
		{Domain: training, Type: "Adam", MinInputs: 3, MaxInputs: -1, Body: func(b *Builder) []variable {
			alpha, beta := b.float("alpha", 0.9), b.float("beta", 0.999)
			rate, t := b.x(0), b.cast(b.x(1), onnx.Float)
			left := func(f float64) variable { return b.sub(scalarOf(1), b.Do("Pow", scalarOf(f), t)) }
			rate = b.Do("Where", b.Do("Greater", t, 0), b.div(b.mul(rate, b.Do("Sqrt", left(beta))), left(alpha)), rate)
			return b.steps(4, func(x, g variable, sums []variable) []variable {
				v := b.add(b.mul(sums[0], alpha), b.mul(g, 1-alpha))
				h := b.add(b.mul(sums[1], beta), b.mul(b.mul(g, g), 1-beta))
				x = b.sub(x, b.div(b.mul(v, rate), b.rooted(h)))
				return []variable{b.mul(x, 1-b.float("norm_coefficient_post", 0)), v, h}
			})
		}},
		{Domain: training, Type: "Momentum", MinInputs: 3, MaxInputs: -1, Body: func(b *Builder) []variable {
			alpha, rate := b.float("alpha", 0), b.x(0)
			beta := b.Do("Where", b.Do("Greater", b.x(1), 0), scalarOf(b.float("beta", 0)), scalarOf(1))
			return b.steps(3, func(x, g variable, sums []variable) []variable {
				v := b.add(b.mul(sums[0], alpha), b.mul(g, beta))
				move := v
				if b.Op.Text("mode", "standard") == "nesterov" {
					move = b.add(g, b.mul(v, alpha))
				}
				return []variable{b.sub(x, b.mul(move, rate)), v}
			})
		}},
	},
	// A gradient is like what it is of.
	named(Operator{Domain: training, MinInputs: 1, MaxInputs: -1, Infer: func(c *Call) {
		for k := range min(c.Op.Outputs, c.numInputs()) {
			c.like(k, k)
		}
	}}, "Gradient"),
)

func (b *Builder) float(name string, otherwise float32) float64 {
	return float64(b.Op.Float(name, otherwise))
}

// rooted returns the square root, and a little more.
func (b *Builder) rooted(h variable) variable {
	return b.add(b.Do("Sqrt", h), b.float("epsilon", 1e-6))
}

// steps makes a step of training for each tensor. The inputs are so many lists one behind the other: tensors,
// gradients, and what is accumulated.
func (b *Builder) steps(lists int, step func(x, g variable, sums []variable) []variable) []variable {
	n := (b.numInputs() - 2) / lists
	b.failIf(n < 1 || b.numInputs() != 2+n*lists, "%d inputs for %d lists", b.numInputs(), lists)
	out := make([]variable, n*(lists-1))
	for i := range n {
		var sums []variable
		for k := 2; k < lists; k++ {
			sums = append(sums, b.x(2+k*n+i))
		}
		x := b.x(2 + i)
		// norm_coefficient weighs an L2 penalty, whose gradient is a part of the tensor itself.
		g := b.add(b.mul(x, b.float("norm_coefficient", 0)), b.x(2+n+i))
		for k, v := range step(x, g, sums) {
			out[k*n+i] = v
		}
	}
	return out
}
