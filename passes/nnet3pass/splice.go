package nnet3pass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// SpliceProduct lets a product read its rows and columns where they lie, instead of from a matrix that was put together for
// it. Where they lie in several matrices there is a product for each, the later ones adding to the result of the earlier.
func SpliceProduct() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_splice_product",
		Doc:  "a product over an appended matrix reads the parts where they lie: affine(append(x, y)) → affine'(x) + affine''(y)",
		On:   []rewrite.Track{rewrite.TrackType[lower.Propagate]()}, Depth: 2,
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			op := a.Op().(lower.Propagate)
			if !plain(op) || len(a.Inputs()) == 0 {
				return c.Miss("%s has an effect, or no input", op.Name), nil
			}
			product, ok := component.NewProduct(op.C)
			if !ok {
				return c.Miss("%s is not affine", op.Name), nil
			}
			root, at := lower.Resolve(a.Inputs()[0])
			asm, ok := ownerOp[*lower.Assemble](root)
			if !ok {
				return c.Miss("the input is not put together"), nil
			}
			parts, ok := spliceParts(product, op, int(lower.TypeOf(a.Out()).Rows), root.Owner(), asm, at)
			if !ok {
				return c.Miss("a part of the input is scaled, a sum or missing, or the product is too narrow to be divided"), nil
			}
			if len(parts) > 1 && op.Accumulate {
				return c.Miss("%s accumulates already", op.Name), nil
			}
			if len(parts) > 1 && !worthSplitting(root, asm, len(parts)) {
				return c.Miss("%d products would be dearer than to put the input together", len(parts)), nil
			}
			if !cheaperInPlace(c.Graph(), a, root, sources(parts)...) {
				return c.Miss("the sources would have to live longer, which takes more memory than to put them together"), nil
			}
			return rewrite.Replace(spliced(a, op, product, parts)), nil
		},
	}
}

// part is what a product takes from one matrix.
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

// spliceParts finds where the product's blocks lie in the inputs of asm, of which the product sees the rectangle at. It reports false
// where they lie nowhere as they are, or can't be divided as they lie.
func spliceParts(p *component.Product, op lower.Propagate, rows int, asm *fgraph.Apply, o *lower.Assemble, at lower.Rect) ([]part, bool) {
	var parts []part
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
		c0, end := at.C0+int32(col), at.C0+int32(col+cols)
		for c0 < end {
			c1 := nextEdge(o, c0, end)
			if ok = c1-c0 == int32(cols) || p.Divisible(block); !ok {
				return
			}
			s := component.Splice{Block: block, Col: int(c0-at.C0) - col, Cols: int(c1 - c0), Rows: make([]int32, rows)}
			source := takeRows(o, src, at.R0, c0, c1, &s)
			if source < 0 {
				ok = false
				return
			}
			v := asm.Inputs()[source]
			k := slices.IndexFunc(parts, func(q part) bool { return q.source == v })
			if k < 0 {
				k = len(parts)
				parts = append(parts, part{source: v})
			}
			parts[k].splices = append(parts[k].splices, s)
			c0 = c1
		}
	})
	return parts, ok
}

// nextEdge is the first column behind c, at most end, at which a term begins or ends.
func nextEdge(o *lower.Assemble, c, end int32) int32 {
	for i := range o.Terms {
		t := &o.Terms[i]
		for _, e := range [2]int32{t.DstCol, t.DstCol + t.NumCols} {
			if c < e {
				end = min(end, e)
			}
		}
	}
	return end
}

// takeRows finds, for columns that no edge divides, the one input that all the rows come from, and where they lie there. It
// returns -1 where there is no such input.
func takeRows(o *lower.Assemble, src []int32, r0, c0, c1 int32, s *component.Splice) int32 {
	input, srcCol := int32(-1), int32(-1)
	for i := range s.Rows {
		s.Rows[i] = -1
	}
	found := make([]int32, o.Rows) // by row of the assembled matrix: the row of the input
	for i := range found {
		found[i] = -1
	}
	for i := range o.Terms {
		t := &o.Terms[i]
		if t.DstCol > c0 || t.DstCol+t.NumCols < c1 {
			continue
		}
		from := t.SrcCol + c0 - t.DstCol
		if input >= 0 && (t.Input != input || from != srcCol) || t.Scale != 1 {
			return -1
		}
		input, srcCol = t.Input, from
		for k := range t.NumRows {
			p := t.Pair(k)
			if found[p.Dst] >= 0 {
				return -1 // a sum
			}
			found[p.Dst] = p.Src
		}
	}
	if input < 0 {
		return -1
	}
	for i, r := range src {
		if s.Rows[i] = found[r0+r]; s.Rows[i] < 0 {
			return -1
		}
	}
	s.SrcCol = int(srcCol)
	return input
}

// worthSplitting weighs products, of which all but one are additional, against the moves that they save. A matrix that has
// other uses is put together anyway.
func worthSplitting(root *fgraph.Variable, o *lower.Assemble, products int) bool {
	return len(root.Clients()) == 1 && len(o.Terms) > products
}

// spliced applies the parts of the product one after the other.
func spliced(a *fgraph.Apply, op lower.Propagate, p *component.Product, parts []part) *fgraph.Variable {
	var sum *fgraph.Variable
	if op.Accumulate {
		sum = a.Inputs()[op.InputAdded()]
	}
	return addParts(a, op, p, parts, sum)
}

// addParts applies the parts of the product one after the other. Where there is a sum, it is what those before have made.
func addParts(a *fgraph.Apply, op lower.Propagate, p *component.Product, parts []part, sum *fgraph.Variable) *fgraph.Variable {
	accumulates := op.Accumulate
	for i, part := range parts {
		t := lower.TypeOf(part.source)
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

// runProduct is the result of op in the place of a, but with another product, and so many rows.
func runProduct(a *fgraph.Apply, op lower.Propagate, p *component.Product, pre component.Precomputed, inputs []*fgraph.Variable, rows int32) *fgraph.Variable {
	op.Component = lower.Component{C: p, Number: -1, Name: op.Name}
	op.Precomputed = &computation.PrecomputedIndexesInfo{Data: pre}
	n := fgraph.NewApply(op, inputs, lower.MatrixType{Rows: rows, Cols: lower.TypeOf(a.Out()).Cols})
	n.SetOrigin(a.Origin())
	return n.Out()
}
