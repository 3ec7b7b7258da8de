package nnet3pass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
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
			v, ok := lastColumns(c.Graph(), a.Inputs()[0].Owner(), asm)
			if !ok {
				return c.Miss("the last columns are not those of an input that nothing else in the appended matrix comes from")
			}
			if n := int(v.cols) * product.OutputDim(); n < leastProduct {
				return c.Miss("the columns of %v have %d parameters, fewer than %d", v.parts[0], n, leastProduct)
			}
			if 2*v.rows > asm.Rows {
				return rewrite.Replace(summedApart(a, op, product, asm, v))
			}
			return rewrite.Replace(multipliedOnce(a, op, product, asm, v))
		})
}

// A vectorInput is where the last columns of an assembled matrix come from: the same columns of one
// or more inputs of the graph. There are several if chunks of an endless input are computed one by
// one: a row can also be that of an earlier chunk.
type vectorInput struct {
	dstCol, srcCol, cols int32
	parts                []*fgraph.Variable
	rows                 int32           // of all parts
	pairs                []lower.RowPair // by row of the matrix: the row of the parts, one below the other
	at                   int32           // of a term that reads it
}

// lastColumns finds the inputs of the graph that the last columns of an assembled matrix, and no
// others, come from. Each row must be a row of an input, and one of the inputs must be the
// network's.
func lastColumns(g *fgraph.FunctionGraph, asm *fgraph.Apply, o *lower.Assemble) (*vectorInput, bool) {
	// Vectors come last in what networks append. To look for them elsewhere would mean to choose an
	// order of the sum, which Kaldi's does not have.
	last := slices.IndexFunc(o.Terms, func(t lower.Term) bool { return t.DstCol+t.NumCols == o.Cols })
	p, ok := lower.ProgramOf(g)
	if last < 0 || o.Terms[last].DstCol == 0 || !ok {
		return nil, false
	}
	from := &o.Terms[last]
	v := &vectorInput{dstCol: from.DstCol, srcCol: from.SrcCol, cols: from.NumCols, at: from.At}
	begins := slices.Repeat([]int32{-1}, len(asm.Inputs())) // by input: its first row among those of the parts
	fresh := false
	for i := range o.Terms {
		t := &o.Terms[i]
		if t.DstCol+t.NumCols <= v.dstCol {
			continue
		}
		if t.DstCol != v.dstCol || t.SrcCol != v.srcCol || t.NumCols != v.cols || t.Scale != 1 {
			return nil, false
		}
		if begins[t.Input] < 0 {
			x := asm.Inputs()[t.Input]
			n := slices.Index(g.Inputs(), x)
			if n < 0 {
				return nil, false
			}
			fresh = fresh || p.Inputs[n].Carried == 0
			begins[t.Input] = v.rows
			v.parts = append(v.parts, x)
			v.rows += lower.TypeOf(x).Rows
		}
		for k := range t.NumRows {
			pair := t.Pair(k)
			v.pairs = append(v.pairs, lower.RowPair{Dst: pair.Dst, Src: begins[t.Input] + pair.Src})
		}
	}
	// If the input is read elsewhere in the matrix as well, it is no vector beside the features but
	// a part of them.
	for i := range o.Terms {
		if t := &o.Terms[i]; t.DstCol < v.dstCol && begins[t.Input] >= 0 {
			return nil, false
		}
	}
	slices.SortFunc(v.pairs, func(p, q lower.RowPair) int { return int(p.Dst - q.Dst) })
	for i, pair := range v.pairs {
		if pair.Dst != int32(i) {
			return nil, false // a row is missing, or occurs twice and is a sum
		}
	}
	return v, fresh && len(v.pairs) == int(o.Rows)
}

// matrix returns the parts, one below the other, and the first of the columns in it.
func (v *vectorInput) matrix() (*fgraph.Variable, int32) {
	if len(v.parts) == 1 {
		return v.parts[0], v.srcCol
	}
	var terms []lower.Term
	row := int32(0)
	for i, x := range v.parts {
		n := lower.TypeOf(x).Rows
		terms = append(terms, lower.Term{Input: int32(i), Scale: 1, DstRow: row, NumRows: n, SrcCol: v.srcCol, NumCols: v.cols, At: v.at})
		row += n
	}
	return lower.NewAssemble(v.rows, v.cols, terms, v.parts), 0
}

// summedApart computes the same product with the columns of the vector in a separate sum.
func summedApart(a *fgraph.Apply, op lower.Propagate, p *component.Product, o *lower.Assemble, v *vectorInput) *fgraph.Variable {
	rows := everyRow(o.Rows)
	q, pre := p.Splice([]component.Splice{
		{Cols: int(v.dstCol), Rows: rows},
		{Col: int(v.dstCol), Cols: int(v.cols), SrcCol: int(v.dstCol), Rows: rows, Apart: true},
	}, int(o.Rows), int(o.Cols), true, true)
	return runProduct(a, op, q, pre, a.Inputs(), o.Rows)
}

// multipliedOnce multiplies the rows of the vector, distributes the results, and adds the product
// of the other columns.
func multipliedOnce(a *fgraph.Apply, op lower.Propagate, p *component.Product, o *lower.Assemble, v *vectorInput) *fgraph.Variable {
	asm := a.Inputs()[0].Owner()
	out := lower.TypeOf(a.Out())
	x, col := v.matrix()
	q, pre := p.Splice([]component.Splice{
		{Col: int(v.dstCol), Cols: int(v.cols), SrcCol: int(col), Rows: everyRow(v.rows), Apart: true},
	}, int(v.rows), int(lower.TypeOf(x).Cols), true, false)
	once := runProduct(a, op, q, pre, []*fgraph.Variable{x}, v.rows)
	spread := lower.NewAssemble(out.Rows, out.Cols, []lower.Term{{
		Scale: 1, DstRow: v.pairs[0].Dst, SrcRow: v.pairs[0].Src, NumRows: int32(len(v.pairs)), NumCols: out.Cols, Rows: v.pairs, At: v.at,
	}}, []*fgraph.Variable{once})

	var terms []lower.Term
	for _, t := range o.Terms {
		if t.DstCol < v.dstCol {
			terms = append(terms, t)
		}
	}
	// The sums begin with the vector's part and go on with the features, and the epilogue follows
	// in the last product. summedApart computes both in the same order, hence with the same bits.
	rest := lower.NewAssemble(o.Rows, v.dstCol, terms, asm.Inputs())
	q, pre = p.Splice([]component.Splice{{Cols: int(v.dstCol), Rows: everyRow(o.Rows)}}, int(o.Rows), int(v.dstCol), false, true)
	op.Accumulate = true
	return runProduct(a, op, q, pre, []*fgraph.Variable{rest, spread}, o.Rows)
}

func everyRow(n int32) []int32 { return lists.Range[int32](int(n)) }
