package onnxpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/pattern"
)

// contribFunctions are about nodes that ONNX Runtime has.
func contribFunctions(v vocabulary) []pattern.Function {
	return append(slices.Clone(contribGuards),
		v.building("(whole_rows m s n)", 1, "the mask m with a row for each of the scores s, and not one for all; of n, whose last dimension but one is that of rows", wholeRows),
		v.building("(heads_together n)", 1, "[N, heads, rows, size] as [N, rows, heads*size]", func(b *ir.Builder, vars []*fgraph.Variable) *fgraph.Variable {
			dims, _ := ir.TypeOf(vars[0]).Shape()
			return b.Do("Reshape", b.Do("Transpose", vars[0], ir.Ints("perm", 0, 2, 1, 3)), []int64{0, 0, number(b, dims[1].Times(dims[3]))})
		}),
		v.building("(rows_of t)", 1, "[N, rows, size] as a table [N*rows, size]", func(b *ir.Builder, vars []*fgraph.Variable) *fgraph.Variable {
			dims, _ := ir.TypeOf(vars[0]).Shape()
			return b.Do("Reshape", vars[0], []int64{-1, number(b, dims[len(dims)-1])})
		}),
		v.building("(places t)", 1, "where the rows of t, [N, rows, size], are in the table that they are", func(b *ir.Builder, vars []*fgraph.Variable) *fgraph.Variable {
			shape := sizes(b, vars[0], 0, 2)
			n := b.Do("ReduceProd", shape, ir.Int("keepdims", 0))
			return b.Do("Reshape", b.Do("Range", ir.Int64(0), n, ir.Int64(1)), shape)
		}),
	)
}

// number returns a size, which has to be known.
func number(b *ir.Builder, d ir.Dim) int64 {
	n, ok := d.Number()
	if !ok {
		b.Fail("an unknown size %v", d)
	}
	return n
}

// wholeRows expands a mask: ONNX Runtime wants a row for each query.
func wholeRows(b *ir.Builder, vars []*fgraph.Variable) *fgraph.Variable {
	m, n := vars[0], vars[2]
	rows, _ := ir.TypeOf(m).Shape()
	scores, _ := ir.TypeOf(vars[1]).Shape()
	if rows[2].Same(scores[2]) {
		return m
	}
	one := ir.Int64s(1)
	return b.Do("Expand", m, b.Do("Concat", one, one, sizes(b, n, int64(ir.TypeOf(n).Rank()-2), 1), one, ir.Int("axis", 0)))
}

// sizes returns some sizes of a tensor.
func sizes(b *ir.Builder, x *fgraph.Variable, from, n int64) *fgraph.Variable {
	return b.Do("Slice", b.Do("Shape", x), []int64{from}, []int64{from + n}, []int64{0})
}

var contribGuards = []pattern.Function{
	pattern.NewBuilder("(left_out x)", 0, "an input that is left out", func(pattern.Args) (*fgraph.Variable, error) { return ir.Missing(), nil }),
	pattern.NewGuard("parts_of(y, q)", 2, "y is q, whose last dimension, the third one, is divided in two", func(a pattern.Args) bool {
		y, _ := ir.TypeOf(a.Vars[0]).Shape()
		q, _ := ir.TypeOf(a.Vars[1]).Shape()
		return len(y) == 4 && len(q) == 3 && q[0].Same(y[0]) && q[1].Same(y[1]) && numbers(y[2:]) && q[2].Same(y[2].Times(y[3]))
	}),
	pattern.NewGuard("heads(q, k, v)", 1, "queries q, turned keys k and values v are of as many items and heads, whose sizes are known", func(a pattern.Args) bool {
		q, _ := ir.TypeOf(a.Vars[0]).Shape()
		for _, v := range a.Vars[1:] {
			if x, _ := ir.TypeOf(v).Shape(); len(q) != 4 || len(x) != 4 || !x[0].Same(q[0]) || !x[1].Same(q[1]) {
				return false
			}
		}
		return numbers(q[1:2]) && numbers(q[3:])
	}),
	pattern.NewGuard("mask(m, s)", 2, "m has a row for each of the scores s, or one for all", func(a pattern.Args) bool {
		m, _ := ir.TypeOf(a.Vars[0]).Shape()
		s, _ := ir.TypeOf(a.Vars[1]).Shape()
		return len(m) == 4 && len(s) == 4 && broadcastTo(a.Vars[0], a.Vars[1]) && m[3].Same(s[3])
	}),
	pattern.NewGuard("twice({a}, t, x)", 1, "a Concat of t, [N, rows, size], with itself has rows for x, [N, heads, rows, twice the size]", func(a pattern.Args) bool {
		t, _ := ir.TypeOf(a.Vars[0]).Shape()
		x, _ := ir.TypeOf(a.Vars[1]).Shape()
		axis, ok := axisOf(parse(a.Params[0]), 0, len(t))
		return ok && axis == 2 && len(t) == 3 && len(x) == 4 && t[0].Same(x[0]) && t[1].Same(x[2]) && t[2].Times(ir.Known(2)).Same(x[3]) && numbers(t[2:])
	}),
	attributesFunction("attention(n)", "the attributes of attention whose queries are n, which have their factor", func(a pattern.Args, _ attributeList) attributeList {
		return attentionOf(a, 1)
	}),
	attributesFunction("attention_times(n, c)", "the attributes of attention whose queries are n, with the factor c", func(a pattern.Args, _ attributeList) attributeList {
		return attentionOf(a, numberAt(a, 1))
	}),
	attributesFunction("attention_over(n, c)", "the attributes of attention whose queries are n, with the divisor c", func(a pattern.Args, _ attributeList) attributeList {
		return attentionOf(a, 1/numberAt(a, 1))
	}),
	pattern.NewGuard("of_last(b, x)", 2, "b has an element for each of the last dimension of x, which has 2 or 3 dimensions", func(a pattern.Args) bool {
		b, ranked := ir.TypeOf(a.Vars[0]).Shape()
		x, too := ir.TypeOf(a.Vars[1]).Shape()
		return ranked && too && len(b) == 1 && (len(x) == 2 || len(x) == 3) && b[0].Same(x[len(x)-1])
	}),
	pattern.NewGuard("along_last({a}, x)", 1, "a normalization of x is along the last dimension, and computes with float32s", func(a pattern.Args) bool {
		rank := ir.TypeOf(a.Vars[0]).Rank()
		axis, ok := axisOf(parse(a.Params[0]), -1, rank)
		return ok && axis == rank-1 && parse(a.Params[0]).Int("stash_type", 1) == 1
	}),
	pattern.NewGuard("halves({a}, p, q, x)", 2, "p is the first half of the last dimension of x, of four, and q the second one; a Concat of two such halves makes it whole again", func(a pattern.Args) bool {
		const last = 3
		p, q := a.Vars[0], a.Vars[1]
		dims, _ := ir.TypeOf(a.Vars[2]).Shape()
		if len(dims) != last+1 {
			return false
		}
		axis, whole := axisOf(parse(a.Params[0]), 0, len(dims))
		low, ok := alone(p.Owner(), last)
		high, too := alone(q.Owner(), last)
		n, known := dims[last].Number()
		return whole && axis == last && ok && too && known && n%2 == 0 && low.begin == 0 && low.end == n/2 && high.begin == n/2 && high.end == n
	}),
	pattern.NewGuard("angles({g}, t, u, i, c, p)", 2, "c has a row of the table t, which is as large as u, for each item and place of p, whose position is in i, with an element for each of p", func(a pattern.Args) bool {
		dims := func(k int) []ir.Dim { list, _ := ir.TypeOf(a.Vars[k]).Shape(); return list }
		t, i, c, p := dims(0), dims(2), dims(3), dims(4)
		axis, ok := axisOf(parse(a.Params[0]), 0, 2)
		return ok && axis == 0 && len(t) == 2 && len(i) == 2 && len(c) == 4 && len(p) == 4 && ir.TypeOf(a.Vars[2]).Elem() == onnx.Int64 &&
			sameShape(a.Vars[0], a.Vars[1]) && t[1].Same(p[3]) && i[0].Same(p[0]) && i[1].Same(p[2]) && c[0].Same(p[0]) && c[1].Is(1) && c[2].Same(p[2])
	}),
	attributesFunction("skip_epsilon({a})", "the attribute epsilon of a normalization", func(a pattern.Args, _ attributeList) attributeList {
		return attributeList{ir.Float("epsilon", parse(a.Params[0]).Float("epsilon", 1e-5))}
	}),
}

func attentionOf(a pattern.Args, scale float32) attributeList {
	dims, _ := ir.TypeOf(a.Vars[0]).Shape()
	n, _ := dims[1].Number()
	return attributeList{ir.Int("num_heads", n), ir.Float("scale", scale)}
}

// numbers reports whether all sizes are known.
func numbers(dims []ir.Dim) bool {
	return !slices.ContainsFunc(dims, func(d ir.Dim) bool { _, ok := d.Number(); return !ok })
}
