package saturate

import (
	"context"
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/passes/saturate/internal/egraph"
	"github.com/nnopt/nnopt/rewrite"
)

// trials try candidates with what runs after the pass. What saturation finds is cheaper by itself,
// but later passes may make less of it, such as where two ops can't be fused any more. The graph
// does not change.
type trials struct {
	s      *run
	left   int
	list   []trial
	failed int        // those that were not cheaper than the graph as it is
	best   *candidate // the cheapest at the end, or nil
	plain  float64    // what the graph costs as it is, and infinity if it fails
	cost   float64    // of the best, or plain
}

type trial struct {
	of   *candidate
	cost float64
}

// try returns what a candidate costs at the end, and infinity if it fails or may not be tried any
// more.
func (t *trials) try(ctx context.Context, f *candidate) (float64, error) {
	for _, x := range t.list {
		if x.of.same(f) {
			return x.cost, nil
		}
	}
	if len(t.list) == 0 {
		// The first question also finds out what the graph costs at the end if saturation changes
		// nothing. It is not asked before, because a graph without candidates needs no trial.
		plain, _ := t.s.h.Graph().Clone()
		cost, err := t.finally(ctx, plain)
		if err != nil {
			return cost, err
		}
		if t.plain, t.cost = cost, cost; math.IsInf(cost, 1) {
			t.left = 0 // it will fail anyway
		}
	}
	if t.left == 0 {
		return math.Inf(1), nil
	}
	// Trials run passes over a copy. So they are counted,
	// and a candidate that was tried is remembered.
	t.left--
	// The candidate is made of variables of the graph and of new ones. In the clone, the former
	// have counterparts and the latter are copied.
	g, m := t.s.h.Graph().Clone()
	c := copier{m: m, made: make(map[*fgraph.Variable]*fgraph.Variable)}
	moved := lists.Map(f.pairs, func(p fgraph.Replacement) fgraph.Replacement {
		return fgraph.Replacement{Old: m.Of(p.Old), New: c.copy(p.New)}
	})
	cost := math.Inf(1)
	if err := g.ReplaceAllValidate(moved, nil, fgraph.Reason{Pass: t.s.p.Name}); err == nil {
		if cost, err = t.finally(ctx, g); err != nil {
			return cost, err
		}
	}
	t.list = append(t.list, trial{f, cost})
	if cost < t.cost {
		t.best, t.cost = f, cost
	}
	if !(cost < t.plain) {
		t.failed++
	}
	return cost, nil
}

// finally returns what a graph costs after p.Later, and infinity if that fails.
func (t *trials) finally(ctx context.Context, g *fgraph.FunctionGraph) (float64, error) {
	// A clone has no features. What later passes rely on, such as shapes, was attached by those
	// before.
	for _, r := range t.s.p.Earlier {
		if err := r.AddRequirements(g); err != nil {
			return 0, err
		}
	}
	// The trial is not the run: it must not be traced or counted against a budget, and a pass that
	// fails in it fails later by itself, with a report.
	options := rewrite.Options{OnFailure: rewrite.Ignore, MaxUse: rewrite.OptionsFrom(ctx).MaxUse}
	err := rewrite.Run(rewrite.WithOptions(ctx, options), t.s.p.Later, g, nil)
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if err != nil {
		return math.Inf(1), nil
	}
	cost := 0.0
	for a := range g.Applies() {
		cost += t.s.b.costOf(a)
	}
	return cost, nil
}

// model tries the candidate that is cheapest by another model of costs.
func (t *trials) model(ctx context.Context, each func(*fgraph.Apply) float64, multiple float64) error {
	if t.left == 0 {
		return nil
	}
	f, err := t.s.cheapest(ctx, each, multiple)
	if err != nil || f == nil {
		return err
	}
	_, err = t.try(ctx, f)
	return err
}

// parts tries what a candidate changes by halves, then what gained nothing by halves of halves, and
// so on. What gains is kept.
func (t *trials) parts(ctx context.Context, f *candidate) error {
	var changes []egraph.Class
	for _, c := range f.order {
		if n, ok := f.choice.Given(c); ok && n != f.choice.Node(c) {
			changes = append(changes, c)
		}
	}
	kept := make(map[egraph.Class]bool)
	// Halves first: if one half of the changes gains all, the other is not looked at closer. What
	// gains nothing as a whole may still hold single changes that gain, so its halves follow,
	// breadth first, as long as there are trials left.
	cost := t.plain
	for todo := halves(changes); len(todo) > 0 && t.left > 0; todo = todo[1:] {
		part := todo[0]
		// Each part is tried on top of those that were kept, because gains may need each other.
		g, err := t.without(ctx, f, slices.DeleteFunc(slices.Clone(changes), func(c egraph.Class) bool { return kept[c] || slices.Contains(part, c) }))
		if err != nil {
			return err
		}
		with := math.Inf(1)
		if g != nil {
			if with, err = t.try(ctx, g); err != nil {
				return err
			}
		}
		if !(with < cost) {
			todo = append(todo, halves(part)...)
			continue
		}
		cost = with
		for _, c := range part {
			kept[c] = true
		}
	}
	return nil
}

// halves returns the halves of a list of two or more.
func halves(list []egraph.Class) [][]egraph.Class {
	if len(list) < 2 {
		return nil
	}
	return [][]egraph.Class{list[:len(list)/2], list[len(list)/2:]}
}

// without returns a candidate without some of its changes, or nil if it can't be.
func (t *trials) without(ctx context.Context, f *candidate, classes []egraph.Class) (*candidate, error) {
	choice, ok := f.choice.Restored(classes)
	if !ok {
		return nil, nil
	}
	return t.s.candidate(ctx, choice)
}

// copier copies new variables of a graph to its clone.
type copier struct {
	m    *fgraph.Mapping
	made map[*fgraph.Variable]*fgraph.Variable
	todo []*fgraph.Variable
}

// copy returns the counterpart of a variable.
func (c *copier) copy(v *fgraph.Variable) *fgraph.Variable {
	c.todo = append(c.todo[:0], v)
next:
	for len(c.todo) > 0 {
		v := c.todo[len(c.todo)-1]
		if c.of(v) == nil {
			a := v.Owner()
			if a == nil {
				c.made[v] = fgraph.NewConstant(v.Type(), v.Data(), v.Name())
				continue
			}
			inputs := make([]*fgraph.Variable, len(a.Inputs()))
			for i, in := range a.Inputs() {
				if inputs[i] = c.of(in); inputs[i] == nil {
					c.todo = append(c.todo, in)
					continue next
				}
			}
			b := newApply(a, inputs)
			for i, out := range a.Outputs() {
				c.made[out] = b.Outputs()[i]
			}
		}
		c.todo = c.todo[:len(c.todo)-1]
	}
	return c.of(v)
}

func (c *copier) of(v *fgraph.Variable) *fgraph.Variable {
	if w := c.m.Of(v); w != nil {
		return w
	}
	return c.made[v]
}
