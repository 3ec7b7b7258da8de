package repro

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/rewrite"
)

// A Finding is what [Bisect] finds out about a failure.
type Finding struct {
	// Failure is how the case fails.
	Failure Failure
	// Culprit is the rewrite, or else the pass, that makes the difference: without it the case does
	// not fail like that. Found is false if the case fails even if no pass may change the graph, as
	// with a rule that panics at an apply of the graph itself.
	Culprit rewrite.Culprit
	Found   bool
	// Before is a case that begins right before the culprit: with the graph at that point, and with
	// no more of the query than that needs. If there is none that fails in the same way, Before is
	// the case with a budget that ends with the culprit.
	Before *Case
}

// Bisect finds the rewrite to blame for a failure. The error is an ErrCase if c does not fail.
func Bisect(ctx context.Context, c *Case) (*Finding, error) {
	r, err := c.prepare()
	if err != nil {
		return nil, err
	}
	f := new(Finding)
	if f.Failure, err = r.run(ctx); err != nil {
		return nil, err
	}
	if f.Failure.Kind == None {
		return nil, fmt.Errorf("%w: it does not fail", ErrCase)
	}
	r.earlyOnly = f.Failure.Kind.early()
	if f.Culprit, f.Found, err = r.bisect(ctx, f.Failure); err != nil {
		return nil, err
	}
	if f.Failure.Pass == "" {
		f.Failure.Pass, f.Failure.Rule, f.Failure.Node = f.Culprit.Pass, f.Culprit.Rule, f.Culprit.Node
	}
	f.Before = r.before(ctx, f)
	return f, ctx.Err()
}

// before returns the case that begins right before the culprit.
func (r *runner) before(ctx context.Context, f *Finding) *Case {
	c := *r.Case
	c.Failure = f.Failure
	if f.Culprit.Number > 0 {
		n := f.Culprit.Number
		c.Budget = &n
	}
	// A budget that ends with the culprit is always a case: it repeats everything up to it. A graph
	// taken right before the culprit is better, since nothing happens before the failure. But it
	// fails only if the culprit depends on nothing else, such as what a pass remembers of its
	// earlier applies, so each candidate is run.
	g := r.at(ctx, f.Culprit)
	if g == nil {
		return &c
	}
	next := c
	next.Graph, next.Budget = g, nil
	opt, err := c.Build(c.Query)
	if err != nil {
		return &c
	}
	next.Checked = c.Checked || opt.Debugging()
	pass, rule := f.Failure.Pass, f.Failure.Rule
	// The rule alone, its pass, then both: a rule of an equilibrium is selected by its own name,
	// but one that is part of a pass only with the pass.
	for _, names := range [][]string{{rule}, {pass}, {pass, rule}} {
		if next.Query = optdb.Include(names...); names[len(names)-1] != "" && next.same(ctx) {
			return &next
		}
	}
	if next.Query = c.Query; next.same(ctx) {
		return &next
	}
	return &c
}

// same reports whether a case fails as it should.
func (c *Case) same(ctx context.Context) bool {
	f, err := Check(ctx, c)
	return err == nil && f.Same(c.Failure)
}

// at returns the graph right before the culprit, or nil if there is none.
func (r *runner) at(ctx context.Context, culprit rewrite.Culprit) (before *fgraph.FunctionGraph) {
	g, err := r.copied()
	if err != nil {
		return nil
	}
	taken := false
	take := func() {
		if taken {
			return
		}
		taken = true
		defer func() {
			if recover() != nil {
				before = nil // a pass has damaged the graph
			}
		}()
		// The optimizer is in the middle of the graph, so it is copied here. After that nothing
		// more is allowed to change, and the rest of the run is cheap.
		c, _ := g.Clone()
		if attachLike(r.World, c, g) == nil {
			before = c
		}
	}
	opts := rewrite.OptionsFrom(ctx)
	opts.Trace, opts.WhyNot = nil, nil
	asked := 0
	// Rewrites are numbered as rewrite.Bisect did: by the questions whether they are allowed. A
	// culprit without a number is a whole pass that changes the graph unasked.
	opts.Allow = func(fgraph.Reason) bool {
		asked++
		if culprit.Number > 0 && asked == culprit.Number {
			take()
		}
		return !taken
	}
	opts.BeforePass = func(pass string) bool {
		if culprit.Number == 0 && pass == culprit.Pass {
			take()
		}
		return !taken
	}
	_ = r.rewrite(rewrite.WithOptions(ctx, opts), g) // what matters is the way there
	return before
}
