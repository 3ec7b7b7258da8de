package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A term is a matrix or a vector times a scalar.
type term struct {
	factor *variable // without dimensions; nil: 1
	minus  bool
	matrix *variable
	dtype  array.DType // of the sum, and of the factor: a matrix of bools has no multiples of its type
	uses   int         // of the matrix, in the sum
}

// sole reports whether nothing outside the sum uses the matrix.
func (t term) sole() bool { return len(t.matrix.Clients()) <= t.uses }

// gemm works on the outermost sum, and takes as many products in it as there are.
func gemm(c *rewrite.Context, n *apply) (result, error) {
	out := n.Out()
	if typeOf(out).NDim() != 2 || !isFloat(out) || !addCanonizer.outermost(n) {
		return c.Miss("it is not the outermost sum of matrices of floats"), nil
	}
	terms := scaledTerms(out)
	// A matrix can be added to in place if it has the type of the result.
	accumulates := func(v *variable) bool { return samePattern(v, out) && dtypeOf(v) == dtypeOf(out) && !v.IsConstant() }
	isProduct := func(t term) bool {
		_, _, ok := owner[tensor.Dot22Op](t.matrix)
		// One with a constant factor, which is prepared once, takes what is added as an epilogue.
		return ok && t.sole() && accumulates(t.matrix) && !hasEpilogue(t.matrix.Owner())
	}
	isOther := func(t term) bool { return !isProduct(t) && accumulates(t.matrix) }
	merged := slices.ContainsFunc(terms, func(t term) bool { return t.uses > 1 && isProduct(t) })
	var gone []*variable
	for {
		at, to := slices.IndexFunc(terms, isProduct), slices.IndexFunc(terms, isOther)
		if at >= 0 && to < 0 { // add the second product to the first
			to = at
			if at = slices.IndexFunc(terms[to+1:], isProduct); at >= 0 {
				at += to + 1
			}
		}
		if at < 0 {
			break
		}
		d := terms[at].matrix.Owner()
		z := tensor.MustApply(tensor.GemmOp{}, terms[to].matrix, terms[at].scalar(), d.Inputs()[0], d.Inputs()[1], terms[to].scalar())
		gone = append(gone, terms[at].matrix)
		terms[to] = term{matrix: z, dtype: dtypeOf(out), uses: 1}
		terms = slices.Delete(terms, at, at+1)
	}
	if len(gone) == 0 && !merged {
		return c.Miss("no product of matrices with a single use is added to a matrix"), nil
	}
	v := conform(out, total(terms, out), n.Inputs()...)
	if v == nil {
		return c.Miss("the sum does not fit"), nil
	}
	return rewrite.Result{Outputs: []*variable{v}, Remove: gone}, nil
}

// scaledTerms returns the terms of a sum, one for each matrix or vector.
func scaledTerms(out *variable) []term {
	pos, neg := addCanonizer.terms(out)
	terms := make([]term, 0, len(pos)+len(neg))
	var places map[*variable]int // of matrices with other uses
	for i, v := range slices.Concat(pos, neg) {
		t := scaled(tensor.PadLeft(v, typeOf(out).NDim()), dtypeOf(out))
		t.minus, t.uses = i >= len(pos), 1
		if at, seen := places[t.matrix]; seen {
			terms[at] = terms[at].plus(t)
			continue
		}
		if !usedOnce(t.matrix) || !usedOnce(v) {
			if places == nil {
				places = make(map[*variable]int)
			}
			places[t.matrix] = len(terms)
		}
		terms = append(terms, t)
	}
	return terms
}

// plus returns the sum of two multiples of a matrix.
func (t term) plus(u term) term {
	return term{factor: combined(array.Add, t.scalar(), u.scalar()), matrix: t.matrix, dtype: t.dtype, uses: t.uses + u.uses}
}

// scaled takes a product of scalars and one matrix or vector apart.
func scaled(v *variable, dtype array.DType) term {
	whole := term{matrix: v, dtype: dtype}
	num, den := mulCanonizer.terms(v)
	if len(den) > 0 {
		return whole
	}
	t := term{dtype: dtype}
	var scalars []*variable
	for _, f := range num {
		switch {
		case scales(f, dtype):
			scalars = append(scalars, castTo(scalarFactor(f), dtype))
		case t.matrix == nil && typeOf(f).NDim() == typeOf(v).NDim():
			t.matrix = f
		default:
			return whole
		}
	}
	if t.matrix == nil || len(scalars) > 0 && !samePattern(t.matrix, v) {
		return whole
	}
	if len(scalars) > 0 {
		t.factor = product(scalars...)
	}
	return t
}

// scalar returns the factor of a term, with its sign.
func (t term) scalar() *variable {
	x, ok := 1.0, true
	if t.factor != nil {
		x, ok = uniform(t.factor)
	}
	switch {
	case ok && t.minus:
		return full(t.dtype, -x)
	case ok:
		return full(t.dtype, x)
	case t.minus:
		return tensor.Neg(t.factor)
	}
	return t.factor
}

// total returns the sum of terms of out.
func total(terms []term, out *variable) *variable {
	var pos, neg []*variable
	for _, t := range terms {
		v := t.matrix
		if t.factor != nil {
			v = tensor.Mul(t.factor, v)
		}
		if t.minus {
			neg = append(neg, v)
		} else {
			pos = append(pos, v)
		}
	}
	return addCanonizer.join(pos, neg, out)
}

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
