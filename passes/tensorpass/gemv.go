package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// gemmToGemvPass returns the pass local_gemm_to_gemv.
func gemmToGemvPass(name string) rewrite.GraphRewriter {
	var rules []rewrite.NodeRewriter
	for _, l := range []Local{
		rule(0, "local_gemm_to_gemv", onType[tensor.GemmOp](), 1, gemmToGemv,
			"a product with a row or a column is a product with a vector: Gemm → Gemv"),
		rule(0, "local_gemm_to_ger", onType[tensor.GemmOp](), 1, gemmToGer,
			"a product of a column and a row is an outer product: Gemm → Ger"),
		rule(0, "local_dot22_to_ger_or_gemv", onOp(tensor.Dot22Op{}), 0, dot22ToGerOrGemv,
			"a product with a row or a column is a product with a vector, or an outer product"),
		rule(0, "local_gemv_of_sum", on(array.Add, array.Sub), 0, gemvOfSum,
			"a product of a matrix and a vector adds the terms next to it: b*z + a*Gemv(v, 1, X, y, 0) → Gemv(z, a, X, y, b), for scalars a and b"),
		dimShuffleLiftRule(),
	} {
		rules = append(rules, l.Rule)
	}
	return &documented{&rewrite.Equilibrium{Name: name, MaxUse: 5, Rules: rules},
		"products with a single row or column are products with a vector: Gemm and Dot22 → Gemv and Ger"}
}

func isRow(v *variable) bool { return typeOf(v).Dim(0) == 1 }
func isCol(v *variable) bool { return typeOf(v).Dim(1) == 1 }

// asVector drops dimension d of a matrix, which is known to have size 1.
func asVector(v *variable, d int) *variable { return shuffled(v, tensor.NewDimShuffle(1-d)) }

// fromVector adds dimension d, of size 1, to a vector.
func fromVector(v *variable, d int) *variable {
	if d == 0 {
		return tensor.DimShuffle(v, array.NewAxis, 0)
	}
	return tensor.DimShuffle(v, 0, array.NewAxis)
}

// gemv returns a*x·y + b*z.
func gemv(z, a, x, y, b *variable) *variable { return tensor.MustApply(tensor.GemvOp{}, z, a, x, y, b) }

// transposed returns the transpose of a matrix.
func transposed(v *variable) *variable { return shuffled(v, tensor.NewDimShuffle(1, 0)) }

func gemmToGemv(c *rewrite.Context, n *apply) (result, error) {
	z, a, x, y, b := n.Inputs()[0], n.Inputs()[1], n.Inputs()[2], n.Inputs()[3], n.Inputs()[4]
	switch {
	case opOf[tensor.GemmOp](n).Inplace:
		return c.Miss("it is in place"), nil
	case isRow(x) && isRow(z) && !isCol(y):
		return replace(c, n, fromVector(gemv(asVector(z, 0), a, transposed(y), asVector(x, 0), b), 0))
	case isCol(y) && isCol(z):
		return replace(c, n, fromVector(gemv(asVector(z, 1), a, x, asVector(y, 1), b), 1))
	}
	return c.Miss("neither factor is a row or a column"), nil
}

func gemmToGer(c *rewrite.Context, n *apply) (result, error) {
	z, a, x, y, b := n.Inputs()[0], n.Inputs()[1], n.Inputs()[2], n.Inputs()[3], n.Inputs()[4]
	if opOf[tensor.GemmOp](n).Inplace || !isCol(x) || !isRow(y) || !is(b, 1) {
		return c.Miss("it does not add the product of a column and a row"), nil
	}
	return replace(c, n, tensor.MustApply(tensor.GerOp{}, z, a, asVector(x, 1), asVector(y, 0)))
}

func dot22ToGerOrGemv(c *rewrite.Context, n *apply) (result, error) {
	x, y := n.Inputs()[0], n.Inputs()[1]
	dtype := dtypeOf(x)
	zero, one := full(dtype, 0), full(dtype, 1)
	s := tensor.ShapesOf(c.Graph())
	switch {
	case isCol(x) && isRow(y):
		z := tensor.Alloc(zero, s.Dim(x, 0), s.Dim(y, 1))
		if !n.Out().Type().Accepts(z.Type()) {
			return c.Miss("the result is a single row or column"), nil
		}
		return replace(c, n, tensor.MustApply(tensor.GerOp{}, z, one, asVector(x, 1), asVector(y, 0)))
	case isRow(x) && !isCol(y):
		z := tensor.AllocEmpty(dtype, s.Dim(y, 1))
		return replace(c, n, fromVector(gemv(z, one, transposed(y), asVector(x, 0), zero), 0))
	case isCol(y) && !isRow(x):
		z := tensor.AllocEmpty(dtype, s.Dim(x, 0))
		return replace(c, n, fromVector(gemv(z, one, x, asVector(y, 1), zero), 1))
	case isRow(x) && isCol(y):
		return replace(c, n, tensor.PadLeft(tensor.Dot(asVector(x, 0), asVector(y, 1)), 2))
	}
	return c.Miss("neither factor is a row or a column"), nil
}

// gemvOfSum works on the outermost sum, as gemm does, and takes all products in it at once: in sums
// of thousands, one after the other would take long.
func gemvOfSum(c *rewrite.Context, n *apply) (result, error) {
	out := n.Out()
	if typeOf(out).NDim() != 1 || !isFloat(out) || !addCanonizer.outermost(n) {
		return c.Miss("it is not the outermost sum of vectors of floats"), nil
	}
	var products, others []term // in their order
	target := -1                // the index in others of the term that the products are added to
	for _, t := range scaledTerms(out) {
		fits := samePattern(t.matrix, out) && dtypeOf(t.matrix) == dtypeOf(out)
		if fits && isGemv(t) {
			products = append(products, t)
			continue
		}
		if fits && target < 0 {
			target = len(others)
		}
		others = append(others, t)
	}
	switch {
	case len(products) == 0:
		return c.Miss("no term is a product with a vector, with a single use"), nil
	case target < 0 && len(products) == 1 && products[0].uses == 1:
		return c.Miss("no other term has its shape"), nil
	case target < 0 && len(products) == 1:
		t := products[0]
		in := slices.Clone(t.matrix.Owner().Inputs())
		in[1] = timesScalar(in[1], t.scalar())
		others, products = append(others, term{matrix: again(t.matrix.Owner(), in...), uses: 1}), nil
	case target < 0:
		target = len(others)
		others, products = append(others, products[0]), products[1:]
	}
	for _, t := range products {
		a := t.matrix.Owner()
		in := slices.Clone(a.Inputs())
		in[0], in[1], in[4] = others[target].matrix, timesScalar(in[1], t.scalar()), others[target].scalar()
		others[target] = term{matrix: again(a, in...), uses: 1}
	}
	return replace(c, n, total(others, out), n.Inputs()...)
}

// isGemv reports whether a term of a sum is a product of a matrix and a vector to which nothing is
// added, and which nothing outside the sum uses.
func isGemv(t term) bool {
	a, op, ok := owner[tensor.GemvOp](t.matrix)
	return ok && t.sole() && !op.Inplace && is(a.Inputs()[4], 0)
}

// timesScalar returns the product of two scalars.
func timesScalar(a, b *variable) *variable {
	x, ok := uniform(a)
	y, ok2 := uniform(b)
	switch {
	case ok && ok2:
		return full(dtypeOf(a), x*y)
	case ok && x == 1:
		return b
	case ok2 && y == 1:
		return a
	}
	return tensor.Mul(a, b)
}
