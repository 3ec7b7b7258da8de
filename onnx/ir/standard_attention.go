package ir

import "cmp"

// standardAttention are attention and what is computed for it.
var standardAttention = []Operator{
	{Type: "Attention", MinInputs: 3, MaxInputs: 7, Infer: inferAttention},
	{Type: "LinearAttention", MinInputs: 3, MaxInputs: 6, Infer: inferLinearAttention},
	{Domain: "ai.onnx.preview", Type: "FlexAttention", MinInputs: 3, MaxInputs: 3, Infer: func(c *Call) {
		q, k, v := c.sizesOf(0, 4), c.sizesOf(1, 4), c.sizesOf(2, 4)
		c.Set(0, NewType(c.Elem(0), c.Meet(c.Meet(q[0], k[0]), v[0]), q[1], q[2], v[3]))
	}},
	{Type: "RotaryEmbedding", MinInputs: 3, MaxInputs: 4, Infer: inferSame, Body: func(b *Builder) []variable {
		return b.rotary(b.Op.Int("num_heads", 0), func(x variable) (cos, sin variable) {
			// Tables have a row for each position, or are those of the positions already.
			if at := b.Input(3); at != nil {
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

// inferAttention: inputs have heads as a dimension of their own, or packed into the last one.
func inferAttention(c *Call) {
	c.sameRank(0, 1)
	c.sameRank(0, 2)
	n := c.In(0).Rank()
	if n < 0 {
		// Any of the three tells how many dimensions all have.
		if n = max(c.In(1).Rank(), c.In(2).Rank()); n < 0 {
			c.Set(0, AnyShape(c.Elem(0)))
			c.Set(1, NewType(c.Elem(1), unknowns(4)...))
			c.Set(2, NewType(c.Elem(2), unknowns(4)...))
			c.Set(3, NewType(c.Elem(0), unknowns(4)...))
			return
		}
	}
	if n != 3 && n != 4 {
		c.Fail("queries of %d dimensions", n)
	}
	queries, keys := Known(c.Op.Int("q_num_heads", 0)), Known(c.Op.Int("kv_num_heads", 0))
	q, k, v := c.heads(0, n, queries), c.heads(1, n, keys), c.heads(2, n, keys)
	batch := c.Meet(c.Meet(q[0], k[0]), v[0])
	if n == 4 {
		c.Set(0, NewType(c.Elem(0), batch, q[1], q[2], v[3]))
	} else {
		c.Set(0, NewType(c.Elem(0), batch, q[2], q[1].Times(v[3])))
	}
	past := Known(0)
	if c.Has(4) {
		past = c.sizesOf(4, 4)[2]
	}
	all := past.Plus(c.Meet(k[2], v[2]))
	c.Set(1, NewType(c.Elem(1), batch, k[1], all, k[3]))
	c.Set(2, NewType(c.Elem(2), batch, v[1], all, v[3]))
	c.Set(3, NewType(c.Elem(0), batch, q[1], q[2], all))
}

// heads returns the shape of an input of n dimensions with the heads as the second one.
func (c *Call) heads(k, n int, heads Dim) []Dim {
	s := c.sizesOf(k, n)
	if n == 4 {
		return s
	}
	if h, _ := heads.Number(); h < 1 {
		c.Fail("inputs of 3 dimensions need q_num_heads and kv_num_heads")
	}
	return []Dim{s[0], heads, s[1], c.exactly(s[2], heads)}
}

func inferLinearAttention(c *Call) {
	queries, keys := Known(c.Op.Int("q_num_heads", 0)), Known(c.Op.Int("kv_num_heads", 0))
	q, k, v := c.heads(0, 3, queries), c.heads(1, 3, keys), c.heads(2, 3, keys)
	batch := c.Meet(c.Meet(q[0], k[0]), v[0])
	c.Set(0, NewType(c.Elem(0), batch, q[2], queries.Times(v[3])))
	c.Set(1, NewType(c.Elem(3), batch, keys, k[3], v[3]))
}
