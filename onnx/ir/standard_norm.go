package ir

import (
	"cmp"
	"math"
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// standardNorms are normalizations and losses.
var standardNorms = []Operator{
	{Type: "BatchNormalization", MinInputs: 5, MaxInputs: 5, Infer: inferBatchNormalization},
	{Type: "InstanceNormalization", MinInputs: 3, MaxInputs: 3, Infer: inferInstanceNormalization},
	{Type: "GroupNormalization", MinInputs: 3, MaxInputs: 3, Infer: func(c *Call) {
		if c.Legacy != 0 { // scales were of groups
			c.like(0, 0)
			return
		}
		inferInstanceNormalization(c)
	}},
	{Type: "LayerNormalization", MinInputs: 2, MaxInputs: 3, Infer: inferLayerNormalization},
	{Type: "RMSNormalization", MinInputs: 2, MaxInputs: 2, Infer: inferSame},
	{Type: "LpNormalization", MinInputs: 1, MaxInputs: 1, Infer: inferSame},
	{Type: "MeanVarianceNormalization", MinInputs: 1, MaxInputs: 1, Infer: inferSame},
	{Type: "LRN", MinInputs: 1, MaxInputs: 1, Infer: inferSame},
	// In training, elements are dropped at random.
	{Type: "Dropout", MinInputs: 1, MaxInputs: 3, Random: true, Infer: func(c *Call) {
		c.like(0, 0)
		if c.shaped(1, onnx.Bool, 0); c.Legacy != 0 && c.Legacy < 10 { // the mask was of numbers
			c.like(1, 0)
		}
	}},
	{Type: "NegativeLogLikelihoodLoss", MinInputs: 2, MaxInputs: 3, Body: func(b *Builder) []variable { return []variable{b.loss(b.x(0))} }},
	{Type: "SoftmaxCrossEntropyLoss", MinInputs: 2, MaxInputs: 3, Body: func(b *Builder) []variable {
		y := b.Do("LogSoftmax", b.x(0), Int("axis", 1))
		return []variable{b.loss(y), y}
	}},
}

// inferBatchNormalization: before opset 14 there could be further results, which are statistics, too.
func inferBatchNormalization(c *Call) {
	// Until opset 8, statistics could be of each element with spatial=0.
	if c.Op.Int("spatial", 1) != 0 {
		c.checkChannels(4)
	}
	c.like(0, 0)
	// Mean, variance, and in old versions both again as they were saved.
	for k := 1; k < 5; k++ {
		c.like(k, 3+(k+1)%2)
	}
}

func inferInstanceNormalization(c *Call) {
	c.checkChannels(2)
	c.like(0, 0)
}

// checkChannels fails if one of the inputs from 1 to last is known not to have an element for each channel.
func (c *Call) checkChannels(last int) {
	dims, ranked := c.shape(0)
	if !ranked || len(dims) < 2 {
		return
	}
	for k := 1; k <= last; k++ {
		if s := c.sizesOf(k, 1); s[0].Differs(dims[1]) {
			c.Fail("input %d has %v elements for %v channels", k, s[0], dims[1])
		}
	}
}

// inferLayerNormalization: means and deviations are of all dimensions from the axis on.
func inferLayerNormalization(c *Call) {
	c.like(0, 0)
	dims, ranked := c.shape(0)
	if ranked {
		for i := c.axis(c.Op.Int("axis", -1), len(dims)); i < len(dims); i++ {
			dims[i] = Known(1)
		}
	}
	for k := 1; k <= 2; k++ {
		if n := c.In(k).Rank(); ranked && n > len(dims) {
			c.Fail("input %d has %d dimensions, more than the first one", k, n)
		}
	}
	elem := c.to("stash_type", onnx.Float)
	c.Set(1, tensor(elem, dims, ranked))
	c.Set(2, tensor(elem, dims, ranked))
}

// loss returns the loss of logarithms of probabilities x, [N, C, …], for classes, input 1, [N, …].
func (b *Builder) loss(x variable) variable {
	classes, elem := b.integers(1), TypeOf(x).Elem()
	ignored := b.Do("Less", classes, classes) // none is
	if a := b.Attribute("ignore_index"); a != nil {
		ignored = b.Do("Equal", classes, Int64(a.Int))
		// A class that is ignored may be none at all. Any valid index will do, since its weight is 0.
		classes = b.Do("Where", ignored, Int64(0), classes)
	}
	weight := b.cast(b.Do("Not", ignored), elem)
	if weights := b.x(2); weights != nil {
		weight = b.mul(b.Do("Gather", weights, classes), weight)
	}
	loss := b.Do("Neg", b.Do("Squeeze", b.Do("GatherElements", x, b.unsqueeze(classes, 1), Int("axis", 1)), []int64{1}))
	loss = b.mul(loss, weight)
	all := func(v variable) variable { return b.Do("ReduceSum", v, Int("keepdims", 0)) }
	switch b.Op.Text("reduction", "mean") {
	case "none":
		return loss
	case "sum":
		return all(loss)
	}
	// ONNX's mean divides by the sum of the weights, not by the number of items.
	return b.div(all(loss), all(weight))
}

// standardAttention are attention and what is computed for it.
var standardAttention = []Operator{
	{Type: "Attention", MinInputs: 3, MaxInputs: 7, Body: attention},
	{Type: "LinearAttention", MinInputs: 3, MaxInputs: 6, Infer: inferLinearAttention},
	{Domain: "ai.onnx.preview", Type: "FlexAttention", MinInputs: 3, MaxInputs: 3, Infer: func(c *Call) {
		q, k, v := c.sizesOf(0, 4), c.sizesOf(1, 4), c.sizesOf(2, 4)
		c.Set(0, NewType(c.Elem(0), c.meet(c.meet(q[0], k[0]), v[0]), q[1], q[2], v[3]))
	}},
	{Type: "RotaryEmbedding", MinInputs: 3, MaxInputs: 4, Infer: inferSame, Body: func(b *Builder) []variable {
		return b.rotary(b.Op.Int("num_heads", 0), func(x variable) (cos, sin variable) {
			// Tables have a row for each position, or are those of the positions already.
			if at := b.input(3); at != nil {
				cos, sin = b.angles(b.x(1), at), b.angles(b.x(2), at)
			} else {
				cos, sin = b.unsqueeze(b.x(1), 1), b.unsqueeze(b.x(2), 1)
			}
			size, whole := 2*b.number(cos, 3), b.number(x, 3)
			if n := cmp.Or(b.Op.Int("rotary_embedding_dim", 0), whole); n != size || n > whole || n < 2 {
				b.Fail("%d of %d elements turn by %d angles", n, whole, size/2)
			}
			return cos, sin
		})
	}},
}

// attention weights values by how well their keys fit queries. Keys and values may go on from those of earlier calls, and
// have fewer heads than queries, each for several in a row.
func attention(b *Builder) []variable {
	b.failIf(b.has(4) != b.has(5), "there is a past of keys or of values only")
	var in [3]variable
	for k, name := range []string{"q_num_heads", "kv_num_heads", "kv_num_heads"} {
		if in[k] = b.x(k); b.rankOf(in[k]) == 3 {
			in[k] = b.heads(in[k], b.Op.Int(name, 0))
		}
	}
	q, k, v := in[0], in[1], in[2]
	if b.has(4) {
		k, v = b.concat(2, b.x(4), k), b.concat(2, b.x(5), v)
	}
	present := []variable{k, v}
	heads, groups := b.number(q, 1), b.number(k, 1)
	b.failIf(groups < 1 || heads%groups != 0, "%d heads of keys for %d of queries", groups, heads)
	// Both factors get the root of the scale, so that products of half floats don't overflow.
	scale := 1 / math.Sqrt(float64(max(b.number(q, 3), 1)))
	if a := b.Attribute("scale"); a != nil {
		scale = float64(a.Float)
	}
	q, k = b.mul(q, math.Sqrt(scale)), b.repeated(b.mul(k, math.Sqrt(scale)), heads/groups)
	scores := b.Do("MatMul", q, b.swapped(k))
	stages := []variable{scores}
	hide := b.hiding(q, k)
	scores = b.capped(scores) // before the mask: what is masked must stay infinite
	stages = append(stages, scores, hide(scores, b.onto))
	weights := b.Do("Softmax", stages[2], Int("axis", -1))
	y := b.Do("MatMul", weights, b.repeated(v, heads/groups))
	if b.has(3) || b.has(6) {
		// A query that sees no key gets zeros, though its weights are 0/0. Which ones, the mask says by itself: so the
		// products and the softmax remain what is computed as one op.
		zero := b.constant(0, TypeOf(scores).Elem())
		best := b.reduce("ReduceMax", hide(zero, b.plus), -1)
		y = b.Do("Where", b.Do("Equal", best, math.Inf(-1)), zero, y)
	}
	if b.rankOf(b.input(0)) == 3 {
		y = b.merged(y)
	}
	mode := int(b.Op.Int("qk_matmul_output_mode", 0))
	if stages = append(stages, weights); mode < 0 || mode >= len(stages) {
		b.Fail("qk_matmul_output_mode %d", mode)
	}
	return []variable{y, present[0], present[1], stages[mode]}
}

// hiding returns a function that makes scores infinite where a query must not see a key. It adds a mask of numbers by
// another one.
func (b *Builder) hiding(q, k variable) func(scores variable, add func(x, y variable) variable) variable {
	keys, length := b.unsqueeze(b.upTo(b.size(k, 2)), 0, 1, 2), b.size(q, 2)
	mask := b.wholeMask(k)
	var seen []variable
	ends := b.input(6)
	if ends != nil {
		ends = b.unsqueeze(b.integers(6), 1, 2, 3)
		seen = append(seen, b.Do("Less", keys, ends))
	}
	if b.Op.Int("is_causal", 0) != 0 {
		queries := b.unsqueeze(b.upTo(length), 0, 1, 3)
		switch {
		case b.has(4):
			queries = b.add(queries, b.size(b.input(4), 2))
		case ends != nil: // queries are the last ones of a cache that is not full
			queries = b.add(queries, b.sub(ends, length))
		}
		seen = append(seen, b.Do("LessOrEqual", keys, queries))
	}
	return func(scores variable, add func(x, y variable) variable) variable {
		switch {
		case mask == nil:
		case TypeOf(mask).Elem() == onnx.Bool:
			scores = b.Do("Where", mask, scores, math.Inf(-1))
		default:
			scores = add(scores, mask)
		}
		for _, s := range seen {
			scores = b.Do("Where", s, scores, math.Inf(-1))
		}
		return scores
	}
}

// wholeMask returns the mask, nil if there is none. Keys behind its end are hidden. Where sizes are not known, a mask of
// a size of its own is taken to have none.
func (b *Builder) wholeMask(k variable) variable {
	mask := b.x(3)
	if mask == nil {
		return nil
	}
	n := b.rankOf(mask)
	m, _ := TypeOf(mask).Shape()
	keys, _ := TypeOf(k).Shape()
	b.failIf(n < 1 || n > 4, "a mask of %d dimensions", n)
	if !m[n-1].Differs(keys[2]) || m[n-1].Is(1) || !m[n-1].atMost(keys[2]) {
		return mask
	}
	fill := 0.0
	if TypeOf(mask).Elem() != onnx.Bool {
		fill = math.Inf(-1)
	}
	shape := b.concat(0, b.slice(b.Do("Shape", mask), 0, 0, int64(n-1)), b.unsqueeze(b.sub(b.size(k, 2), b.size(mask, -1)), 0))
	return b.concat(int64(n-1), mask, b.Do("Expand", b.constant(fill, TypeOf(mask).Elem()), shape))
}

// heads returns the shape of an input whose heads are packed with the heads as the second dimension.
func (c *Call) heads(k int, heads Dim) []Dim {
	s := c.sizesOf(k, 3)
	if h, _ := heads.Number(); h < 1 {
		c.Fail("q_num_heads and kv_num_heads have to be given")
	}
	return []Dim{s[0], heads, s[1], c.exactly(s[2], heads)}
}

func inferLinearAttention(c *Call) {
	queries, keys := Known(c.Op.Int("q_num_heads", 0)), Known(c.Op.Int("kv_num_heads", 0))
	q, k, v := c.heads(0, queries), c.heads(1, keys), c.heads(2, keys)
	batch := c.meet(c.meet(q[0], k[0]), v[0])
	c.Set(0, NewType(c.Elem(0), batch, q[2], queries.Times(v[3])))
	c.Set(1, NewType(c.Elem(3), batch, keys, k[3], v[3]))
}

// standardRecurrent are recurrent networks.
var standardRecurrent = slices.Concat(
	[]Operator{{Type: "LSTM", MinInputs: 3, MaxInputs: 8, Infer: inferRecurrent}},
	named(Operator{MinInputs: 3, MaxInputs: 6, Infer: inferRecurrent}, "GRU", "RNN"),
)

// inferRecurrent: x is [T, N, I], or [N, T, I] with layout 1, and R is [D, gates*H, H]. The results are
// all states, the last one and, of an LSTM, the last cells.
func inferRecurrent(c *Call) {
	elem := c.elemOf(0, 1, 2)
	x, w, r := c.sizesOf(0, 3), c.sizesOf(1, 3), c.sizesOf(2, 3)
	directions := Known(1)
	if c.Op.Text("direction", "forward") == "bidirectional" {
		directions = Known(2)
	}
	for _, d := range []Dim{w[0], r[0]} {
		c.meet(directions, d)
	}
	c.failIf(w[2].Differs(x[2]), "the input has %v features, and its weights %v", x[2], w[2])
	hidden := r[2]
	if n := c.Op.Int("hidden_size", 0); n > 0 {
		hidden = c.meet(hidden, Known(n))
	}
	if c.Op.Int("layout", 0) == 0 {
		c.Set(0, NewType(elem, x[0], directions, x[1], hidden))
		c.Set(1, NewType(elem, directions, x[1], hidden))
		c.Set(2, NewType(elem, directions, x[1], hidden))
		return
	}
	c.Set(0, NewType(elem, x[0], x[1], directions, hidden))
	c.Set(1, NewType(elem, x[0], directions, hidden))
	c.Set(2, NewType(elem, x[0], directions, hidden))
}

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
