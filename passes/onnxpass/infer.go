package onnxpass

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// inferTypes is the pass that gives results better types when those of their inputs have become better:
// a branch of an If is taken, say, and all that follows from it has a shape. A value can't change its
// type, so the apply that computes it is replaced by one of the same op.
//
// The cost is linear in the applies whose inputs have changed. Types only get better, so a result is
// replaced at most once for each time that an input is.
type inferTypes struct{}

// InferTypes returns the pass infer_types.
func InferTypes() rewrite.GraphRewriter { return inferTypes{} }

// Describe describes the pass.
func (inferTypes) Describe() rewrite.Description {
	return rewrite.Description{Name: "infer_types", Doc: "gives results better types where those of their inputs have become better"}
}

// AddRequirements attaches what notes which inputs change.
func (inferTypes) AddRequirements(g *fgraph.FunctionGraph) error {
	return g.Attach(&outdated{applies: make(map[*fgraph.Apply]bool)})
}

// Apply infers types.
func (p inferTypes) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	f, ok := fgraph.FeatureOf[*outdated](g)
	if !ok || len(f.applies) == 0 {
		return nil
	}
	return rewrite.Global{Name: "infer_types", Fn: f.renew}.Apply(ctx, g, rec)
}

// outdated is a feature that notes the applies with an input whose type has changed.
type outdated struct {
	applies map[*fgraph.Apply]bool
}

// OnAttach lets a graph have one.
func (f *outdated) OnAttach(g *fgraph.FunctionGraph) error {
	if _, ok := fgraph.FeatureOf[*outdated](g); ok {
		return fgraph.ErrAlreadyAttached
	}
	return nil
}

// OnChangeInput notes an apply.
func (f *outdated) OnChangeInput(_ *fgraph.FunctionGraph, a *fgraph.Apply, _ int, old, new *fgraph.Variable, _ fgraph.Reason) {
	if a != nil && old != nil && new != nil && old.Type() != new.Type() {
		f.applies[a] = true
	}
}

// OnPrune forgets an apply.
func (f *outdated) OnPrune(_ *fgraph.FunctionGraph, a *fgraph.Apply, _ fgraph.Reason) {
	delete(f.applies, a)
}

// renew infers types. What it replaces makes further applies outdated, which come later in the order.
func (f *outdated) renew(ctx context.Context, h *rewrite.Handle) error {
	order, err := h.Graph().Toposort()
	if err != nil {
		return err
	}
	operators := ir.SourceOf(h.Graph()).Operators
	for _, a := range order {
		if !f.applies[a] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		delete(f.applies, a)
		types, better := inferred(operators, a)
		if !better {
			continue
		}
		if err := replaceAll(h, a, retyped(a, a, types)); err != nil {
			return err
		}
	}
	return nil
}

// inferred returns the types of the results of an apply, and whether they say more than those that
// they have. A symbol that follows from the inputs is better than one of its own.
func inferred(operators *ir.Operators, a *fgraph.Apply) (types []fgraph.Type, better bool) {
	list, err := operators.Infer(a.Op().(*ir.Op), a.Inputs())
	if err != nil || len(list) != len(a.Outputs()) {
		return nil, false // such a branch of an If is never taken
	}
	return refined(a, list)
}

// refined returns types of the results of an apply with all that is known of these, and whether they say more than
// those that they have.
func refined(a *fgraph.Apply, list []ir.Type) (types []fgraph.Type, better bool) {
	for i, v := range a.Outputs() {
		t, ok := list[i].Meet(ir.TypeOf(v))
		if !ok {
			t = ir.TypeOf(v)
		}
		better = better || t != ir.TypeOf(v)
		types = append(types, t)
	}
	return types, better
}

// replaceAll replaces all results of an apply by those of another one.
func replaceAll(h *rewrite.Handle, a, b *fgraph.Apply) error {
	pairs := make([]fgraph.Replacement, len(b.Outputs()))
	for i, v := range b.Outputs() {
		pairs[i] = fgraph.Replacement{Old: a.Outputs()[i], New: v}
	}
	_, err := h.Replace("", a, pairs...)
	return err
}
