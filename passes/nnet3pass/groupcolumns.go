package nnet3pass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// groupColumns lets an affine component over an appended matrix take the columns input by input
// where they alternate. The matrix then need not be assembled: there is a product for each input,
// not for each run of columns (spliceProduct).
//
// This changes the order of sums, for all rows of every request alike: the order follows from which
// inputs the columns come from, and only inputs of the network count, which are the same for every
// request.
func groupColumns() rewrite.Rule {
	return ruleFor("local_group_columns", "an affine over alternating inputs reads them one after the other: affine(append(x, v, x')) → affine'(append(x, x', v))", 2,
		func(c *rewrite.Context, a *fgraph.Apply, op lower.Propagate) rewrite.Result {
			product, asm, ok := dividedProduct(c, a, op, false)
			if !ok {
				return rewrite.Result{}
			}
			runs, ok := columnRuns(c.Graph(), a.Inputs()[0].Owner(), asm)
			if !ok {
				return c.Miss("a column does not come from a single input of the network")
			}
			order := grouped(runs)
			if slices.IsSorted(order) {
				return c.Miss("the columns of each input are together")
			}
			return rewrite.Replace(regrouped(a, op, product, asm, runs, order))
		})
}

// dividedProduct returns the product that op computes and the Assemble that it reads, if the
// product may be divided by columns and nothing else reads the assembled matrix. Otherwise it tells
// c why not. trained demands a product with parameters that change.
func dividedProduct(c *rewrite.Context, a *fgraph.Apply, op lower.Propagate, trained bool) (*component.Product, *lower.Assemble, bool) {
	if !plain(op) || op.Accumulate || op.Precomputed != nil || len(a.Inputs()) != 1 {
		c.Miss("%s has an effect, accumulates or looks at other rows", op.Name)
		return nil, nil, false
	}
	product, ok := component.NewProduct(op.C)
	if !ok || !product.Whole() {
		c.Miss("%s is not affine", op.Name)
		return nil, nil, false
	}
	if !product.Divisible(0) {
		c.Miss("%s has too few columns for its sums to be divided", op.Name)
		return nil, nil, false
	}
	if trained && !product.Base().Properties().Has(component.Updatable) {
		c.Miss("%s is fixed, and is better multiplied out with the next map", op.Name)
		return nil, nil, false
	}
	x := a.Inputs()[0]
	asm, ok := ownerOp[*lower.Assemble](x)
	if !ok || len(x.Clients()) != 1 {
		c.Miss("the input is not assembled for %s alone", op.Name)
		return nil, nil, false
	}
	return product, asm, true
}

// A columnRun is a run of columns of an assembled matrix that come from one input.
type columnRun struct{ first, end, input int32 }

// columnRuns divides the columns of an assembled matrix by the inputs of the graph that they come
// from. It reports false where a column comes from none, from several, or from another value.
func columnRuns(g *fgraph.FunctionGraph, asm *fgraph.Apply, o *lower.Assemble) ([]columnRun, bool) {
	p, ok := lower.ProgramOf(g)
	if !ok {
		return nil, false
	}
	for _, v := range asm.Inputs() {
		// An input of the network is the same in every request. Of other values it depends on the
		// request how they are cut into pieces, and bits must not.
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

// grouped returns the order in which runs of one input follow each other, with the inputs in order
// of their first runs.
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
		// A term may begin within a run that several terms of one input make up.
		k, found := slices.BinarySearchFunc(runs, t.DstCol, func(r columnRun, col int32) int { return int(r.first - col) })
		if !found {
			k--
		}
		t.DstCol += shift[k]
	}
	q, pre := p.Splice(splices, int(o.Rows), int(o.Cols), true, true)
	return runProduct(a, op, q, pre, []*fgraph.Variable{lower.NewAssemble(o.Rows, o.Cols, terms, asm.Inputs())}, o.Rows)
}
