package ir

import (
	"math"

	"github.com/nnopt/nnopt/onnx"
)

// contribAttention are attention and what is computed for it in ONNX Runtime.
var contribAttention = []Operator{
	contrib("Attention", 2, 7, nil, func(b *Builder) []variable {
		b.only(7, "do_rotary", "past_present_share_buffer", "rotary_embedding_dim")
		return b.selfAttention(b.plus(b.Do("MatMul", b.x(0), b.x(1)), b.x(2)), b.x(4), b.x(5), 3)
	}),
	contrib("QAttention", 5, 9, nil, func(b *Builder) []variable {
		b.only(9, "do_rotary", "past_present_share_buffer")
		y := b.cast(b.Do("MatMulInteger", b.input(0), b.input(1), b.input(6), b.input(7)), onnx.Float)
		y = b.add(b.mul(y, b.mul(b.x(3), b.x(4))), b.x(2))
		return b.selfAttention(y, b.x(8), nil, 5)
	}),
	contrib("MultiHeadAttention", 1, 8, nil, multiHead),
	contrib("GroupQueryAttention", 7, 12, inferGroupQuery, groupQuery),
	contrib("MRotaryEmbedding", 4, 4, inferSame, sections),
	contrib("LinearAttentionGate", 4, 4, nil, func(b *Builder) []variable {
		return []variable{b.mul(b.Do("Softplus", b.add(b.x(0), b.x(1))), b.x(2)), b.Do("Sigmoid", b.x(3))}
	}),
	contrib("RotaryEmbedding", 4, 4, inferSame, func(b *Builder) []variable {
		n := b.Op.Int("num_heads", 0)
		if x := b.input(0); b.Op.Int("rotary_embedding_dim", 0) == 0 && b.rankOf(x) == 3 {
			n = b.number(x, 2) / max(2*b.number(b.input(2), 1), 1)
		}
		return b.rotary(n, func(x variable) (cos, sin variable) {
			at := b.input(1)
			if b.rankOf(at) == 1 {
				at = b.unsqueeze(b.add(at, b.upTo(b.size(x, 2))), 0)
			}
			return b.angles(b.x(2), at), b.angles(b.x(3), at)
		})
	}),
}

// only fails if the op has more inputs than so many, or one of some attributes.
func (b *Builder) only(inputs int, attributes ...string) {
	for k := inputs; k < b.numInputs(); k++ {
		b.failIf(b.has(k), "input %d", k)
	}
	for _, a := range b.keep(attributes...) {
		b.failIf(a.Int != 0, "%s is %d", a.Name, a.Int)
	}
}

// heads makes heads a dimension of their own, the second one: [N, length, heads·size] becomes [N, heads, length, size].
func (b *Builder) heads(x variable, n int64) variable {
	b.failIf(n < 1, "the number of heads is %d", n)
	size := int64(-1)
	if all, ok := b.known(x, 2); ok {
		size = all / n
	}
	return b.transpose(b.reshape(x, 0, 0, n, size), 0, 2, 1, 3)
}

// merged is the inverse of heads.
func (b *Builder) merged(x variable) variable {
	n, ok := b.known(x, 1)
	size, too := b.known(x, 3)
	if n *= size; !ok || !too {
		n = -1
	}
	return b.reshape(b.transpose(x, 0, 2, 1, 3), 0, 0, n)
}

// angles returns the rows of a table of cosines or sines for positions, [N or 1, length].
func (b *Builder) angles(table, positions variable) variable {
	return b.unsqueeze(b.Do("Gather", table, positions, Int("axis", 0)), 1)
}

// rotary turns pairs of elements of the first input, whose heads may be packed, by angles.
func (b *Builder) rotary(heads int64, angles func(x variable) (cos, sin variable)) []variable {
	x, packed := b.x(0), b.rankOf(b.input(0)) != 4
	if packed {
		x = b.heads(x, heads)
	}
	cos, sin := angles(x)
	y := b.turned(x, cos, sin, b.Op.Int("interleaved", 0) != 0)
	if packed {
		y = b.merged(y)
	}
	return []variable{y}
}

// turned turns pairs of elements of heads by angles, [N or 1, 1, length, pairs].
func (b *Builder) turned(x, cos, sin variable, interleaved bool) variable {
	half := b.number(cos, 3)
	var y variable
	if interleaved {
		part := func(from int64) variable {
			return b.Do("Slice", x, []int64{from}, []int64{2 * half}, []int64{3}, []int64{2})
		}
		re, im := b.rotation(part(0), part(1), cos, sin)
		y = b.reshape(b.concat(4, b.unsqueeze(re, 4), b.unsqueeze(im, 4)), 0, 0, 0, 2*half)
	} else {
		re, im := b.rotation(b.slice(x, 3, 0, half), b.slice(x, 3, half, 2*half), cos, sin)
		y = b.concat(3, re, im)
	}
	// A table that is narrower than half a head turns only the first elements of it.
	if n, ok := b.known(x, 3); ok && n == 2*half {
		return y
	}
	return b.concat(3, y, b.rest(x, 3, 2*half))
}

func (b *Builder) rotation(x, y, cos, sin variable) (re, im variable) {
	return b.sub(b.mul(x, cos), b.mul(y, sin)), b.add(b.mul(x, sin), b.mul(y, cos))
}

// sections turns pairs of elements by angles of several positions, [3, N, length]: sections of pairs have one each.
func sections(b *Builder) []variable {
	b.only(4, "mrope_interleaved", "rotary_interleaved", "interleaved")
	x := b.heads(b.x(0), b.Op.Int("num_heads", 0))
	angles := func(table variable) variable {
		var parts []variable
		at := int64(0)
		for i, n := range b.Ints("mrope_section") {
			positions := b.Do("Gather", b.input(1), Int64(int64(i)), Int("axis", 0))
			parts = append(parts, b.Do("Gather", b.slice(table, 1, at, at+n), positions, Int("axis", 0)))
			at += n
		}
		return b.unsqueeze(b.concat(2, parts...), 1)
	}
	return []variable{b.merged(b.turned(x, angles(b.x(2)), angles(b.x(3)), false))}
}

// scores multiplies queries and keys, and the scale of the op.
func (b *Builder) scores(q, k variable) variable {
	scale := float64(b.Op.Float("scale", 0))
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(b.number(q, 3)))
	}
	return b.mul(b.Do("MatMul", q, b.swapped(k)), scale)
}

// capped bounds scores by softcap, if there is one.
func (b *Builder) capped(scores variable) variable {
	if limit := float64(b.Op.Float("softcap", 0)); limit > 0 {
		return b.mul(b.Do("Tanh", b.div(scores, limit)), limit)
	}
	return scores
}

// lowest is the least float32.
const lowest = -math.MaxFloat32

// mask returns what is added to scores, [N, heads, length, keys], nil if that is nothing. Input k is the mask: a number
// for each key, or for each query and key, or how many keys there are for an item, and from which on. The keys end with
// those that are new.
func (b *Builder) mask(k int, scores, fresh variable) variable {
	filter := float64(b.Op.Float("mask_filter_value", -10000))
	var add variable
	choose := func(masked variable, yes, no any) variable { return b.Do("Where", masked, yes, no) }
	keys := b.upTo(b.size(scores, 3))
	if m := b.input(k); m != nil {
		switch b.rankOf(m) {
		case 1:
			m = b.cast(m, onnx.Int64)
			items := b.unsqueeze(b.size(scores, 0), 0)
			column := func(v variable) variable { return b.unsqueeze(v, 1) }
			masked := b.Do("GreaterOrEqual", b.unsqueeze(keys, 0), column(b.Do("Slice", m, []int64{0}, items, []int64{0})))
			if n := b.size(scores, 0); !b.sameFirst(m, scores) {
				// There are starts behind the ends if there are twice as many.
				both := b.Do("Equal", b.size(m, 0), b.mul(n, 2))
				some := b.concat(0, m, b.mul(b.Do("Slice", m, []int64{0}, items, []int64{0}), 0))
				starts := b.Do("Slice", some, items, b.mul(items, 2), []int64{0})
				starts = column(b.Do("Where", both, starts, Int64(0)))
				masked = b.Do("Or", masked, b.Do("Less", b.unsqueeze(keys, 0), starts))
			}
			add = b.unsqueeze(choose(masked, scalarOf(filter), scalarOf(0)), 1, 2)
		case 2:
			add = b.unsqueeze(choose(b.Do("Greater", m, 0), scalarOf(0), scalarOf(filter)), 1, 2)
		case 3:
			add = b.unsqueeze(choose(b.Do("Greater", m, 0), scalarOf(0), scalarOf(filter)), 1)
		default:
			b.Fail("a mask of %d dimensions", b.rankOf(m))
		}
	}
	if b.Op.Int("unidirectional", 0) != 0 {
		// The keys of the past come first, so the first query is at the first new key.
		last := b.add(b.upTo(b.size(scores, 2)), b.sub(b.size(scores, 3), b.size(fresh, 2)))
		// ONNX Runtime takes it that the last query sees all keys, also where there are more of them than queries.
		if m, _ := TypeOf(scores).Shape(); b.Op.Type == "MultiHeadAttention" && !m[3].Same(m[2]) {
			last = b.concat(0, b.Do("Slice", last, []int64{0}, []int64{-1}), b.unsqueeze(b.size(scores, 3), 0))
		}
		otherwise := scalarOf(0)
		if add != nil {
			otherwise = add
		}
		// Where a query would look ahead the filter does not count.
		add = choose(b.Do("Greater", b.unsqueeze(keys, 0), b.unsqueeze(last, 1)), scalarOf(lowest), otherwise)
	}
	return add
}

// selfAttention attends to a packed product of queries, keys and values.
func (b *Builder) selfAttention(qkv, past, bias variable, mask int) []variable {
	n := b.Op.Int("num_heads", 0)
	sizes := b.Ints("qkv_hidden_sizes")
	if sizes == nil {
		third := b.number(qkv, 2) / 3
		sizes = []int64{third, third, third}
	}
	parts := b.several(3, "Split", qkv, sizes, Int("axis", 2))
	q, k, v := b.heads(parts[0], n), b.heads(parts[1], n), b.heads(parts[2], n)
	fresh := k
	// Keys and values of the past are one tensor.
	if past != nil {
		k = b.concat(2, b.Do("Gather", past, Int64(0), Int("axis", 0)), k)
		v = b.concat(2, b.Do("Gather", past, Int64(1), Int("axis", 0)), v)
	}
	scores := b.scores(q, k)
	scores = b.onto(b.onto(scores, b.mask(mask, scores, fresh)), bias)
	y := []variable{b.merged(b.Do("MatMul", b.Do("Softmax", scores, Int("axis", -1)), v))}
	if b.Op.Outputs > 1 {
		y = append(y, b.concat(0, b.unsqueeze(b.heldKeys(k, v, past), 0), b.unsqueeze(v, 0)))
	}
	return y
}

// heldKeys returns the keys as ONNX Runtime hands them on, in a tensor that has room for as many elements as values have:
// of larger keys those that come first, and behind smaller ones zeros, where ONNX Runtime may leave anything.
func (b *Builder) heldKeys(k, v, past variable) variable {
	size, held := b.number(k, 3), b.number(v, 3)
	if size == held || past != nil {
		return k // those of a past are as large as values
	}
	rows, flat := b.size(b.reshape(k, -1, size), 0), b.reshape(k, -1)
	if size < held {
		zeros := b.unsqueeze(b.mul(rows, int(held-size)), 0)
		flat = b.Do("Pad", flat, b.concat(0, Int64s(0), zeros))
	} else {
		flat = b.Do("Slice", flat, []int64{0}, b.unsqueeze(b.mul(rows, int(held)), 0), []int64{0})
	}
	return b.Do("Reshape", flat, b.Do("Shape", v))
}

func multiHead(b *Builder) []variable {
	n := b.Op.Int("num_heads", 0)
	if !b.has(1) || !b.has(2) || b.rankOf(b.input(0)) != 3 || b.rankOf(b.input(1)) == 5 {
		b.Fail("packed queries, keys and values")
	}
	parts := [3]variable{b.x(0), b.x(1), b.x(2)}
	at := int64(0)
	for i, x := range parts {
		if b.rankOf(x) == 4 {
			continue
		}
		// The bias is one vector for queries, keys and values.
		if bias := b.x(3); bias != nil {
			size := b.number(x, 2)
			x = b.add(x, b.slice(bias, 0, at, at+size))
			at += size
		}
		parts[i] = b.heads(x, n)
	}
	q, k, v := parts[0], parts[1], parts[2]
	if b.has(6) {
		k, v = b.concat(2, b.x(6), k), b.concat(2, b.x(7), v)
	}
	scores := b.scores(q, k)
	scores = b.onto(b.onto(scores, b.mask(4, scores, parts[1])), b.x(5))
	return []variable{b.merged(b.Do("MatMul", b.Do("Softmax", scores, Int("axis", -1)), v)), k, v, scores}
}

// inferGroupQuery: keys and values go on behind those of the past, in a buffer that may be longer than they are.
func inferGroupQuery(c *Call) {
	elem, q := c.Elem(0), c.sizesOf(0, 3)
	heads, keys := Known(c.Op.Int("num_heads", 1)), Known(c.Op.Int("kv_num_heads", 1))
	all := heads
	if !c.has(1) {
		all = heads.Plus(keys).Plus(keys)
	}
	size := c.exactly(q[2], all)
	total := c.one(6)
	c.Set(0, NewType(elem, q[0], q[1], heads.Times(size)))
	held := total
	if c.has(3) {
		switch past := c.sizesOf(3, 4)[2]; {
		case past.Is(0):
		case total.IsUnknown() || past.IsUnknown():
			held = UnknownDim
		default:
			held = past.max(total)
		}
	}
	for k := 1; k <= 2; k++ {
		c.Set(k, NewType(elem, q[0], keys, held, size))
	}
	c.Set(3, NewType(elem, q[0], heads, q[1], total))
}

// groupQuery: where the lengths of items, inputs 5 and 6, are left out, which the operator does not allow, all items are
// as long as the buffer of the past. Then it is simpler.
func groupQuery(b *Builder) []variable {
	heads, groups := b.Op.Int("num_heads", 0), b.Op.Int("kv_num_heads", 0)
	b.failIf(groups < 1 || heads%groups != 0, "%d heads of keys for %d of queries", groups, heads)
	q, k, v := b.x(0), b.x(1), b.x(2)
	if k == nil {
		size := b.number(q, 2) / (heads + 2*groups)
		parts := b.several(3, "Split", q, []int64{heads * size, groups * size, groups * size}, Int("axis", 2))
		q, k, v = parts[0], parts[1], parts[2]
	}
	q, k, v = b.heads(q, heads), b.heads(k, groups), b.heads(v, groups)
	length, past := b.size(q, 2), Int64s(0)
	var total, ends variable
	full := !b.has(5)
	if full {
		if b.has(3) {
			past = b.unsqueeze(b.size(b.input(3), 2), 0)
		}
		total = b.scalar(b.add(past, length))
		ends = b.unsqueeze(total, 0, 1)
	} else {
		total, ends = b.scalar(b.integers(6)), b.reshape(b.add(b.integers(5), 1), -1, 1)
		// A prompt has no past. The queries are the last tokens of an item otherwise.
		past = b.Do("Where", b.Do("Equal", length, total), Int64(0), b.sub(ends, length))
	}
	queries := b.add(past, b.unsqueeze(b.upTo(length), 0)) // [N or 1, length]
	if b.Op.Int("do_rotary", 0) != 0 {
		at := queries
		if b.has(9) {
			at = b.input(9)
		}
		cos, sin := b.angles(b.x(7), at), b.angles(b.x(8), at)
		interleaved := b.Op.Int("rotary_interleaved", 0) != 0
		q, k = b.rounded(b.turned(q, cos, sin, interleaved)), b.rounded(b.turned(k, cos, sin, interleaved))
	}
	presentK, presentV := k, v
	switch {
	case b.has(3) && full:
		k, v = b.concat(2, b.x(3), k), b.concat(2, b.x(4), v)
		presentK, presentV = k, v
	case b.has(3):
		presentK, presentV = b.behind(b.x(3), k, past, total), b.behind(b.x(4), v, past, total)
		// The buffer may be longer than what it holds, and only its first entries are attended to.
		cut := func(x variable) variable {
			return b.Do("Slice", x, []int64{0}, b.unsqueeze(total, 0), []int64{2})
		}
		k, v = cut(presentK), cut(presentV)
	}
	scores := b.scores(q, b.repeated(k, heads/groups))
	// ONNX Runtime's order: scale, cap, bias, mask.
	scores = b.onto(b.capped(scores), b.x(10))
	seen := b.unsqueeze(b.seen(queries, ends, total), 1)
	shown := scores
	scores = b.Do("Where", seen, scores, math.Inf(-1))
	weights := b.weights(scores)
	y := []variable{b.merged(b.Do("MatMul", weights, b.repeated(v, heads/groups))), presentK, presentV, nil}
	switch b.Op.Int("qk_output", 0) {
	case 1:
		y[3] = b.Do("Where", seen, shown, 0.0)
	case 2:
		y[3] = weights
	}
	return y
}

// repeated gives several queries in a row the same head.
func (b *Builder) repeated(x variable, n int64) variable {
	if n == 1 {
		return x
	}
	groups, size := b.number(x, 1), b.number(x, 3)
	return b.reshape(b.Do("Expand", b.unsqueeze(x, 2), []int64{1, 1, n, 1, 1}), 0, groups*n, -1, size)
}

// behind writes what is new to a buffer behind so many entries of each item. The buffer has at least as many as a total.
func (b *Builder) behind(buffer, x, past, total variable) variable {
	held := b.size(buffer, 2)
	n := b.Do("Max", held, total)
	at := b.unsqueeze(b.upTo(n), 0)
	// Behind the new entries any index will do if it is valid, since nobody looks there.
	fresh := b.Do("Min", b.Do("Max", b.sub(at, past), Int64(0)), b.sub(b.size(x, 2), Int64(1)))
	index := b.Do("Where", b.Do("Less", at, past), at, b.add(fresh, held)) // [N, n]
	shape := b.vector(b.size(x, 0), b.size(x, 1), n, b.size(x, 3))
	index = b.Do("Expand", b.unsqueeze(index, 1, 3), shape)
	return b.Do("GatherElements", b.concat(2, buffer, x), index, Int("axis", 2))
}

// seen tells which keys a query sees, [N, length, total]: those in front of it and itself, of which a window has the
// last ones; or all.
func (b *Builder) seen(queries, ends, total variable) variable {
	keys := b.unsqueeze(b.upTo(total), 0, 1)
	if b.Op.Int("causal", 1) == 0 {
		return b.Do("Less", keys, b.unsqueeze(ends, 2))
	}
	last := b.unsqueeze(queries, 2)
	seen := b.Do("LessOrEqual", keys, last)
	// A window of n keys includes the one of the query itself.
	if n := b.Op.Int("local_window_size", -1); n > 0 {
		seen = b.Do("And", seen, b.Do("Greater", keys, b.sub(last, int(n))))
	}
	return seen
}

// weights is the softmax of scores, with a further one that no key has: that of the head, or 0.
func (b *Builder) weights(scores variable) variable {
	var sink variable
	if b.has(11) {
		sink = b.reshape(b.x(11), 1, -1, 1, 1)
	} else if b.Op.Int("smooth_softmax", 0) == 0 {
		return b.Do("Softmax", scores, Int("axis", -1))
	} else {
		sink = vectorOf(0)
	}
	// The sink takes part in the maximum, so that no exponential overflows.
	most := b.Do("Max", b.reduce("ReduceMax", scores, -1), sink)
	e := b.Do("Exp", b.sub(scores, most))
	return b.div(e, b.add(b.reduce("ReduceSum", e, -1), b.Do("Exp", b.sub(sink, most))))
}
