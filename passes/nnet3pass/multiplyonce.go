package nnet3pass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// leastProduct is for MultiplyOnce and MultiplyOut: 64 KB, two first-level caches.
const leastProduct = 1 << 14

// multiplyOnce lets an affine that reads features beside a vector for the whole utterance, such as an i-vector, multiply the
// vector once instead of once for every time. What the times add is one more term of a sum.
//
// Which columns the vector has decides whether the sum is divided, never how many rows there are: with few rows the product
// reads what was put together, as before, but sums both parts by themselves too. A row so has the same bits whatever else is
// asked for. Vectors with fewer than least parameters are left alone: their products cost nothing to speak of, and the order of
// the sum stays Kaldi's.
func multiplyOnce(least int) rewrite.Rule {
	return rewrite.Rule{
		Name: "local_multiply_once",
		Doc:  "rows of an input that an affine reads again and again are multiplied once: affine(append(x, v[rows])) → affine'(x) onto affine''(v)[rows]",
		On:   []rewrite.Track{rewrite.TrackType[lower.Propagate]()}, Depth: 2,
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			op := a.Op().(lower.Propagate)
			if !plain(op) || op.Accumulate || op.Precomputed != nil || len(a.Inputs()) != 1 {
				return c.Miss("%s has an effect, adds to something or looks at other rows", op.Name), nil
			}
			product, ok := component.NewProduct(op.C)
			if !ok || !product.Whole() {
				return c.Miss("%s is not affine", op.Name), nil
			}
			if !product.Divisible(0) {
				return c.Miss("%s has too few columns for its sums to be divided", op.Name), nil
			}
			if !product.Base().Properties().Has(component.Updatable) {
				return c.Miss("%s is fixed, and had better be multiplied with what is behind it", op.Name), nil
			}
			x := a.Inputs()[0]
			asm, ok := ownerOp[*lower.Assemble](x)
			if !ok || len(x.Clients()) != 1 {
				return c.Miss("the input is not put together for %s alone", op.Name), nil
			}
			from, v, ok := lastColumns(c.Graph(), x.Owner(), asm)
			if !ok {
				return c.Miss("the last columns are not those of an input that nothing else in the appended matrix comes from"), nil
			}
			if n := int(from.NumCols) * product.OutputDim(); n < least {
				return c.Miss("the columns of %v have %d parameters, fewer than %d", v, n, least), nil
			}
			if 2*lower.TypeOf(v).Rows > asm.Rows {
				return rewrite.Replace(summedApart(a, op, product, asm, from)), nil
			}
			return rewrite.Replace(multipliedOnce(a, op, product, asm, from)), nil
		},
	}
}

// lastColumns finds the input of the graph that makes the last columns of an assembled matrix, each row being one of the input's,
// and nothing else of it. from is a term that does so.
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
	// A row that comes twice is a sum.
	return from, v, rows == o.Rows && len(vectorRows(o, from.Input)) == int(rows)
}

// vectorRows lists the pairs of rows by which an input comes into the assembled matrix, in the order of the latter's rows, each
// of which comes once.
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

// summedApart computes the product as it is, but for the columns of the vector in a sum of their own.
func summedApart(a *fgraph.Apply, op lower.Propagate, p *component.Product, o *lower.Assemble, from lower.Term) *fgraph.Variable {
	rows := everyRow(o.Rows)
	q, pre := p.Splice([]component.Splice{
		{Cols: int(from.DstCol), Rows: rows},
		{Col: int(from.DstCol), Cols: int(from.NumCols), SrcCol: int(from.DstCol), Rows: rows, Apart: true},
	}, int(o.Rows), int(o.Cols), true, true)
	return runProduct(a, op, q, pre, a.Inputs(), o.Rows)
}

// multipliedOnce multiplies the rows of the vector, hands them out, and adds the product of the other columns.
func multipliedOnce(a *fgraph.Apply, op lower.Propagate, p *component.Product, o *lower.Assemble, from lower.Term) *fgraph.Variable {
	asm := a.Inputs()[0].Owner()
	v, out := asm.Inputs()[from.Input], lower.TypeOf(a.Out())
	t := lower.TypeOf(v)
	q, pre := p.Splice([]component.Splice{
		{Col: int(from.DstCol), Cols: int(from.NumCols), SrcCol: int(from.SrcCol), Rows: everyRow(t.Rows), Apart: true},
	}, int(t.Rows), int(t.Cols), true, false)
	once := runProduct(a, op, q, pre, []*fgraph.Variable{v}, t.Rows)
	pairs := vectorRows(o, from.Input)
	handed := lower.NewAssemble(out.Rows, out.Cols, []lower.Term{{
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
	return runProduct(a, op, q, pre, []*fgraph.Variable{rest, handed}, o.Rows)
}

func everyRow(n int32) []int32 {
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}
