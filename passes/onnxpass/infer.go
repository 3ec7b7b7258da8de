package onnxpass

import (
	"context"
	"slices"

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

// MergeEqualSizes returns the pass merge_equal_sizes: integers whose types say that they are equal, in
// whatever way they are computed, are computed once.
func MergeEqualSizes() rewrite.GraphRewriter {
	return rewrite.Global{Name: "merge_equal_sizes", Doc: "computes integers once that types know to be equal", Fn: mergeEqualSizes}
}

func mergeEqualSizes(ctx context.Context, h *rewrite.Handle) error {
	g := h.Graph()
	first := make(map[ir.Type]*fgraph.Variable)
	type pair struct{ old, new *fgraph.Variable }
	var pairs []pair
	var always map[*fgraph.Apply]bool
	// Operands come first, so what takes the place of a value never depends on it.
	for a := range g.Ordered() {
		for _, v := range a.Outputs() {
			if !sizesKnown(v) {
				continue
			}
			t := ir.TypeOf(v)
			if w := first[t]; w != nil {
				pairs = append(pairs, pair{v, w})
				continue
			}
			// What only a branch of an If needs may fail where the branch is not taken, so nothing
			// outside of the branch may come to need it.
			if always == nil {
				always = unconditional(g)
			}
			if always[a] {
				first[t] = v
			}
		}
	}
	// Only now, since a replacement changes the order that is walked through above.
	for _, p := range pairs {
		if p.old.Owner() == nil || p.old.Owner().Graph() != g || p.new.Owner().Graph() != g {
			continue // one that was replaced needed it alone
		}
		if _, err := h.Replace("", p.old.Owner(), fgraph.Replacement{Old: p.old, New: p.new}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// sizesKnown reports whether the type of a value of integers says what all of them are. Where all are
// numbers they become a constant.
func sizesKnown(v *fgraph.Variable) bool {
	data, ok := ir.TypeOf(v).Data()
	if !ok || slices.ContainsFunc(data, ir.Dim.IsUnknown) {
		return false
	}
	return slices.ContainsFunc(data, func(d ir.Dim) bool { _, number := d.Number(); return !number })
}

// unconditional returns the applies that are computed whatever branches are taken.
func unconditional(g *fgraph.FunctionGraph) map[*fgraph.Apply]bool {
	done := make(map[*fgraph.Apply]bool)
	next := slices.Clone(g.Outputs())
	for len(next) > 0 {
		a := next[len(next)-1].Owner()
		next = next[:len(next)-1]
		if a == nil || done[a] {
			continue
		}
		done[a] = true
		// Of an If only the condition is always computed.
		if ir.IsIf(a) {
			next = append(next, a.Inputs()[0])
		} else {
			next = append(next, a.Inputs()...)
		}
	}
	return done
}
