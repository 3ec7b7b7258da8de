package tensor

import "github.com/nnopt/nnopt/fgraph"

// conform returns a gradient g with respect to v in the type of v: one knows that a dimension has
// size 1 and the other does not. If more is different it returns g.
func conform(g, v *fgraph.Variable) *fgraph.Variable {
	t, u := TypeOf(v), TypeOf(g)
	if t.Accepts(u) || t.NDim() != u.NDim() || t.DType() != u.DType() || t.IsCSR() || u.IsCSR() {
		return g
	}
	shape, wide := u.Shape(), false
	for d := range shape {
		switch n := t.Dim(d); {
		case n == 1 && shape[d] == Unknown:
			shape[d] = 1
		case n == Unknown && shape[d] == 1:
			wide = true
		case n != shape[d] && n != Unknown && shape[d] != Unknown:
			return g
		}
	}
	g = SpecifyShape(g, shape...)
	if wide { // the size of v is 1 when the function runs
		g = Second(v, g)
	}
	return g
}
