package nnet3pass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// groupColumns lets an affine over an appended matrix take the columns input by input, where they alternate. The matrix then need
// not be put together: there is a product for each input, not for each column that begins a new one (SpliceProduct).
//
// That is another order of sums, for all rows whatever is asked for: which inputs the columns come from decides, and only inputs of
// the network count, which are the same for every request.
func groupColumns() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_group_columns",
		Doc:  "an affine over inputs that alternate takes them one after the other: affine(append(x, v, x')) → affine'(append(x, x', v))",
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
			asm, ok := ownerOp[*lower.Assemble](a.Inputs()[0])
			if !ok || len(a.Inputs()[0].Clients()) != 1 {
				return c.Miss("the input is not put together for %s alone", op.Name), nil
			}
			runs, ok := columnRuns(c.Graph(), a.Inputs()[0].Owner(), asm)
			if !ok {
				return c.Miss("not every column comes from one input of the network"), nil
			}
			order := grouped(runs)
			if slices.IsSorted(order) {
				return c.Miss("no input comes back behind another one"), nil
			}
			return rewrite.Replace(regrouped(a, op, product, asm, runs, order)), nil
		},
	}
}

// A columnRun is a stretch of columns of an assembled matrix that come from one input.
type columnRun struct{ first, end, input int32 }

// columnRuns divides the columns of an assembled matrix by the inputs of the graph that they come from. It reports false where a column
// comes from none, from several, or from another value.
func columnRuns(g *fgraph.FunctionGraph, asm *fgraph.Apply, o *lower.Assemble) ([]columnRun, bool) {
	p, ok := lower.ProgramOf(g)
	if !ok {
		return nil, false
	}
	for _, v := range asm.Inputs() {
		if n := slices.Index(g.Inputs(), v); n < 0 || p.Inputs[n].Carried > 0 {
			return nil, false
		}
	}
	terms := slices.Clone(o.Terms)
	slices.SortFunc(terms, func(s, t lower.Term) int { return int(s.DstCol - t.DstCol) })
	var runs []columnRun
	end := int32(0)
	for i := range terms {
		t := &terms[i]
		last := len(runs) - 1
		switch {
		case t.DstCol > end:
			return nil, false
		case last >= 0 && runs[last].input == t.Input:
			end = max(end, t.DstCol+t.NumCols)
			runs[last].end = end
		case t.DstCol < end:
			return nil, false
		default:
			end = t.DstCol + t.NumCols
			runs = append(runs, columnRun{t.DstCol, end, t.Input})
		}
	}
	return runs, end == o.Cols
}

// grouped returns the order in which runs of the same input follow each other, the inputs as they come first.
func grouped(runs []columnRun) []int {
	first := make(map[int32]int) // by input
	order := make([]int, len(runs))
	for i, r := range runs {
		if _, seen := first[r.input]; !seen {
			first[r.input] = i
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return first[runs[i].input] - first[runs[j].input] })
	return order
}

// regrouped computes the product of the same columns in another order.
func regrouped(a *fgraph.Apply, op lower.Propagate, p *component.Product, o *lower.Assemble, runs []columnRun, order []int) *fgraph.Variable {
	asm := a.Inputs()[0].Owner()
	splices := make([]component.Splice, len(order))
	shift := make([]int32, len(runs))
	rows, at := everyRow(o.Rows), int32(0)
	for k, i := range order {
		r := runs[i]
		splices[k] = component.Splice{Col: int(r.first), Cols: int(r.end - r.first), SrcCol: int(at), Rows: rows}
		shift[i] = at - r.first
		at += r.end - r.first
	}
	terms := slices.Clone(o.Terms)
	for i := range terms {
		t := &terms[i]
		k, found := slices.BinarySearchFunc(runs, t.DstCol, func(r columnRun, col int32) int { return int(r.first - col) })
		if !found {
			k--
		}
		t.DstCol += shift[k]
	}
	q, pre := p.Splice(splices, int(o.Rows), int(o.Cols), true, true)
	return runProduct(a, op, q, pre, []*fgraph.Variable{lower.NewAssemble(o.Rows, o.Cols, terms, asm.Inputs())}, o.Rows)
}
