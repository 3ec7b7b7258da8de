package ir

import (
	"cmp"
	"math"

	"github.com/nnopt/nnopt/onnx"
)

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
