package ir

import (
	"math"

	"github.com/nnopt/nnopt/onnx"
)

// microsoft is the domain of the operators that ONNX Runtime has besides those of ONNX.
const microsoft = "com.microsoft"

// contrib returns an operator of ONNX Runtime.
func contrib(typ string, minInputs, maxInputs int, infer func(*Call), body func(*Builder) []variable) Operator {
	return Operator{Domain: microsoft, Type: typ, MinInputs: minInputs, MaxInputs: maxInputs, Infer: infer, Body: body}
}

// contribNorms are normalizations of ONNX Runtime.
var contribNorms = []Operator{
	// ONNX Runtime has it in ONNX's domain. Its second result is the inverse deviation.
	{Type: "SimplifiedLayerNormalization", MinInputs: 2, MaxInputs: 2, Infer: inferLayerNormalization, Body: func(b *Builder) []variable {
		return b.rms(b.x(0), b.x(1), 1e-5)
	}},
	contrib("SkipSimplifiedLayerNormalization", 3, 4, nil, func(b *Builder) []variable {
		sum := b.plus(b.add(b.x(0), b.x(1)), b.x(3))
		y := b.rms(sum, b.x(2), 1e-12)
		return []variable{y[0], nil, y[1], sum}
	}),
	contrib("SkipLayerNormalization", 3, 5, nil, func(b *Builder) []variable {
		sum := b.plus(b.add(b.x(0), b.x(1)), b.x(4))
		y := b.layerNorm(sum, b.x(2), b.x(3), 1e-12)
		return append(y, sum)
	}),
	contrib("GatedRMSNorm", 3, 3, inferSame, func(b *Builder) []variable {
		return []variable{b.mul(b.rms(b.x(0), b.x(1), 1e-5)[0], b.silu(b.x(2)))}
	}),
	contrib("EmbedLayerNormalization", 7, 9, nil, func(b *Builder) []variable {
		return b.embedded([]variable{b.x(2), b.x(3), b.x(4), b.x(5), b.x(6)}, b.x(8))
	}),
	contrib("QEmbedLayerNormalization", 18, 18, nil, func(b *Builder) []variable {
		var tables []variable
		for k := range 5 {
			tables = append(tables, b.dequantized(2+k, 8+k, 13+k))
		}
		return b.embedded(tables, nil)
	}),
	contrib("GroupNorm", 3, 3, inferSame, func(b *Builder) []variable {
		x, last := b.x(0), b.Op.Int("channels_last", 1) != 0
		if last {
			x = b.transpose(x, 0, 3, 1, 2)
		}
		groups := b.reshape(x, 0, b.Op.Int("groups", 1), -1)
		y := b.Do("Reshape", b.centered(groups, float64(b.Op.Float("epsilon", 1e-5)))[0], b.Do("Shape", x))
		channel := func(v variable) variable { return b.reshape(v, 1, -1, 1, 1) }
		y = b.add(b.mul(y, channel(b.x(1))), channel(b.x(2)))
		if b.Op.Int("activation", 0) != 0 {
			y = b.silu(y)
		}
		if last {
			y = b.transpose(y, 0, 2, 3, 1)
		}
		return []variable{y}
	}),
}

// normAxes returns the axes from that of the op to the last one.
func (b *Builder) normAxes(x variable) (axes []int64) {
	// Axes count from the end, so that the default needs no rank.
	first := b.Op.Int("axis", -1)
	if first >= 0 {
		first -= int64(b.rankOf(x))
	}
	for ; first < 0; first++ {
		axes = append(axes, first)
	}
	return axes
}

func (b *Builder) mean(x variable, axes ...int64) variable { return b.reduce("ReduceMean", x, axes...) }

// root returns the root of a mean square that is not zero, and the inverse.
func (b *Builder) root(square variable, epsilon float64) (root, inverse variable) {
	root = b.Do("Sqrt", b.add(square, epsilon))
	return root, b.Do("Reciprocal", root)
}

// rms divides by the root of the mean square, which is the second result inverted.
func (b *Builder) rms(x, scale variable, epsilon float32) []variable {
	root, inverse := b.root(b.mean(b.mul(x, x), b.normAxes(x)...), float64(b.Op.Float("epsilon", epsilon)))
	return []variable{b.mul(b.div(x, root), scale), inverse}
}

// centered subtracts the mean and divides by the deviation. The mean and the inverse of the deviation follow.
func (b *Builder) centered(x variable, epsilon float64) []variable {
	axes := b.normAxes(x)
	mean := b.mean(x, axes...)
	d := b.sub(x, mean)
	root, inverse := b.root(b.mean(b.mul(d, d), axes...), epsilon)
	return []variable{b.div(d, root), mean, inverse}
}

func (b *Builder) layerNorm(x, scale, bias variable, epsilon float32) []variable {
	y := b.centered(x, float64(b.Op.Float("epsilon", epsilon)))
	y[0] = b.plus(b.mul(y[0], scale), bias)
	return y
}

// embedded looks up words, positions and segments, whose sum is normalized. Masks are counted.
func (b *Builder) embedded(tables []variable, positions variable) []variable {
	ids := b.input(0)
	take := func(table, index variable) variable { return b.Do("Gather", table, index, Int("axis", 0)) }
	if positions == nil {
		positions = b.upTo(b.size(ids, 1))
	}
	sum := b.add(take(tables[0], ids), take(tables[1], positions))
	if b.has(1) {
		sum = b.add(sum, take(tables[2], b.input(1)))
	}
	// Without a mask the counts are zeros. How many is data, so they are made of the ids.
	count := b.mul(b.reshape(b.slice(ids, 1, 0, 1), -1), 0)
	if mask := b.input(7); mask != nil {
		count = b.Do("ReduceSum", mask, []int64{1}, Int("keepdims", 0))
	}
	return []variable{b.layerNorm(sum, tables[3], tables[4], 1e-12)[0], b.cast(count, onnx.Int32), sum}
}

// contribActivations are element-wise operators of ONNX Runtime.
var contribActivations = []Operator{
	contrib("Gelu", 1, 1, inferSame, func(b *Builder) []variable { return []variable{b.gelu(b.x(0))} }),
	contrib("BiasGelu", 2, 2, inferSame, func(b *Builder) []variable { return []variable{b.gelu(b.add(b.x(0), b.x(1)))} }),
	contrib("FastGelu", 1, 2, inferSame, func(b *Builder) []variable { return []variable{b.fastGelu(b.plus(b.x(0), b.x(1)))} }),
	contrib("QuickGelu", 1, 1, inferSame, func(b *Builder) []variable {
		return []variable{b.gated(b.x(0), float64(b.Op.Float("alpha", 1.702)))}
	}),
	contrib("BiasSplitGelu", 2, 2, nil, func(b *Builder) []variable {
		half := b.several(2, "Split", b.add(b.x(0), b.x(1)), Int("axis", -1))
		return []variable{b.mul(half[0], b.gelu(half[1]))}
	}),
	contrib("BiasAdd", 3, 3, inferSame, func(b *Builder) []variable { return []variable{b.add(b.add(b.x(0), b.x(1)), b.x(2))} }),
	contrib("BiasSoftmax", 2, 2, inferSame, func(b *Builder) []variable {
		return []variable{b.Do("Softmax", b.add(b.x(0), b.x(1)), Int("axis", -1))}
	}),
}

// gelu multiplies x by the probability that a normal variable is less than it.
func (b *Builder) gelu(x variable) variable {
	return b.mul(b.mul(x, 0.5), b.add(b.Do("Erf", b.mul(x, math.Sqrt2/2)), 1))
}

// fastGelu is gelu with a tanh in place of erf.
func (b *Builder) fastGelu(x variable) variable {
	// Hendrycks and Gimpel (2016): tanh(√(2/π)·(x + 0.044715·x³)).
	k := math.Sqrt(2 / math.Pi)
	inner := b.mul(x, b.add(b.mul(b.mul(x, x), 0.044715*k), k))
	return b.mul(b.mul(x, 0.5), b.add(b.Do("Tanh", inner), 1))
}

// gated returns x·sigmoid(alpha·x).
func (b *Builder) gated(x variable, alpha float64) variable {
	return b.mul(x, b.Do("Sigmoid", b.mul(x, alpha)))
}

func (b *Builder) silu(x variable) variable { return b.mul(x, b.Do("Sigmoid", x)) }
