package onnxpass

import (
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/pattern"
)

// contribFunctions are about nodes that ONNX Runtime has.
var contribFunctions = []pattern.Function{
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
	attributesFunction("quick_alpha(a)", "the number a as the attribute alpha", func(a pattern.Args, _ attributeList) attributeList {
		return attributeList{ir.Float("alpha", numberAt(a, 0))}
	}),
}
