package nnet3pass

import (
	"context"
	"errors"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// splitRecurrentDerivative is SplitRecurrentAffine for the backward pass. A step before it needs
// the derivative of what is recurrent in the input of an affine component. The derivative of the
// rest goes to the layer below, for all steps together, and one product computes it for all steps.
// Each element is the same sum as before, so the bits stay the same.
//
// Components with fewer than least parameters in the part of the layer below are left alone.
func splitRecurrentDerivative(least int) rewrite.GraphRewriter {
	return rewrite.Global{
		Name: "split_recurrent_derivative",
		Doc:  "what a layer below gets of the derivatives of a recurrent affine is computed for all steps in one product: affine*(dy_t) → (affine'*(dy)_t, affine''*(dy_t))",
		Fn:   func(ctx context.Context, h *rewrite.Handle) error { return splitDerivatives(ctx, h, least) },
	}
}

// splitDerivatives divides the derivatives of the components one after the other.
func splitDerivatives(ctx context.Context, h *rewrite.Handle, least int) error {
	order, runs := affineDerivatives(h.Graph(), least)
	n := 0
	for _, c := range order {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		d := derivativeSplit{c: c, runs: runs[c]}
		if len(d.runs) < 2 || !d.findBelow(least) {
			continue
		}
		done, err := d.divide(h)
		switch {
		case errors.Is(err, fgraph.ErrCycle):
			// A step waits for the layer below after all.
		case err != nil:
			return err
		case done:
			n += len(d.runs)
		}
	}
	h.Recorder().Set("nb_steps", float64(n), "")
	return nil
}

// affineDerivatives returns the backward runs that compute nothing but the derivative of the input
// of an affine component, for few rows, by component, and the components in the order of their
// first runs.
func affineDerivatives(g *fgraph.FunctionGraph, least int) (order []component.Component, runs map[component.Component][]*fgraph.Apply) {
	runs = make(map[component.Component][]*fgraph.Apply)
	for a := range g.Ordered() {
		op, ok := a.Op().(lower.Backprop)
		if !ok || !op.HasDX || op.ModelUpdate || op.HasState || op.UsesMemo || op.Accumulate || op.InPlace || op.Precomputed != nil ||
			op.C.InputDim()*op.C.OutputDim() < least || lower.TypeOf(a.Out()).Rows > maxStepRows {
			continue
		}
		if _, ok := component.NewInputColumns(op.C, 0, 1); !ok {
			continue
		}
		if runs[op.C] == nil {
			order = append(order, op.C)
		}
		runs[op.C] = append(runs[op.C], a)
	}
	return order, runs
}

// A derivativeSplit is the division of the derivatives that a component computes step by step.
type derivativeSplit struct {
	c     component.Component
	runs  []*fgraph.Apply // in the order of the steps of the forward pass
	below *fgraph.Apply   // assembles the columns for the layer below
	cut   int32           // their number; they are the first ones
}

// findBelow finds the Assemble that takes the first columns of the derivatives of several steps,
// and reduces the runs to those steps. It reports false unless the columns have at least that many
// parameters and something else needs the others.
func (d *derivativeSplit) findBelow(least int) bool {
	slices.Reverse(d.runs)               // a backward pass begins with the last step
	steps := make(map[*fgraph.Apply]int) // by reader: how many steps it reads
	for _, a := range d.runs {
		// What takes a part of every step is the matrix for the layer below. What only a step
		// reads, or a few, belongs to the recurrence.
		for c := range readers(a.Out()) {
			if _, ok := c.Apply.Op().(*lower.Assemble); !ok {
				continue
			}
			steps[c.Apply]++
			if n := steps[c.Apply]; n > 1 && (d.below == nil || n > steps[d.below]) {
				d.below = c.Apply
			}
		}
	}
	if d.below == nil {
		return false
	}
	op := d.below.Op().(*lower.Assemble)
	for i := range op.Terms {
		if t := &op.Terms[i]; t.SrcCol == 0 && slices.Contains(d.runs, d.below.Inputs()[t.Input].Owner()) {
			d.cut = t.NumCols
			break
		}
	}
	d.runs = slices.DeleteFunc(d.runs, func(a *fgraph.Apply) bool { return !d.divisible(a) })
	rest := d.c.InputDim() - int(d.cut)
	return len(d.runs) > 1 && int(d.cut)*d.c.OutputDim() >= least && rest > 0 &&
		kernel.Divisible(int(d.cut), d.c.OutputDim()) && kernel.Divisible(rest, d.c.OutputDim())
}

// divisible reports whether the layer below takes just the first columns of a derivative, and
// everything else only others.
func (d *derivativeSplit) divisible(a *fgraph.Apply) bool {
	below := false
	for _, c := range a.Out().Clients() {
		if c.Apply == nil {
			return false
		}
		switch op := c.Apply.Op().(type) {
		case lower.Block:
			if op.C0 < d.cut {
				return false
			}
		case *lower.Assemble:
			for i := range op.Terms {
				t := &op.Terms[i]
				switch {
				case int(t.Input) != c.Index:
				case c.Apply == d.below && t.SrcCol == 0 && t.NumCols == d.cut:
					below = true
				case c.Apply == d.below || t.SrcCol < d.cut:
					return false
				}
			}
		default:
			return false
		}
	}
	return below
}

// divide replaces the matrix for the layer below, and then what reads the other columns.
func (d *derivativeSplit) divide(h *rewrite.Handle) (bool, error) {
	first, _ := component.NewInputColumns(d.c, 0, int(d.cut))
	others, _ := component.NewInputColumns(d.c, int(d.cut), d.c.InputDim()-int(d.cut))
	dy, rows := d.allSteps()
	together := d.run(first, d.runs[0], dy)
	op := d.below.Op().(*lower.Assemble)
	inputs := append(slices.Clone(d.below.Inputs()), together)
	terms := slices.Clone(op.Terms)
	for i := range terms {
		t := &terms[i]
		if k := slices.Index(d.runs, d.below.Inputs()[t.Input].Owner()); k >= 0 {
			t.ShiftSrc(rows[k], 0)
			t.Input = int32(len(inputs) - 1)
		}
	}
	// This replacement first: if it makes a circle, because the layer below feeds a step, nothing
	// has changed yet. After it the steps are the only readers of their old derivatives.
	done, err := h.Replace("", d.below, fgraph.Replacement{Old: d.below.Out(), New: lower.NewAssemble(op.Rows, op.Cols, terms, inputs)})
	if err != nil || !done {
		return false, err
	}
	for _, a := range d.runs {
		part := d.run(others, a, a.Inputs()[a.Op().(lower.Backprop).InputDeriv()])
		for _, c := range slices.Clone(a.Out().Clients()) {
			if _, err := h.Replace("", c.Apply, fgraph.Replacement{Old: c.Apply.Out(), New: d.fromPart(c, part)}); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// run returns the derivative that some columns of the component have in place of run a, for the
// given derivative of the output.
func (d *derivativeSplit) run(c component.Component, a *fgraph.Apply, dy *fgraph.Variable) *fgraph.Variable {
	op := lower.Backprop{Component: lower.Component{C: c, Number: -1, Name: a.Op().(lower.Backprop).Name}, HasDX: true}
	return applyAt(a, op, []*fgraph.Variable{dy}, lower.MatrixType{Rows: lower.TypeOf(dy).Rows, Cols: int32(c.InputDim())}).Out()
}

// fromPart returns what a client computes if the derivative that it reads lacks the first columns.
func (d *derivativeSplit) fromPart(c fgraph.Client, part *fgraph.Variable) *fgraph.Variable {
	if b, ok := c.Apply.Op().(lower.Block); ok {
		return lower.NewBlock(part, b.Shift(0, -d.cut))
	}
	op := c.Apply.Op().(*lower.Assemble)
	inputs := slices.Clone(c.Apply.Inputs())
	inputs[c.Index] = part
	terms := slices.Clone(op.Terms)
	for i := range terms {
		if t := &terms[i]; int(t.Input) == c.Index {
			t.ShiftSrc(0, -d.cut)
		}
	}
	v := lower.NewAssemble(op.Rows, op.Cols, terms, inputs)
	v.Owner().SetOrigin(c.Apply.Origin())
	return v
}

// allSteps returns the derivatives of the outputs of all steps in one matrix, and the first row of
// each. The update of the parameters may read such a matrix already.
func (d *derivativeSplit) allSteps() (dy *fgraph.Variable, rows []int32) {
	var parts []*fgraph.Variable
	var at []int
	for _, a := range d.runs {
		parts = append(parts, a.Inputs()[a.Op().(lower.Backprop).InputDeriv()])
		at = append(at, a.Origin())
	}
	// The update of the parameters, if consolidated, reads the same derivatives as one matrix. To
	// find that matrix saves assembling a second one.
	root, _ := lower.Resolve(parts[0])
	if rows = rowsIn(root, parts); rows != nil {
		return root, rows
	}
	for c := range readers(root) {
		if _, ok := c.Apply.Op().(*lower.Assemble); !ok {
			continue
		}
		if rows = rowsIn(c.Apply.Out(), parts); rows != nil {
			return c.Apply.Out(), rows
		}
	}
	rows = make([]int32, len(parts))
	for k := 1; k < len(parts); k++ {
		rows[k] = rows[k-1] + lower.TypeOf(parts[k-1]).Rows
	}
	return stack(parts, at), rows
}

// rowsIn returns the first row of each part in a matrix that consists of the parts and nothing
// else, or nil if it is another matrix.
func rowsIn(all *fgraph.Variable, parts []*fgraph.Variable) []int32 {
	size := lower.TypeOf(all)
	asm, _ := ownerOp[*lower.Assemble](all)
	rows, sum := make([]int32, len(parts)), int32(0)
	for k, p := range parts {
		root, r := lower.Resolve(p)
		sum += r.Rows()
		rows[k] = -1
		if root == all && r.C0 == 0 && r.C1 == size.Cols {
			rows[k] = r.R0
		} else if asm != nil {
			rows[k] = rowOf(asm, slices.Index(all.Owner().Inputs(), root), r)
		}
		if rows[k] < 0 {
			return nil
		}
	}
	if sum != size.Rows {
		return nil
	}
	return rows
}

// rowOf returns the first of the rows of an Assemble that are rectangle r of an input, unscaled and
// in order, or -1.
func rowOf(asm *lower.Assemble, input int, r lower.Rect) int32 {
	for i := range asm.Terms {
		t := &asm.Terms[i]
		if int(t.Input) == input && t.Contiguous() && t.Scale == 1 && t.DstCol == 0 && t.NumCols == asm.Cols &&
			t.SrcCol == r.C0 && t.NumCols == r.Cols() && t.SrcRow <= r.R0 && r.R1 <= t.SrcRow+t.NumRows {
			return t.DstRow + r.R0 - t.SrcRow
		}
	}
	return -1
}
