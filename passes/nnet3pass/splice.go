package nnet3pass

import (
	"context"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// spliceProduct lets a product read its rows and columns where they lie, instead of from a matrix
// assembled for it. If they lie in several matrices, there is a product for each, and each adds to
// the result of the one before.
func spliceProduct() rewrite.Rule {
	return ruleFor("local_splice_product", "a product over an appended matrix reads its parts in place: affine(append(x, y)) → affine'(x) + affine''(y)", 2,
		func(c *rewrite.Context, a *fgraph.Apply, op lower.Propagate) rewrite.Result {
			if !plain(op) || len(a.Inputs()) == 0 {
				return c.Miss("%s has an effect, or no input", op.Name)
			}
			s, ok := newSplicing(a, op)
			if !ok {
				return c.Miss("%s is not affine, its input is not assembled, a part of it is scaled, a sum or missing, or the product is too narrow to be divided", op.Name)
			}
			if len(s.parts) > 1 && op.Accumulate {
				return c.Miss("%s accumulates already", op.Name)
			}
			if len(s.parts) > 1 && !worthSplitting(s.root, s.asm, len(s.parts)) {
				return c.Miss("%d products would cost more than to assemble the input", len(s.parts))
			}
			if !cheaperInPlace(c.Graph(), a, s.root, sources(s.parts)...) {
				return c.Miss("to keep the sources longer would take more memory than to assemble them")
			}
			return rewrite.Replace(s.result(a, op))
		})
}

// A splicing is how a product can read the parts of its input where they lie.
type splicing struct {
	product *component.Product
	root    *fgraph.Variable // the assembled input
	asm     *lower.Assemble
	parts   []part
}

// newSplicing reports false if a does not run an affine component on an assembled matrix, or can't
// be divided as the parts lie.
func newSplicing(a *fgraph.Apply, op lower.Propagate) (s splicing, ok bool) {
	if s.product, ok = component.NewProduct(op.C); !ok {
		return s, false
	}
	var at lower.Rect
	s.root, at = lower.Resolve(a.Inputs()[0])
	if s.asm, ok = ownerOp[*lower.Assemble](s.root); !ok {
		return s, false
	}
	s.parts, ok = spliceParts(s.product, op, int(lower.TypeOf(a.Out()).Rows), s.root.Owner(), s.asm, at)
	return s, ok
}

// result returns the result of a, computed from the parts.
func (s *splicing) result(a *fgraph.Apply, op lower.Propagate) *fgraph.Variable {
	var sum *fgraph.Variable
	if op.Accumulate {
		sum = a.Inputs()[op.InputAdded()]
	}
	return addParts(a, op, s.product, s.parts, sum)
}

// spliceForIntegers is spliceProduct for products that become integers, at any cost. The
// parts of a spliced product have steps of their own, so its bits are not those of a product over
// the assembled matrix, and what is cheaper depends on the number of rows.
func spliceForIntegers() rewrite.GraphRewriter {
	return rewrite.Global{
		Name: "splice_for_integers",
		Doc:  "a product over an appended matrix that will multiply integers reads its parts in place, at any cost, so that rows have the same bits in all requests: affine(append(x, y)) → affine'(x) + affine''(y)",
		Fn: func(ctx context.Context, h *rewrite.Handle) error {
			if trains(h.Graph()) {
				return nil
			}
			for _, a := range productsOf(h.Graph()) {
				if err := context.Cause(ctx); err != nil {
					return err
				}
				op := a.Op().(lower.Propagate)
				if _, ok := quantizable(a); !ok {
					continue
				}
				s, ok := newSplicing(a, op)
				if !ok || len(s.parts) > 1 && op.Accumulate {
					continue
				}
				done, err := h.Replace("", a, fgraph.Replacement{Old: a.Out(), New: s.result(a, op)})
				if err != nil {
					return err
				}
				if done {
					h.Recorder().Count("nb_spliced", 1, "")
				}
			}
			return nil
		},
	}
}

// A part is what a product reads from one matrix. A matrix may have several parts, with parts of
// others between them.
type part struct {
	source  *fgraph.Variable
	splices []component.Splice
}

func sources(parts []part) []*fgraph.Variable {
	vs := make([]*fgraph.Variable, len(parts))
	for i := range parts {
		vs[i] = parts[i].source
	}
	return vs
}

// spliceParts finds the blocks of the product in the inputs of asm, of which the product sees the
// rectangle at. The parts are added in the order returned. It reports false if a block is not found
// as it is, or can't be divided as it lies.
func spliceParts(p *component.Product, op lower.Propagate, rows int, asm *fgraph.Apply, o *lower.Assemble, at lower.Rect) ([]part, bool) {
	var parts []part
	columns := newColumnIndex(o)
	ok := true
	p.Blocks(func(block, col, cols int) {
		if !ok {
			return
		}
		var pre component.Precomputed
		if op.Precomputed != nil {
			pre = op.Precomputed.Data
		}
		src, known := p.Rows(block, pre, rows)
		if !known {
			ok = false
			return
		}
		// Cut a block of columns where the matrix that they come from changes. Each piece is looked
		// up in its source; a sum or a scaled part can't be looked up.
		c0, end := at.C0+int32(col), at.C0+int32(col+cols)
		for c0 < end {
			c1, terms := columns.at(c0, end)
			// To divide a sum within a block changes the order in which a kernel adds, unless it
			// adds in the same chunks anyway.
			if ok = c1-c0 == int32(cols) || p.Divisible(block); !ok {
				return
			}
			s := component.Splice{Block: block, Col: int(c0-at.C0) - col, Cols: int(c1 - c0), Rows: make([]int32, rows)}
			source := columns.takeRows(terms, src, at.R0, c0, &s)
			if source < 0 {
				ok = false
				return
			}
			v := asm.Inputs()[source]
			if len(parts) == 0 || parts[len(parts)-1].source != v {
				// Each product continues the sums of the one before, so they must take the columns
				// in order.
				if ok = len(parts) == 0 || p.Resumable(block, s.Col); !ok {
					return
				}
				parts = append(parts, part{source: v})
			}
			last := &parts[len(parts)-1]
			last.splices = append(last.splices, s)
			c0 = c1
		}
	})
	return parts, ok
}

// A columnIndex finds the terms that cover a column without looking at all terms.
type columnIndex struct {
	o     *lower.Assemble
	edges []int32   // columns at which a term begins or ends, in order
	terms [][]int32 // by edge: numbers of the terms that cover the columns up to the next edge, in order
	found []int32   // by row of the assembled matrix: the row of the input
}

func newColumnIndex(o *lower.Assemble) *columnIndex {
	x := &columnIndex{o: o, edges: make([]int32, 0, 2*len(o.Terms)), found: make([]int32, o.Rows)}
	for i := range o.Terms {
		x.edges = append(x.edges, o.Terms[i].DstCol, o.Terms[i].DstCol+o.Terms[i].NumCols)
	}
	slices.Sort(x.edges)
	x.edges = slices.Compact(x.edges)
	x.terms = make([][]int32, len(x.edges))
	for i := range o.Terms {
		t := &o.Terms[i]
		k, _ := slices.BinarySearch(x.edges, t.DstCol)
		// A term is listed under every interval of columns that it covers, and found by one search
		// later. Recurrences would make a scan over all terms quadratic.
		for ; x.edges[k] < t.DstCol+t.NumCols; k++ {
			list := x.terms[k]
			if n := len(list); n == 0 || sameColumns(&o.Terms[list[0]], &o.Terms[list[n-1]]) { // one that differs is enough to refuse all
				x.terms[k] = append(list, int32(i))
			}
		}
	}
	return x
}

// sameColumns reports whether two terms fill each column from the same column of the same input.
func sameColumns(a, b *lower.Term) bool {
	return a.Input == b.Input && a.SrcCol-a.DstCol == b.SrcCol-b.DstCol
}

// at returns the first edge after column c, at most end, and the terms that cover the columns up to
// it.
func (x *columnIndex) at(c, end int32) (int32, []int32) {
	k, here := slices.BinarySearch(x.edges, c)
	if k < len(x.edges) && here {
		k++
	}
	if k < len(x.edges) {
		end = min(end, x.edges[k])
	}
	if k == 0 {
		return end, nil
	}
	return end, x.terms[k-1]
}

// takeRows finds the input that all rows of the given terms come from, and notes in s where they
// lie in it. c0 is the first column. It returns -1 if there is no such input.
func (x *columnIndex) takeRows(terms []int32, src []int32, r0, c0 int32, s *component.Splice) int32 {
	if len(terms) == 0 {
		return -1
	}
	first := &x.o.Terms[terms[0]]
	for i := range x.found {
		x.found[i] = -1
	}
	for _, i := range terms {
		t := &x.o.Terms[i]
		if !sameColumns(first, t) || t.Scale != 1 {
			return -1
		}
		for k := range t.NumRows {
			p := t.Pair(k)
			if x.found[p.Dst] >= 0 {
				return -1 // a sum
			}
			x.found[p.Dst] = p.Src
		}
	}
	for i, r := range src {
		if s.Rows[i] = x.found[r0+r]; s.Rows[i] < 0 {
			return -1
		}
	}
	s.SrcCol = int(first.SrcCol + c0 - first.DstCol)
	return first.Input
}

// worthSplitting reports whether the additional products cost less than the moves that they save. A
// matrix with other uses is assembled anyway.
func worthSplitting(root *fgraph.Variable, o *lower.Assemble, products int) bool {
	return len(root.Clients()) == 1 && len(o.Terms) > products
}

// addParts applies the parts of the product one after the other. sum, if not nil, is the result of
// earlier parts, or what op adds to.
func addParts(a *fgraph.Apply, op lower.Propagate, p *component.Product, parts []part, sum *fgraph.Variable) *fgraph.Variable {
	accumulates := op.Accumulate
	for i, part := range parts {
		t := lower.TypeOf(part.source)
		// The first product begins the sums, with a bias; the last one finishes them, with the
		// epilogue. Those between only add, so the bits are those of one product.
		first := i == 0 && (sum == nil || accumulates)
		q, pre := p.Splice(part.splices, int(t.Rows), int(t.Cols), first, i == len(parts)-1)
		op.Accumulate = sum != nil
		inputs := []*fgraph.Variable{part.source}
		if op.Accumulate {
			inputs = append(inputs, sum)
		}
		sum = runProduct(a, op, q, pre, inputs, lower.TypeOf(a.Out()).Rows)
	}
	return sum
}

// runProduct returns the result of op with another product and number of rows, in place of a.
func runProduct(a *fgraph.Apply, op lower.Propagate, p *component.Product, pre component.Precomputed, inputs []*fgraph.Variable, rows int32) *fgraph.Variable {
	op.Component = lower.Component{C: p, Number: -1, Name: op.Name}
	op.Precomputed = &computation.PrecomputedIndexesInfo{Data: pre}
	return applyAt(a, op, inputs, lower.MatrixType{Rows: rows, Cols: lower.TypeOf(a.Out()).Cols}).Out()
}
