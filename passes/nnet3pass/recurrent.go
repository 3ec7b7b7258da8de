package nnet3pass

import (
	"context"
	"errors"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// SplitRecurrentAffine divides the affine components of recurrent networks. Such a component runs
// once per step, over an appended matrix: the left part comes from the layer below, the right part
// from the step before. The layer below is known for all steps at once, so one product computes its
// part for all of them and reads the parameters once instead of once per step. The products of the
// steps continue its sums, so the bits stay the same.
//
// Components with fewer than least parameters in the left part are left alone: a cache holds these
// from one step to the next, and the sums of all steps need more memory than the sums of one.
func SplitRecurrentAffine(least int) rewrite.GraphRewriter {
	return rewrite.Global{
		Name: "split_recurrent_affine",
		Doc:  "an affine whose input is partly recurrent computes the other part for all steps in one product: affine(append(x_t, y_t-1)) → affine'(x)_t + affine''(y_t-1)",
		Fn:   func(ctx context.Context, h *rewrite.Handle) error { return splitRecurrent(ctx, h, least) },
	}
}

// leastSplit is the least of the standard database for SplitRecurrentAffine: a megabyte, half of a
// second-level cache.
const leastSplit = 1 << 18

// maxStepRows is the largest number of rows for which reading the parameters is taken to dominate
// the product of a step.
const maxStepRows = 128

// splitRecurrent divides the components one after the other.
func splitRecurrent(ctx context.Context, h *rewrite.Handle, least int) error {
	// A component at a time, and in the order of the graph: a replacement of one may change what
	// the others read, but not whether they are steps.
	order, steps := affineSteps(h.Graph(), least)
	n := 0
	for _, c := range order {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		alike := largestGroup(steps[c])
		if len(alike) < 2 || alike[0].width*alike[0].product.OutputDim() < least {
			continue
		}
		done, err := h.Replace("", alike[0].apply, dividedSteps(alike)...)
		switch {
		// The pass does not prove that the left part is known before the first step; it tries. The
		// graph refuses a replacement that would make a circle, and stays as it was.
		case errors.Is(err, fgraph.ErrCycle):
			// The left part depends on a step after all.
		case err != nil:
			return err
		case done:
			n += len(alike)
		}
	}
	h.Recorder().Set("nb_steps", float64(n), "")
	return nil
}

// A step is a run of an affine component over an appended matrix.
type step struct {
	apply   *fgraph.Apply
	product *component.Product
	parts   []part // the first one has the leftmost columns
	width   int    // of the first part
}

// affineSteps returns the runs of affine components that may be steps, by component, and the
// components in the order of their first runs.
func affineSteps(g *fgraph.FunctionGraph, least int) (order []component.Component, steps map[component.Component][]step) {
	steps = make(map[component.Component][]step)
	for a := range g.Applies() {
		op, ok := a.Op().(lower.Propagate)
		if !ok || op.C.InputDim()*op.C.OutputDim() < least {
			continue
		}
		s, ok := stepOf(a)
		if !ok {
			continue
		}
		c := op.C
		if steps[c] == nil {
			order = append(order, c)
		}
		steps[c] = append(steps[c], s)
	}
	return order, steps
}

// stepOf returns a as a step and reports whether it can be one.
func stepOf(a *fgraph.Apply) (step, bool) {
	op, ok := a.Op().(lower.Propagate)
	if !ok || !plain(op) || op.Accumulate || len(a.Inputs()) == 0 || lower.TypeOf(a.Out()).Rows > maxStepRows {
		return step{}, false
	}
	root, at := lower.Resolve(a.Inputs()[0])
	asm, ok := ownerOp[*lower.Assemble](root)
	if !ok {
		return step{}, false
	}
	product, ok := component.NewProduct(op.C)
	if !ok || !product.Properties().Has(component.Simple) {
		return step{}, false
	}
	// The first step reads zeros in place of a step before it. As a term, they make it look like
	// the others.
	assembled := withZeros(root.Owner(), asm)
	asm = assembled.Op().(*lower.Assemble)
	s := step{apply: a, product: product}
	if s.parts, ok = spliceParts(product, op, int(lower.TypeOf(a.Out()).Rows), assembled, asm, at); !ok || len(s.parts) < 2 {
		return step{}, false
	}
	for _, x := range s.parts[0].splices {
		s.width += x.Cols
	}
	for _, q := range s.parts[1:] {
		for _, x := range q.splices {
			// The sums are continued from left to right, so what comes first must be all of the
			// leftmost columns.
			if x.Col < s.width {
				return step{}, false // the columns of the first part are not contiguous
			}
		}
	}
	return s, true
}

// withZeros returns the Assemble with a term for the last columns if no term covers them: they are
// zero in the first step, which has no step before it.
func withZeros(a *fgraph.Apply, asm *lower.Assemble) *fgraph.Apply {
	end := int32(0)
	for i := range asm.Terms {
		end = max(end, asm.Terms[i].DstCol+asm.Terms[i].NumCols)
	}
	if end == asm.Cols {
		return a
	}
	zeros := lower.Term{Input: int32(len(a.Inputs())), Scale: 1, NumRows: asm.Rows, DstCol: end, NumCols: asm.Cols - end, At: int32(a.Origin())}
	inputs := append(slices.Clone(a.Inputs()), lower.NewFill(asm.Rows, asm.Cols-end, 0))
	return lower.NewAssemble(asm.Rows, asm.Cols, append(slices.Clone(asm.Terms), zeros), inputs).Owner()
}

// like reports whether the first parts of two steps are the same columns of the same matrix.
func (s *step) like(t *step) bool {
	x, y := &s.parts[0], &t.parts[0]
	return x.source == y.source && slices.EqualFunc(x.splices, y.splices, func(p, q component.Splice) bool {
		return p.Col == q.Col && p.Cols == q.Cols && p.SrcCol == q.SrcCol
	})
}

// largestGroup returns the first of the largest groups of steps that are alike, in the order of
// their commands.
func largestGroup(steps []step) []step {
	var best []step
	for len(steps) > len(best) {
		var group, rest []step
		for _, s := range steps {
			if s.like(&steps[0]) {
				group = append(group, s)
			} else {
				rest = append(rest, s)
			}
		}
		if len(group) > len(best) {
			best = group
		}
		steps = rest
	}
	slices.SortStableFunc(best, func(s, t step) int { return s.apply.Origin() - t.apply.Origin() })
	return best
}

// dividedSteps returns the replacements for the results of the steps.
func dividedSteps(steps []step) []fgraph.Replacement {
	first := &steps[0]
	op := first.apply.Op().(lower.Propagate)
	below := slices.Clone(first.parts[0].splices)
	rows := int32(0)
	// Step after step, so that each step's sums are a block of consecutive rows.
	for i := range below {
		below[i].Rows = nil
		for _, s := range steps {
			below[i].Rows = append(below[i].Rows, s.parts[0].splices[i].Rows...)
		}
		rows = int32(len(below[i].Rows))
	}
	source := first.parts[0].source
	in := lower.TypeOf(source)
	q, pre := first.product.Splice(below, int(in.Rows), int(in.Cols), true, false)
	cols := lower.TypeOf(first.apply.Out()).Cols
	sums := runProduct(first.apply, op, q, pre, []*fgraph.Variable{source}, rows)

	pairs := make([]fgraph.Replacement, len(steps))
	r0 := int32(0)
	for i, s := range steps {
		r1 := r0 + lower.TypeOf(s.apply.Out()).Rows
		sum := lower.NewBlock(sums, lower.Rect{R0: r0, R1: r1, C0: 0, C1: cols})
		pairs[i] = fgraph.Replacement{Old: s.apply.Out(), New: addParts(s.apply, op, s.product, s.parts[1:], sum)}
		r0 = r1
	}
	return pairs
}
