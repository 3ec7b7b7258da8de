package nnet3pass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// leastProduct is the least number of parameters for which multiplyOnce and multiplyOut do
// something. They take 64 KB, the size of two first-level caches.
const leastProduct = 1 << 14

// multiplyOnce lets an affine component that reads features beside a vector for the whole
// utterance, such as an i-vector, multiply the vector once instead of once for every time. The
// product of the vector becomes a term of a sum.
//
// The columns of the vector decide whether the sum is divided, never the number of rows: where
// there are few rows, the product reads the assembled matrix as before but sums both parts
// separately too. So a row has the same bits whatever else is requested. Vectors with fewer than
// leastProduct parameters are left alone: their products cost next to nothing, and the order of the
// sum stays Kaldi's.
func multiplyOnce() rewrite.Rule {
	return ruleFor("local_multiply_once", "an affine multiplies rows of an input that it reads repeatedly only once: affine(append(x, v[rows])) → affine'(x) onto affine''(v)[rows]", 2,
		func(c *rewrite.Context, a *fgraph.Apply, op lower.Propagate) rewrite.Result {
			product, asm, ok := dividedProduct(c, a, op, true)
			if !ok {
				return rewrite.Result{}
			}
			from, v, ok := lastColumns(c.Graph(), a.Inputs()[0].Owner(), asm)
			if !ok {
				return c.Miss("the last columns are not those of an input that nothing else in the appended matrix comes from")
			}
			if n := int(from.NumCols) * product.OutputDim(); n < leastProduct {
				return c.Miss("the columns of %v have %d parameters, fewer than %d", v, n, leastProduct)
			}
			if 2*lower.TypeOf(v).Rows > asm.Rows {
				return rewrite.Replace(summedApart(a, op, product, asm, from))
			}
			return rewrite.Replace(multipliedOnce(a, op, product, asm, from))
		})
}

// lastColumns finds the input of the graph that the last columns of an assembled matrix, and no
// others, come from. Each row must be a row of the input. from is a term that reads it.
func lastColumns(g *fgraph.FunctionGraph, asm *fgraph.Apply, o *lower.Assemble) (from lower.Term, v *fgraph.Variable, ok bool) {
	last := slices.IndexFunc(o.Terms, func(t lower.Term) bool { return t.DstCol+t.NumCols == o.Cols })
	if last < 0 || o.Terms[last].DstCol == 0 {
		return from, nil, false
	}
	from = o.Terms[last]
	v = asm.Inputs()[from.Input]
	p, ok := lower.ProgramOf(g)
	n := slices.Index(g.Inputs(), v)
	if !ok || n < 0 || p.Inputs[n].Carried > 0 {
		return from, nil, false
	}
	rows := int32(0)
	for i := range o.Terms {
		t := &o.Terms[i]
		switch {
		case t.Input == from.Input:
			if t.DstCol != from.DstCol || t.SrcCol != from.SrcCol || t.NumCols != from.NumCols || t.Scale != 1 {
				return from, nil, false
			}
			rows += t.NumRows
		case t.DstCol+t.NumCols > from.DstCol:
			return from, nil, false
		}
	}
	// A row that occurs twice is a sum.
	return from, v, rows == o.Rows && len(vectorRows(o, from.Input)) == int(rows)
}

// vectorRows returns the pairs of rows that an input contributes to the assembled matrix, in the
// order of the rows of the matrix, each of which occurs once.
func vectorRows(o *lower.Assemble, input int32) []lower.RowPair {
	var pairs []lower.RowPair
	for i := range o.Terms {
		if t := &o.Terms[i]; t.Input == input {
			for k := range t.NumRows {
				pairs = append(pairs, t.Pair(k))
			}
		}
	}
	slices.SortFunc(pairs, func(p, q lower.RowPair) int { return int(p.Dst - q.Dst) })
	return slices.CompactFunc(pairs, func(p, q lower.RowPair) bool { return p.Dst == q.Dst })
}

// summedApart computes the same product with the columns of the vector in a separate sum.
func summedApart(a *fgraph.Apply, op lower.Propagate, p *component.Product, o *lower.Assemble, from lower.Term) *fgraph.Variable {
	rows := everyRow(o.Rows)
	q, pre := p.Splice([]component.Splice{
		{Cols: int(from.DstCol), Rows: rows},
		{Col: int(from.DstCol), Cols: int(from.NumCols), SrcCol: int(from.DstCol), Rows: rows, Apart: true},
	}, int(o.Rows), int(o.Cols), true, true)
	return runProduct(a, op, q, pre, a.Inputs(), o.Rows)
}

// multipliedOnce multiplies the rows of the vector, distributes the results, and adds the product
// of the other columns.
func multipliedOnce(a *fgraph.Apply, op lower.Propagate, p *component.Product, o *lower.Assemble, from lower.Term) *fgraph.Variable {
	asm := a.Inputs()[0].Owner()
	v, out := asm.Inputs()[from.Input], lower.TypeOf(a.Out())
	t := lower.TypeOf(v)
	q, pre := p.Splice([]component.Splice{
		{Col: int(from.DstCol), Cols: int(from.NumCols), SrcCol: int(from.SrcCol), Rows: everyRow(t.Rows), Apart: true},
	}, int(t.Rows), int(t.Cols), true, false)
	once := runProduct(a, op, q, pre, []*fgraph.Variable{v}, t.Rows)
	pairs := vectorRows(o, from.Input)
	spread := lower.NewAssemble(out.Rows, out.Cols, []lower.Term{{
		Scale: 1, DstRow: pairs[0].Dst, SrcRow: pairs[0].Src, NumRows: int32(len(pairs)), NumCols: out.Cols, Rows: pairs, At: from.At,
	}}, []*fgraph.Variable{once})

	var terms []lower.Term
	for _, t := range o.Terms {
		if t.Input != from.Input {
			terms = append(terms, t)
		}
	}
	rest := lower.NewAssemble(o.Rows, from.DstCol, terms, asm.Inputs())
	q, pre = p.Splice([]component.Splice{{Cols: int(from.DstCol), Rows: everyRow(o.Rows)}}, int(o.Rows), int(from.DstCol), false, true)
	op.Accumulate = true
	return runProduct(a, op, q, pre, []*fgraph.Variable{rest, spread}, o.Rows)
}

func everyRow(n int32) []int32 {
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}
