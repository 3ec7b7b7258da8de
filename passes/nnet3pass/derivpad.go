package nnet3pass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/lower"
)

// assemble lets the terms of an Assemble that read padding read the rows behind it.
func (l *derivLimiter) assemble(a *fgraph.Apply, op *lower.Assemble) error {
	inputs := slices.Clone(a.Inputs())
	var terms []lower.Term
	changed := false
	for i := range op.Terms {
		t := op.Terms[i]
		root, r := lower.Resolve(a.Inputs()[t.Input])
		if !l.padded[root] && !isZero(root) {
			terms = append(terms, t)
			continue
		}
		changed = true
		t.ShiftSrc(r.R0, r.C0)
		terms, inputs = through(terms, inputs, &t, root)
	}
	if !changed {
		return nil
	}
	return l.put(a, fgraph.Replacement{Old: a.Out(), New: assembled(op.Rows, op.Cols, terms, inputs, a.Origin())})
}

// partsAt as the time of a term means that its parts keep their times.
const partsAt = -1

// through resolves term t, which reads root, to terms that read the inputs of root, and appends
// those terms and inputs. What no term of root writes is zero.
func through(terms []lower.Term, inputs []*fgraph.Variable, t *lower.Term, root *fgraph.Variable) ([]lower.Term, []*fgraph.Variable) {
	inner, ok := ownerOp[*lower.Assemble](root)
	if !ok {
		return terms, inputs
	}
	first := int32(len(inputs))
	inputs = append(inputs, root.Owner().Inputs()...)
	for j := range inner.Terms {
		if u, ok := t.Through(&inner.Terms[j]); ok {
			if u.Input += first; u.At == partsAt {
				u.At = inner.Terms[j].At
			}
			terms = append(terms, u)
		}
	}
	return terms, inputs
}

// assembled returns an Assemble of the terms, or the block or the zeros that it amounts to.
func assembled(rows, cols int32, terms []lower.Term, inputs []*fgraph.Variable, origin int) *fgraph.Variable {
	var v *fgraph.Variable
	switch {
	case len(terms) == 0:
		v = lower.NewFill(rows, cols, 0)
	case len(terms) == 1 && terms[0].Contiguous() && terms[0].Scale == 1 && terms[0].NumRows == rows && terms[0].NumCols == cols:
		return lower.NewBlock(inputs[terms[0].Input], terms[0].Src())
	default:
		v = lower.NewAssemble(rows, cols, terms, inputs)
	}
	v.Owner().SetOrigin(origin)
	return v
}

// rowRanges leaves rows of padding out of sums of rows.
func (l *derivLimiter) rowRanges(a *fgraph.Apply, op *lower.RowRanges) error {
	root, r := lower.Resolve(a.Inputs()[0])
	t := lower.TypeOf(a.Out())
	if isZero(root) {
		return l.put(a, fgraph.Replacement{Old: a.Out(), New: lower.NewFill(t.Rows, t.Cols, 0)})
	}
	if !l.padded[root] || len(root.Owner().Op().(*lower.Assemble).Terms) > 1 {
		return nil // with several runs of rows the sums include the padding
	}
	left := &root.Owner().Op().(*lower.Assemble).Terms[0]
	lo, hi := max(left.DstRow-r.R0, 0), min(left.DstRow+left.NumRows-r.R0, r.Rows()) // the nonzero rows of the input
	ranges := make([]computation.Pair, len(op.Ranges))
	some := false
	for i, p := range op.Ranges {
		if p[0], p[1] = max(p[0], lo)-lo, min(p[1], hi)-lo; p[0] >= p[1] {
			p = computation.Pair{-1, -1}
		}
		ranges[i] = p
		some = some || p[0] >= 0
	}
	if !some {
		return l.put(a, fgraph.Replacement{Old: a.Out(), New: lower.NewFill(t.Rows, t.Cols, 0)})
	}
	x := lower.NewBlock(root.Owner().Inputs()[0], lower.Rect{R0: lo, R1: hi, C0: r.C0, C1: r.C1}.Shift(left.SrcRow-left.DstRow+r.R0, left.SrcCol))
	b := applyAt(a, &lower.RowRanges{Cols: op.Cols, Ranges: ranges}, []*fgraph.Variable{x}, t)
	return l.put(a, fgraph.Replacement{Old: a.Out(), New: b.Out()})
}

// pad returns a derivative of n rows that is zero outside the runs. v holds its rows from lo on.
func (l *derivLimiter) pad(v *fgraph.Variable, runs []rowRun, lo, n int32, origin int) *fgraph.Variable {
	cols := lower.TypeOf(v).Cols
	var terms []lower.Term
	for _, r := range runs {
		terms = append(terms, lower.Term{Scale: 1, DstRow: r.lo, SrcRow: r.lo - lo, NumRows: r.hi - r.lo, NumCols: cols, At: int32(origin)})
	}
	w := assembled(n, cols, terms, []*fgraph.Variable{v}, origin)
	if _, ok := ownerOp[*lower.Assemble](w); ok {
		l.padded[w] = true
	}
	return w
}

// cut returns the rows [lo, hi) of v, which are zero outside the runs. It looks through padding. If
// v is assembled for this use alone, it is assembled of fewer parts.
func (l *derivLimiter) cut(v *fgraph.Variable, runs []rowRun, lo, hi int32, origin int) *fgraph.Variable {
	root, r := lower.Resolve(v)
	everything := all(runs, r.Rows())
	_, together := ownerOp[*lower.Assemble](root)
	// Three cases. Padding: take the rows from behind it, so that it may vanish. Assembled just for
	// this use: assemble less in the first place. Otherwise choose the rows from what is there.
	together = together && !l.padded[root] && !everything && len(v.Clients()) == 1 && len(root.Clients()) == 1
	if everything && !l.padded[root] {
		return v
	}
	var terms []lower.Term
	inputs := []*fgraph.Variable{root}
	for _, run := range runs {
		t := lower.Term{Scale: 1, DstRow: run.lo - lo, SrcRow: r.R0 + run.lo, NumRows: run.hi - run.lo, SrcCol: r.C0, NumCols: r.Cols(), At: int32(origin)}
		switch {
		case isZero(root):
		case together:
			t.At = partsAt
			terms, inputs = through(terms, inputs, &t, root)
		case l.padded[root]:
			terms, inputs = through(terms, inputs, &t, root)
		default:
			terms = append(terms, t)
		}
	}
	return assembled(hi-lo, r.Cols(), terms, inputs, origin)
}
