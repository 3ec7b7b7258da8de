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

// sameType reports whether two values are known to have the same type and shape.
func sameType(x, y *fgraph.Variable) bool {
	return ir.TypeOf(x).Elem() == ir.TypeOf(y).Elem() && sameShape(x, y)
}

// sameShape reports whether two values are known to have the same shape.
func sameShape(x, y *fgraph.Variable) bool {
	a, ranked := ir.TypeOf(x).Shape()
	b, too := ir.TypeOf(y).Shape()
	if !ranked || !too || len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Same(b[i]) {
			return false
		}
	}
	return true
}
