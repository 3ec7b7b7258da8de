package onnxpass

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/pattern"
)

// functions are those that rules call.
func (v vocabulary) functions() []pattern.Function {
	return []pattern.Function{
		pattern.NewGuardOfEach("fits(x)", 1, "x is known to have the type of what is replaced", nil),
	}
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
