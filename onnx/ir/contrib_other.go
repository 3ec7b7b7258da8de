package ir

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
)

// contribOthers are operators of ONNX Runtime that are like ones of ONNX, and rare ones.
var contribOthers = []Operator{
	contrib("Trilu", 1, 2, inferSame, same("Trilu", "upper")),
	contrib("GridSample", 2, 2, nil, same("GridSample", "mode", "padding_mode", "align_corners")),
	contrib("SampleOp", 1, 1, inferSame, same("Identity")),
	contrib("GatherND", 2, 2, nil, func(b *Builder) []variable {
		return []variable{b.Do("GatherND", b.input(0), b.integers(1))}
	}),
	contrib("ExpandDims", 2, 2, nil, func(b *Builder) []variable {
		axes := b.reshape(b.integers(1), -1)
		if list, ok := b.numbers(1); ok {
			axes = Int64s(list...)
		}
		return []variable{b.Do("Unsqueeze", b.input(0), axes)}
	}),
	contrib("Range", 2, 3, nil, func(b *Builder) []variable {
		step := any(1)
		if b.has(2) {
			step = b.scalar(b.input(2))
		}
		return []variable{b.Do("Range", b.scalar(b.input(0)), b.scalar(b.input(1)), step)}
	}),
	contrib("Unique", 1, 1, nil, func(b *Builder) []variable {
		y := b.several(4, "Unique", b.input(0), Int("sorted", 0))
		return []variable{y[0], y[2], y[3]}
	}),
	contrib("Pad", 2, 3, nil, func(b *Builder) []variable {
		var value variable
		if b.has(2) {
			value = b.scalar(b.input(2))
		}
		pads := b.reshape(b.input(1), -1)
		if list, ok := b.numbers(1); ok {
			pads = Int64s(list...)
		}
		return []variable{b.Do("Pad", b.input(0), pads, value, b.keep("mode"))}
	}),
	contrib("UnfoldTensor", 1, 1, nil, unfold),
	contrib("ConvTransposeWithDynamicPads", 2, 4, nil, dynamicPads),
	contrib("CausalConvWithState", 2, 4, nil, causalConv),
	contrib("WordConvEmbedding", 4, 4, nil, wordConv),
	contrib("LinearAttention", 3, 6, inferLinearAttention, nil),
	contrib("Inverse", 1, 1, inferSame, nil),
	contrib("MurmurHash3", 1, 1, func(c *Call) {
		if c.shaped(0, onnx.Uint32, 0); c.Op.Int("positive", 1) == 0 {
			c.shaped(0, onnx.Int32, 0)
		}
	}, nil),
	contrib("NGramRepeatBlock", 2, 2, func(c *Call) { c.like(0, 1) }, nil),
	contrib("BifurcationDetector", 3, 4, func(c *Call) {
		c.Set(0, NewType(onnx.Int64, UnknownDim))
		c.Set(1, NewType(onnx.Int64))
	}, nil),
	contrib("MaxpoolWithMask", 2, 2, inferPool, nil),
	contrib("DynamicTimeWarping", 1, 1, func(c *Call) { c.Set(0, NewType(onnx.Int32, Known(2), UnknownDim)) }, nil),
	contrib("CropAndResize", 4, 4, func(c *Call) {
		dims := append([]Dim{c.sizesOf(1, 2)[0], c.sizesOf(0, 4)[1]}, unknowns(2)...)
		if list, ok := c.elements(3); ok && len(list) == 2 {
			copy(dims[2:], list)
		}
		c.Set(0, NewType(c.Elem(0), dims...))
	}, nil),
	contrib("MoE", 5, 8, inferSame, func(b *Builder) []variable {
		return []variable{b.experts(b.swapped(b.x(2)), b.x(3), b.swapped(b.x(4)), b.x(5), b.x(6), b.x(7))}
	}),
	contrib("QMoE", 7, 14, inferSame, func(b *Builder) []variable {
		return []variable{b.experts(b.expertWeights(2, 3, 11), b.x(4), b.expertWeights(5, 6, 12), b.x(7), b.expertWeights(8, 9, 13), b.x(10))}
	}),
}

// same returns the body of an operator that ONNX has as well.
func same(name string, attributes ...string) func(*Builder) []variable {
	return func(b *Builder) []variable {
		args := []any{b.keep(attributes...)}
		for k := range b.numInputs() {
			args = append(args, b.input(k))
		}
		return []variable{b.Do(name, args...)}
	}
}

// causalConv convolves each channel with what came before, which is zeros at first. Its last elements are the state of
// the next call.
func causalConv(b *Builder) []variable {
	x, n := b.x(0), b.number(b.input(1), 2)
	var all variable
	if b.has(3) {
		all = b.concat(2, b.x(3), x)
	} else {
		all = b.Do("Pad", x, []int64{0, 0, n - 1, 0, 0, 0})
	}
	y := b.Do("Conv", all, b.x(1), b.x(2), Int("group", b.number(b.input(1), 0)))
	switch a := b.Op.Text("activation", "none"); a {
	case "none":
	case "silu", "swish":
		y = b.silu(y)
	default:
		b.Fail("activation %q", a)
	}
	return []variable{y, b.Do("Slice", all, b.unsqueeze(b.size(x, 2), 0), []int64{1 << 62}, []int64{2})}
}

// unfold takes windows of a dimension, which become the last one.
func unfold(b *Builder) []variable {
	x := b.input(0)
	n := b.rankOf(x)
	axis, size, step := b.axis(b.Op.Int("dim", -1), n), b.Op.Int("size", 0), b.Op.Int("step", 1)
	b.failIf(size < 1 || step < 1, "windows of %d, %d apart", size, step)
	first := b.Do("Range", Int64(0), b.sub(b.size(x, axis), int(size-1)), Int64(step))
	y := b.Do("Gather", x, b.add(b.unsqueeze(first, 1), b.upTo(Int64(size))), Int("axis", int64(axis)))
	perm := slices.Delete(lists.Range[int64](n+1), axis+1, axis+2)
	return []variable{b.transpose(y, append(perm, int64(axis+1))...)}
}

// dynamicPads cuts off what is padded.
func dynamicPads(b *Builder) []variable {
	y := b.Do("ConvTranspose", b.x(0), b.x(1), b.x(3), b.keep("auto_pad", "dilations", "group", "kernel_shape", "output_padding", "strides"))
	if !b.has(2) {
		return []variable{y}
	}
	pads, n := b.integers(2), int64(b.rankOf(y)-2)
	ends := b.sub(b.rest(b.Do("Shape", y), 0, 2), b.slice(pads, 0, n, 2*n))
	return []variable{b.Do("Slice", y, b.slice(pads, 0, 0, n), ends, lists.Range[int64](int(n + 2))[2:])}
}

// expertWeights returns the weights of experts, [experts, inputs, outputs], that are quantized, in blocks of a row or whole rows.
func (b *Builder) expertWeights(k, scale, zero int) variable {
	if !b.has(k) {
		return nil
	}
	bits := b.Op.Int("expert_weight_bits", 4)
	q := b.unpacked(b.x(k), bits)
	experts, rows, n := b.number(q, 0), b.number(q, 1), b.number(q, 2)
	size := b.Op.Int("block_size", 0)
	if size <= 0 {
		size = n
	}
	many := n / max(size, 1)
	z := b.x(zero)
	if z != nil {
		z = b.reshape(b.slice(b.unpacked(z, bits), -1, 0, many), experts, rows, many, 1)
	} else {
		// Unsigned codes without zero points lie around the middle of their range.
		z = scalarOf(float64(int64(1) << (bits - 1)))
	}
	w := b.blocks(b.reshape(q, experts, rows, many, size), z, b.reshape(b.x(scale), experts, rows, many, 1))
	return b.swapped(b.reshape(w, experts, rows, n))
}

// experts returns the sum of the results of those experts that the router chooses for a token, weighted by its
// probabilities. All experts are computed, since which are chosen is data. Weights are [experts, inputs, outputs].
func (b *Builder) experts(first, bias1, second, bias2, third, bias3 variable) variable {
	x, router := b.x(0), b.x(1)
	rows := b.reshape(x, 1, -1, b.number(first, 1))
	each := func(y, w, bias variable) variable {
		if y = b.Do("MatMul", y, w); bias != nil {
			y = b.add(y, b.unsqueeze(bias, 1))
		}
		return y
	}
	h := b.expertActivation(each(rows, first, bias1))
	if third != nil {
		h = b.mul(h, each(rows, third, bias3))
	}
	y := each(h, second, bias2) // [experts, tokens, outputs]
	best := b.several(2, "TopK", router, []int64{b.Op.Int("k", 1)}, Int("axis", 1))
	chosen := b.Do("Softmax", best[0], Int("axis", 1))
	// Normalized weights are a softmax of the chosen experts alone, as QMoE always has them. Others
	// come from a softmax of all.
	if b.Op.Int("normalize_routing_weights", 0) == 0 && b.Type == "MoE" {
		chosen = b.Do("GatherElements", b.Do("Softmax", router, Int("axis", 1)), best[1], Int("axis", 1))
	}
	// Zeros for the others. The number of tokens is data, so they are made of the router's values.
	weights := b.Do("ScatterElements", b.mul(router, 0), best[1], chosen, Int("axis", 1)) // [tokens, experts]
	y = b.mul(y, b.unsqueeze(b.transpose(weights, 1, 0), 2))
	sum := b.Do("ReduceSum", y, []int64{0}, Int("keepdims", 0))
	return b.Do("Reshape", sum, b.Do("Shape", x))
}

// expertActivation applies activation_type. Of swiglu, gates and values are in turns, or one behind the other.
func (b *Builder) expertActivation(x variable) variable {
	switch name := b.Op.Text("activation_type", "relu"); name {
	case "identity":
		return x
	case "relu":
		return b.Do("Relu", x)
	case "gelu":
		return b.fastGelu(x)
	case "silu":
		return b.silu(x)
	case "swiglu":
		n := b.number(x, 2)
		var gate, value variable
		if b.Op.Int("swiglu_fusion", 0) == 2 {
			gate, value = b.slice(x, 2, 0, n/2), b.rest(x, 2, n/2)
		} else {
			every := func(from int64) variable {
				return b.Do("Slice", x, []int64{from}, []int64{n}, []int64{2}, []int64{2})
			}
			gate, value = every(0), every(1)
		}
		if limit := b.Attribute("swiglu_limit"); limit != nil {
			most := float64(limit.Float)
			gate, value = b.Do("Min", gate, most), b.Do("Clip", value, -most, most)
		}
		return b.mul(b.gated(gate, float64(b.Op.Float("activation_alpha", 1))), b.add(value, float64(b.Op.Float("activation_beta", 0))))
	default:
		b.Fail("activation_type %q", name)
	}
	return nil
}

// wordConv embeds the characters of words, and takes the largest of what a convolution makes of them. Further dimensions
// of the input are not looked at.
func wordConv(b *Builder) []variable {
	words, length := b.size(b.input(0), 0), b.size(b.input(0), 1)
	used := b.Do("Slice", b.reshape(b.input(0), -1), []int64{0}, b.unsqueeze(b.mul(words, length), 0), []int64{0})
	ids := b.Do("Reshape", used, b.vector(words, length))
	x := b.unsqueeze(b.Do("Gather", b.x(3), ids, Int("axis", 0)), 1) // [words, 1, characters, size]
	y := b.Do("Tanh", b.Do("Conv", x, b.x(1), b.x(2)))
	return []variable{b.Do("ReduceMax", y, []int64{2, 3}, Int("keepdims", 0))}
}

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
		return b.embedded(lists.Map(lists.Range[int](5), func(k int) variable { return b.dequantized(2+k, 8+k, 13+k) }), nil)
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
