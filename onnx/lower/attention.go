package lower

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// The operators of transformers.
var attention = map[string]func(c *call) []*value{
	"Attention":                     (*call).attention,
	"RotaryEmbedding":               (*call).rotary,
	"TensorScatter":                 (*call).cacheUpdate,
	"LinearAttention":               (*call).linearAttention,
	"CausalConvWithState":           (*call).causalConv,
	"ai.onnx.preview.FlexAttention": (*call).flexAttention,
}

// attention weights values by how well their keys fit queries. Keys and values may go on from those
// of earlier calls, and have fewer heads than queries, each for several in a row.
func (c *call) attention() []*value {
	q, k, v := c.heads(0, "q_num_heads"), c.heads(1, "kv_num_heads"), c.heads(2, "kv_num_heads")
	past := 0
	if c.has(4) != c.has(5) {
		c.fail("there is a past of keys or of values only")
	}
	if c.has(4) {
		for _, p := range []int{4, 5} {
			if ndim(c.x(p)) != 4 {
				c.fail("input %d of %d dimensions", p, ndim(c.x(p)))
			}
		}
		past = c.shape(c.x(4))[2]
		k, v = tensor.Join(2, c.x(4), k), tensor.Join(2, c.x(5), v)
	}
	present := []*value{c.typed(k, c.elem(1)), c.typed(v, c.elem(2))}
	qs, ks, vs := c.shape(q), c.shape(k), c.shape(v)
	if ks[1] < 1 || qs[1]%ks[1] != 0 || ks[1] != vs[1] || ks[2] != vs[2] || qs[3] != ks[3] || ks[0] != qs[0] || vs[0] != qs[0] {
		c.fail("queries of shape %v, keys of %v and values of %v", qs, ks, vs)
	}
	c.bounded([]int{qs[0], qs[1], qs[2], ks[2]})
	// Both factors get the root of the scale, so that products of half floats don't overflow.
	root := math.Sqrt(c.float("scale", 1/math.Sqrt(float64(max(qs[3], 1)))))
	q, k = tensor.Mul(q, number(root, q)), tensor.Mul(k, number(root, k))
	if n := qs[1] / ks[1]; n > 1 {
		k, v = tensor.Repeat(k, tensor.Int(n), 1), tensor.Repeat(v, tensor.Int(n), 1)
	}
	shape := []int{qs[0], qs[1], qs[2], ks[2]}
	scores := tensor.Matmul(q, tensor.DimShuffle(k, 0, 1, 3, 2))
	stages := []variable{scores}
	if cap := c.float("softcap", 0); cap > 0 {
		// Before the mask: what is masked must stay infinite.
		scores = tensor.Mul(number(cap, scores), tensor.Tanh(tensor.TrueDiv(scores, number(cap, scores))))
	}
	stages = append(stages, scores)
	scores = c.masked(scores, shape, past)
	stages = append(stages, scores)
	weights := c.reshape(tensor.Softmax(c.reshape(scores, []int{product(shape[:3]), shape[3]})), shape)
	stages = append(stages, weights)
	y := tensor.Matmul(weights, v)
	if c.has(3) || c.has(6) {
		// A query that sees no key gets zeros, though its weights are 0/0. Which ones, the mask says by itself: so the
		// products and the softmax remain what is computed as one op.
		open := c.masked(number(0, scores), shape, past)
		best := tensor.ExpandDims(tensor.ReduceOver(array.Max, open, 3), 3)
		y = tensor.Switch(tensor.Map(array.Eq, best, number(math.Inf(-1), best)), number(0, y), y)
	}
	if ndim(c.x(0)) == 3 {
		y = c.reshape(tensor.DimShuffle(y, 0, 2, 1, 3), []int{qs[0], qs[2], qs[1] * vs[3]})
	}
	mode := c.int("qk_matmul_output_mode", 0)
	if mode < 0 || mode >= len(stages) {
		c.fail("%w: qk_matmul_output_mode %d", ErrUnsupported, mode)
	}
	return append(append(c.like(y), present...), c.typed(stages[mode], c.elem(0)))
}

// heads returns an input with the heads as the second dimension.
func (c *call) heads(k int, attribute string) variable {
	x := c.x(k)
	shape := c.shape(x)
	switch len(shape) {
	case 4:
		return x
	case 3:
		n := c.int(attribute, 0)
		if n < 1 || shape[2]%n != 0 {
			c.fail("%d heads of shape %v", n, shape)
		}
		return tensor.DimShuffle(c.reshape(x, []int{shape[0], shape[1], n, shape[2] / n}), 0, 2, 1, 3)
	}
	c.fail("input %d of %d dimensions", k, len(shape))
	return nil
}

// masked makes scores, of a shape [N, H, Q, K] or such that they are broadcast to it, infinite where a query must not
// see a key.
func (c *call) masked(scores variable, shape []int, past int) variable {
	hidden := number(math.Inf(-1), scores)
	range_ := func(n int, order ...int) variable {
		return tensor.DimShuffle(arange(n), order...)
	}
	keys := range_(shape[3], -1, -1, -1, 0)
	if c.has(3) {
		scores = c.addMask(scores, shape)
	}
	if c.bool("is_causal", false) {
		last := tensor.Add(range_(shape[2], -1, -1, 0, -1), tensor.Int(past))
		if c.has(6) && !c.has(4) { // queries are the last ones of a cache that is not full
			last = tensor.Add(last, tensor.Sub(tensor.DimShuffle(c.integers(6), 0, -1, -1, -1), tensor.Int(shape[2])))
		}
		scores = tensor.Switch(tensor.Map(array.Le, keys, last), scores, hidden)
	}
	if c.has(6) {
		if !slices.Equal(c.shape(c.x(6)), shape[:1]) {
			c.fail("lengths of shape %v for %d items", c.shape(c.x(6)), shape[0])
		}
		scores = tensor.Switch(tensor.Map(array.Lt, keys, tensor.DimShuffle(c.integers(6), 0, -1, -1, -1)), scores, hidden)
	}
	return scores
}

// addMask adds a mask of numbers, or hides what a mask of bools lacks. Keys behind its end are hidden.
func (c *call) addMask(scores variable, shape []int) variable {
	mask := c.x(3)
	n := ndim(mask)
	ms := c.shape(mask)
	if n < 1 || n > 4 || ms[n-1] > shape[3] {
		c.fail("a mask of shape %v for %v", ms, shape)
	}
	bools := tensor.TypeOf(mask).DType() == array.Bool
	if more := shape[3] - ms[n-1]; more > 0 && ms[n-1] != 1 {
		rest := slices.Clone(ms)
		rest[n-1] = more
		fill := number(math.Inf(-1), scores)
		if bools {
			fill = tensor.Constant(array.Scalar(false))
		}
		fill = tensor.Cast(c.reshape(fill, nil), tensor.TypeOf(mask).DType())
		mask = tensor.Join(n-1, mask, tensor.Alloc(fill, sizes(rest)...))
		ms[n-1] = shape[3]
	}
	if !slices.Equal(broadcast(shape, ms), shape) {
		c.fail("a mask of shape %v for %v", ms, shape)
	}
	if bools {
		return tensor.Switch(mask, scores, number(math.Inf(-1), scores))
	}
	return tensor.Add(scores, mask)
}

// rotary turns pairs of elements by angles that depend on their position.
func (c *call) rotary() []*value {
	x := c.x(0)
	shape := c.shape(x)
	switch len(shape) {
	case 3:
		x = c.heads(0, "num_heads")
	case 4:
	default:
		c.fail("%d dimensions", len(shape))
	}
	s := c.shape(x) // [N, heads, length, size]
	size := c.int("rotary_embedding_dim", 0)
	if size == 0 {
		size = s[3]
	}
	if size < 2 || size%2 != 0 || size > s[3] {
		c.fail("%d of %d elements turn", size, s[3])
	}
	cos, sin := c.angles(1, s, size/2), c.angles(2, s, size/2)
	part := func(from, to, step int) variable {
		all := tensor.Everything()
		return tensor.Subtensor(x, all, all, all, tensor.SliceOf(tensor.Int(from), tensor.Int(to), step))
	}
	a, b := part(0, size/2, 1), part(size/2, size, 1)
	if c.bool("interleaved", false) {
		a, b = part(0, size, 2), part(1, size, 2)
	}
	re, im := tensor.Sub(tensor.Mul(cos, a), tensor.Mul(sin, b)), tensor.Add(tensor.Mul(sin, a), tensor.Mul(cos, b))
	y := tensor.Join(3, re, im)
	if c.bool("interleaved", false) {
		y = c.reshape(tensor.Stack(4, re, im), []int{s[0], s[1], s[2], size})
	}
	if size < s[3] {
		y = tensor.Join(3, y, part(size, s[3], 1))
	}
	if len(shape) == 3 {
		y = c.reshape(tensor.DimShuffle(y, 0, 2, 1, 3), shape)
	}
	return c.like(y)
}

// angles returns the cosines or sines of positions: those of the cache that input 3 names, or all.
func (c *call) angles(k int, x []int, size int) variable {
	v := c.x(k)
	if c.has(3) {
		if ndim(v) != 2 || !slices.Equal(c.shape(c.x(3)), []int{x[0], x[2]}) {
			c.fail("positions of shape %v for %v", c.shape(c.x(3)), x)
		}
		v = tensor.Take(v, c.integers(3))
	}
	if !slices.Equal(c.shape(v), []int{x[0], x[2], size}) {
		c.fail("angles of shape %v for %v", c.shape(v), x)
	}
	return tensor.DimShuffle(v, 0, -1, 1, 2)
}

// cacheUpdate writes an update to a cache, behind so many entries for each item of the batch.
func (c *call) cacheUpdate() []*value {
	x, y := c.shape(c.x(0)), c.shape(c.x(1))
	axis := c.axis(c.int("axis", -2), len(x))
	mode := c.text("mode", "linear")
	same := slices.Clone(y)
	if len(y) == len(x) {
		same[axis] = x[axis]
	}
	if axis == 0 || !slices.Equal(same, x) || y[axis] > x[axis] || mode != "linear" && mode != "circular" {
		c.fail("an update of shape %v for %v along %d, mode %q", y, x, axis, mode)
	}
	at := asDim(arange(y[axis]), axis, len(x))
	if c.has(2) {
		if !slices.Equal(c.shape(c.x(2)), x[:1]) {
			c.fail("%v places for %d items", c.shape(c.x(2)), x[0])
		}
		at = tensor.Add(at, asDim(c.integers(2), 0, len(x)))
	}
	if mode == "circular" {
		at = tensor.Map(array.Mod, at, number(float64(max(x[axis], 1)), at))
	}
	return c.like(tensor.ScatterElements(c.x(0), tensor.Alloc(at, sizes(y)...), c.x(1), axis, false))
}
