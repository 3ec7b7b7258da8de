package lower

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// The operators of transformers.
var attention = map[string]func(c *call) []*value{
	"Attention":                     (*call).attention,
	"TensorScatter":                 (*call).cacheUpdate,
	"LinearAttention":               (*call).linearAttention,
	"ai.onnx.preview.FlexAttention": (*call).flexAttention,
}

// attention weights values by how well their keys fit queries. Keys and values may go on from those
// of earlier calls, and have fewer heads than queries, each for several in a row.
func (c *call) attention() []*value {
	q, qs := c.heads(0, "q_num_heads")
	k, ks := c.heads(1, "kv_num_heads")
	v, vs := c.heads(2, "kv_num_heads")
	past := ir.Known(0)
	if c.has(4) != c.has(5) {
		c.fail("there is a past of keys or of values only")
	}
	if c.has(4) {
		for _, p := range []int{4, 5} {
			if ndim(c.x(p)) != 4 {
				c.fail("input %d of %d dimensions", p, ndim(c.x(p)))
			}
		}
		past = c.dims(c.x(4))[2]
		k, v = tensor.Join(2, c.x(4), k), tensor.Join(2, c.x(5), v)
		ks[2], vs[2] = past.Plus(ks[2]), c.dims(c.x(5))[2].Plus(vs[2])
	}
	present := []*value{c.typed(k, c.elem(1)), c.typed(v, c.elem(2))}
	heads, groups, size := c.number(qs[1]), c.number(ks[1]), c.number(qs[3])
	if groups < 1 || heads%groups != 0 || ks[1].Differs(vs[1]) || ks[2].Differs(vs[2]) || qs[3].Differs(ks[3]) || ks[0].Differs(qs[0]) || vs[0].Differs(qs[0]) {
		c.fail("queries of shape %v, keys of %v and values of %v", qs, ks, vs)
	}
	shape := []ir.Dim{qs[0], qs[1], qs[2], ks[2]}
	if c.open == nil { // else a call knows
		c.bounded([]int{c.number(shape[0]), heads, c.number(shape[2]), c.number(shape[3])})
	}
	// Both factors get the root of the scale, so that products of half floats don't overflow.
	root := math.Sqrt(c.float("scale", 1/math.Sqrt(float64(max(size, 1)))))
	q, k = tensor.Mul(q, number(root, q)), tensor.Mul(k, number(root, k))
	if n := heads / groups; n > 1 {
		k, v = tensor.Repeat(k, tensor.Int(n), 1), tensor.Repeat(v, tensor.Int(n), 1)
	}
	scores := tensor.Matmul(q, tensor.DimShuffle(k, 0, 1, 3, 2))
	stages := []variable{scores}
	if cap := c.float("softcap", 0); cap > 0 {
		// Before the mask: what is masked must stay infinite.
		scores = tensor.Mul(number(cap, scores), tensor.Tanh(tensor.TrueDiv(scores, number(cap, scores))))
	}
	stages = append(stages, scores)
	scores = c.masked(scores, shape, past)
	stages = append(stages, scores)
	weights := c.reshapeTo(tensor.Softmax(c.reshapeTo(scores, []ir.Dim{together(shape[:3]), shape[3]})), shape)
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
		y = c.reshapeTo(tensor.DimShuffle(y, 0, 2, 1, 3), []ir.Dim{qs[0], qs[2], qs[1].Times(vs[3])})
	}
	mode := c.int("qk_matmul_output_mode", 0)
	if mode < 0 || mode >= len(stages) {
		c.fail("%w: qk_matmul_output_mode %d", ErrUnsupported, mode)
	}
	return append(append(c.like(y), present...), c.typed(stages[mode], c.elem(0)))
}

// heads returns an input with the heads as the second dimension, and its sizes.
func (c *call) heads(k int, attribute string) (variable, []ir.Dim) {
	x := c.x(k)
	dims := c.dims(x)
	switch len(dims) {
	case 4:
		return x, slices.Clone(dims)
	case 3:
		n, all := c.int(attribute, 0), c.number(dims[2])
		if n < 1 || all%n != 0 {
			c.fail("%d heads of shape %v", n, dims)
		}
		heads, size := ir.Known(int64(n)), ir.Known(int64(all/n))
		return tensor.DimShuffle(c.reshapeTo(x, []ir.Dim{dims[0], dims[1], heads, size}), 0, 2, 1, 3), []ir.Dim{dims[0], heads, dims[1], size}
	}
	c.fail("input %d of %d dimensions", k, len(dims))
	return nil, nil
}

// masked makes scores, of a shape [N, H, Q, K] or such that they are broadcast to it, infinite where a query must not
// see a key.
func (c *call) masked(scores variable, shape []ir.Dim, past ir.Dim) variable {
	hidden := number(math.Inf(-1), scores)
	range_ := func(n ir.Dim, order ...int) variable {
		return tensor.DimShuffle(tensor.ARange(tensor.Int(0), c.size(n), tensor.Int(1)), order...)
	}
	keys := range_(shape[3], -1, -1, -1, 0)
	if c.has(3) {
		scores = c.addMask(scores, shape)
	}
	if c.bool("is_causal", false) {
		last := tensor.Add(range_(shape[2], -1, -1, 0, -1), c.size(past))
		if c.has(6) && !c.has(4) { // queries are the last ones of a cache that is not full
			last = tensor.Add(last, tensor.Sub(tensor.DimShuffle(c.integers(6), 0, -1, -1, -1), c.size(shape[2])))
		}
		scores = tensor.Switch(tensor.Map(array.Le, keys, last), scores, hidden)
	}
	if c.has(6) {
		if lengths := c.dims(c.x(6)); len(lengths) != 1 || lengths[0].Differs(shape[0]) {
			c.fail("lengths of shape %v for %v items", lengths, shape[0])
		}
		scores = tensor.Switch(tensor.Map(array.Lt, keys, tensor.DimShuffle(c.integers(6), 0, -1, -1, -1)), scores, hidden)
	}
	return scores
}

// addMask adds a mask of numbers, or hides what a mask of bools lacks. Keys behind its end are hidden. A graph for any
// sizes provides that a mask of a size of its own has none.
func (c *call) addMask(scores variable, shape []ir.Dim) variable {
	mask := c.x(3)
	n := ndim(mask)
	if n < 1 || n > 4 {
		c.fail("a mask of %d dimensions", n)
	}
	ms := slices.Clone(c.dims(mask))
	bools := tensor.TypeOf(mask).DType() == array.Bool
	if ms[n-1].Differs(shape[3]) && !ms[n-1].Is(1) && ms[n-1].AtMost(shape[3]) {
		rest := slices.Clone(ms)
		rest[n-1] = shape[3].Minus(ms[n-1])
		fill := number(math.Inf(-1), scores)
		if bools {
			fill = tensor.Constant(array.Scalar(false))
		}
		fill = tensor.Cast(c.reshape(fill, nil), tensor.TypeOf(mask).DType())
		mask = tensor.Join(n-1, mask, tensor.Alloc(fill, c.scalars(rest)...))
		ms[n-1] = shape[3]
	}
	for i, d := range ms {
		if !d.Is(1) && d.Differs(shape[4-n+i]) {
			c.fail("a mask of shape %v for %v", ms, shape)
		}
	}
	if bools {
		return tensor.Switch(mask, scores, number(math.Inf(-1), scores))
	}
	return tensor.Add(scores, mask)
}

// cacheUpdate writes an update to a cache, behind so many entries for each item of the batch.
func (c *call) cacheUpdate() []*value {
	x, y := c.shape(c.x(0)), c.shape(c.x(1))
	axis := c.axis(c.int("axis", -2), len(x))
	mode := c.oneOf("mode", "linear", "linear", "circular")
	same := slices.Clone(y)
	if len(y) == len(x) {
		same[axis] = x[axis]
	}
	if axis == 0 || !slices.Equal(same, x) || y[axis] > x[axis] {
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
