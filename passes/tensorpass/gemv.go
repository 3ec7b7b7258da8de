package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// gemmToGemvPass returns the pass local_gemm_to_gemv.
func gemmToGemvPass(name string) rewrite.GraphRewriter {
	var rules []rewrite.NodeRewriter
	for _, l := range append(textRules("gemv", goRules{"local_gemv_of_sum": {on(array.Add, array.Sub), nil, 0, gemvOfSum}}), named(allRules(), "local_dimshuffle_lift")) {
		rules = append(rules, l.Rule)
	}
	q := &rewrite.Equilibrium{Name: name, MaxUse: 5, Rules: rules}
	q.Prepare()
	return &documented{q, "products with a single row or column are products with a vector: Gemm and Dot22 → Gemv and Ger", isOfGemv}
}

// isOfGemv reports whether local_gemm_to_gemv has rules for an op, or looks for it in a sum.
func isOfGemv(op fgraph.Op) bool {
	switch op.(type) {
	case tensor.GemmOp, tensor.Dot22Op, tensor.GemvOp, tensor.DimShuffleOp:
		return true
	}
	return false
}

// transposed returns the transpose of a matrix.
func transposed(v *variable) *variable { return shuffled(v, tensor.NewDimShuffle(1, 0)) }

// gemvFunctions are what the rules of products with vectors ask.
var gemvFunctions = []pattern.Function{
	value("(buffer x)", 0, "memory for the vector that the row or column x is", func(a pattern.Args) *variable {
		x := a.Vars[0]
		d := slices.IndexFunc(typeOf(x).Shape(), func(size int) bool { return size != 1 })
		return tensor.AllocEmpty(dtypeOf(x), tensor.ShapesOf(a.Context.Graph()).Dim(x, d))
	}),
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
		in[1] = combined(array.Mul, in[1], t.scalar())
		others, products = append(others, term{matrix: again(t.matrix.Owner(), in...), dtype: t.dtype, uses: 1}), nil
	case target < 0:
		target = len(others)
		others, products = append(others, products[0]), products[1:]
	}
	for _, t := range products {
		a := t.matrix.Owner()
		in := slices.Clone(a.Inputs())
		in[0], in[1], in[4] = others[target].matrix, combined(array.Mul, in[1], t.scalar()), others[target].scalar()
		others[target] = term{matrix: again(a, in...), dtype: t.dtype, uses: 1}
	}
	return replace(c, n, total(others, out), n.Inputs()...)
}

// isGemv reports whether a term of a sum is a product of a matrix and a vector to which nothing is
// added, and which nothing outside the sum uses.
func isGemv(t term) bool {
	a, op, ok := owner[tensor.GemvOp](t.matrix)
	return ok && t.sole() && !op.Inplace && is(a.Inputs()[4], 0)
}
