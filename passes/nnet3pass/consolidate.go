package nnet3pass

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// consolidateModelUpdate merges the updates of a component that runs backward several times, as in
// a recurrent network, into one update at the end over all rows.
func consolidateModelUpdate() rewrite.GraphRewriter {
	return rewrite.Global{
		Name: "consolidate_model_update", Doc: "updates a component once over all rows, instead of in each of its backward runs",
		Fn: consolidate,
	}
}

// consolidate follows every state from the input of the graph through the backward runs that change
// it.
func consolidate(ctx context.Context, h *rewrite.Handle) error {
	g := h.Graph()
	prog, ok := lower.ProgramOf(g)
	if !ok {
		return nil
	}
	n := 0
	for _, state := range g.Inputs() {
		if _, ok := state.Type().(lower.StateType); !ok {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		runs := updates(state)
		if len(runs) < 2 {
			continue
		}
		done, err := h.Replace("", runs[0], collect(state, runs, prog.End())...)
		if err != nil {
			return err
		}
		if done {
			n += len(runs)
		}
	}
	h.Recorder().Set("nb_consolidated", float64(n), "")
	return nil
}

// updates returns the backward runs that change the state one after the other, or nil if they can't
// be merged. The component must be simple, have no memos, and have an update that is a sum over
// rows and is not computed alongside the derivatives.
func updates(state *fgraph.Variable) []*fgraph.Apply {
	var runs []*fgraph.Apply
	// The state goes from run to run, since each takes it and returns a new one. That is what keeps
	// updates in order on values, and here it is the list of the runs.
	for len(state.Clients()) == 1 && state.Clients()[0].Apply != nil {
		a := state.Clients()[0].Apply
		op, ok := a.Op().(lower.Backprop)
		props := component.Properties(0)
		if ok {
			props = op.C.Properties()
		}
		if !ok || !op.ModelUpdate || op.UsesMemo || op.Accumulate || !props.Has(component.Simple|component.Updatable) {
			return nil
		}
		if _, ok := op.C.(component.UpdatesAlongside); ok {
			return nil
		}
		runs = append(runs, a)
		state = a.Outputs()[len(a.Outputs())-1]
	}
	return runs
}

// collect returns the replacements that merge the updates of the runs. The update is scheduled
// before command number end.
func collect(state *fgraph.Variable, runs []*fgraph.Apply, end int) []fgraph.Replacement {
	var pairs []fgraph.Replacement
	op := runs[0].Op().(lower.Backprop)
	operands := op.InputDeriv() + 1
	parts := make([][]*fgraph.Variable, operands)
	var at []int
	// The runs go backward in time. In the opposite order their rows are those of whole matrices of
	// the forward pass, which then need not be assembled again.
	for i := len(runs) - 1; i >= 0; i-- {
		a := runs[i]
		at = append(at, a.Origin())
		for k := range parts {
			parts[k] = append(parts[k], a.Inputs()[k])
		}
		o := a.Op().(lower.Backprop)
		if !o.HasDX {
			continue
		}
		// What is left of a run is the derivative of the input. Without an effect it needs no
		// instance, so equal ones may merge, and it goes if nothing reads it.
		o.ModelUpdate, o.HasState, o.Instance = false, false, 0
		b := applyAt(a, o, a.Inputs()[:len(a.Inputs())-1], a.Out().Type())
		pairs = append(pairs, fgraph.Replacement{Old: a.Out(), New: b.Out()})
	}
	op.HasDX = false
	inputs := make([]*fgraph.Variable, 0, operands+1)
	for _, p := range parts {
		inputs = append(inputs, stack(p, at))
	}
	last := runs[len(runs)-1]
	update := fgraph.NewApply(op, append(inputs, state), state.Type())
	// After everything else. The parts live until then in any case, if they are parts of whole
	// matrices.
	update.SetOrigin(end)
	return append(pairs, fgraph.Replacement{Old: last.Outputs()[len(last.Outputs())-1], New: update.Out()})
}

// stack assembles matrices of equal width on top of each other, each at its time.
func stack(parts []*fgraph.Variable, at []int) *fgraph.Variable {
	var terms []lower.Term
	var inputs []*fgraph.Variable
	rows := int32(0)
	cols := lower.TypeOf(parts[0]).Cols
	for i, v := range parts {
		root, r := lower.Resolve(v)
		terms = append(terms, lower.Term{
			Input: int32(i), Scale: 1, DstRow: rows, SrcRow: r.R0, NumRows: r.Rows(), SrcCol: r.C0, NumCols: cols, At: int32(at[i]),
		})
		inputs = append(inputs, root)
		rows += r.Rows()
	}
	v := lower.NewAssemble(rows, cols, terms, inputs)
	v.Owner().SetOrigin(at[0])
	return v
}
