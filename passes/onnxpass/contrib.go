package onnxpass

import (
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
	attributesFunction("skip_epsilon({a})", "the attribute epsilon of a normalization", func(a pattern.Args, _ attributeList) attributeList {
		return attributeList{ir.Float("epsilon", parse(a.Params[0]).Float("epsilon", 1e-5))}
	}),
	attributesFunction("quick_alpha(a)", "the number a as the attribute alpha", func(a pattern.Args, _ attributeList) attributeList {
		return attributeList{ir.Float("alpha", numberAt(a, 0))}
	}),
}
