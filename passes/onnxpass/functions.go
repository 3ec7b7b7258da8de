package onnxpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/pattern"
)

// functions are those that rules call.
func (v vocabulary) functions() []pattern.Function {
	return slices.Concat(nopFunctions, reshapeFunctions, indexFunctions,
		computedFunctions, linearFunctions(v), padFunctions, productFunctions, activationFunctions, composeFunctions, normFunctions, reductionFunctions, contribFunctions(v), []pattern.Function{
			pattern.NewGuard("fits(x)", 1, "x is known to have the type and shape of what is replaced", func(a pattern.Args) bool { return sameType(a.Vars[0], a.Root.Out()) }),
		})
}

// building returns a function of rules that builds a value of others.
func (v vocabulary) building(usage string, depth int, doc string, build func(b *ir.Builder, vars []*fgraph.Variable) *fgraph.Variable) pattern.Function {
	return pattern.NewBuilder(usage, depth, doc, func(a pattern.Args) (*fgraph.Variable, error) {
		return v.operators.Build(func(b *ir.Builder) *fgraph.Variable { return build(b, a.Vars) })
	})
}

// computing is building for a value that is computed at once.
func (v vocabulary) computing(usage string, depth int, doc string, build func(b *ir.Builder, vars []*fgraph.Variable) *fgraph.Variable) pattern.Function {
	return pattern.NewBuilder(usage, depth, doc, func(a pattern.Args) (*fgraph.Variable, error) {
		return v.compute(a, func(b *ir.Builder) *fgraph.Variable { return build(b, a.Vars) })
	})
}

// sameType reports whether two values are known to have the same type and shape.
func sameType(x, y *fgraph.Variable) bool {
	return ir.TypeOf(x).Elem() == ir.TypeOf(y).Elem() && sameShape(x, y)
}

// sameShape reports whether two values are known to have the same shape.
func sameShape(x, y *fgraph.Variable) bool {
	a, ranked := ir.TypeOf(x).Shape()
	b, too := ir.TypeOf(y).Shape()
	return ranked && too && slices.EqualFunc(a, b, ir.Dim.Same)
}
