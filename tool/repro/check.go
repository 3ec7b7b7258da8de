package repro

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/rewrite"
)

// Check runs a case and returns how it fails. The Kind of the result is None if it does not. An
// error means that the case can't be run, or that ctx has ended.
//
// Rewrite options of ctx apply, such as Trace. Pass and rule of a failure after optimization, such
// as other values, are those of a rewrite that makes the difference. If all rewrites of the pass
// and the rule that c expects make it together, these are named, even if others would do as well.
func Check(ctx context.Context, c *Case) (Failure, error) {
	r, err := c.prepare()
	if err != nil {
		return Failure{}, err
	}
	return r.failure(ctx)
}

// A runner runs one case again and again.
type runner struct {
	*Case
	opt       *optdb.Optimizer
	evaluator Evaluator
	values    []any
	right     []any
	judge     func(ctx context.Context, outputs []any) (differ, accepted string, err error)
	done      bool // right and judge are known
	// checked makes the optimizer check the graph after every pass.
	checked bool
	// earlyOnly leaves out what comes after optimization.
	earlyOnly bool
}

// prepare builds the optimizer.
func (c *Case) prepare() (*runner, error) {
	opt, err := c.Build(c.Query)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCase, err)
	}
	if c.Values != nil && len(c.Values) != len(c.Graph.Inputs()) {
		return nil, fmt.Errorf("%w: %d values for %d inputs", ErrCase, len(c.Values), len(c.Graph.Inputs()))
	}
	r := &runner{Case: c, opt: opt, values: c.Values, checked: c.Checked}
	var ok bool
	if r.evaluator, ok = find[Evaluator](c.World); !ok {
		if c.Values != nil || c.Failure.Kind.evaluated() {
			return nil, fmt.Errorf("%w: no evaluator: the graph can't be run", ErrCase)
		}
		// Damage often shows only in values or when the graph is run, so here it is looked for.
		r.evaluator, r.checked = defaults{}, true
	}
	return r, nil
}

// compute finds the values of the inputs and of the outputs without optimization.
func (r *runner) compute(ctx context.Context) error {
	if r.done {
		return nil
	}
	if r.values == nil {
		g, err := r.copied()
		if err == nil {
			r.values, err = r.evaluator.Random(ctx, g, r.Seed)
		}
		if err != nil {
			return fmt.Errorf("%w: random values: %w", ErrCase, err)
		}
	}
	g, err := r.copied()
	if err == nil {
		r.right, err = r.evaluator.Evaluate(ctx, g, r.values)
	}
	if _, none := r.evaluator.(defaults); err == nil && !none && len(r.right) == 0 && len(g.Outputs()) > 0 {
		err = fmt.Errorf("0 values for %d outputs", len(g.Outputs()))
	}
	if err != nil {
		return fmt.Errorf("%w: the graph can't be run without optimization: %w", ErrCase, err)
	}
	if j, ok := find[Judge](r.World); ok {
		if g, err = r.copied(); err != nil {
			return fmt.Errorf("%w: %w", ErrCase, err)
		}
		r.judge = j.Judge(g, r.values, r.right)
	} else {
		r.judge = func(_ context.Context, outputs []any) (string, string, error) {
			return r.evaluator.Differ(outputs, r.right), "", nil
		}
	}
	r.done = true
	return nil
}

// copied returns a copy of the graph with features.
func (r *runner) copied() (*fgraph.FunctionGraph, error) {
	c, _ := r.Graph.Clone()
	return c, attachLike(r.World, c, r.Graph)
}

// attachLike attaches features to a graph with counterparts of all inputs and outputs of another.
func attachLike(w World, g, like *fgraph.FunctionGraph) error {
	return part[Attacher](w, defaults{}).Attach(g, like, lists.Range[int](len(g.Inputs())), lists.Range[int](len(g.Outputs())))
}

// failure runs the case and finds out where the fault is.
func (r *runner) failure(ctx context.Context) (Failure, error) {
	f, err := r.run(ctx)
	if err != nil || f.Kind == None || f.Kind.early() || f.Pass != "" {
		return f, err
	}
	f.Pass, f.Rule, f.Node, err = r.blame(ctx, f)
	return f, err
}

// blame returns the place of a failure after optimization.
func (r *runner) blame(ctx context.Context, f Failure) (pass, rule, node string, err error) {
	// Several rewrites may each be necessary for wrong values, and a bisection names one of them.
	// While a case is being reduced, the answer would jump between them, and smaller cases that
	// fail as before would be rejected. So the place that was expected is asked first: if the
	// failure goes away without it, it is still to blame. That also takes one run in place of a
	// dozen.
	if want := r.Failure; want.Pass != "" {
		opts := rewrite.OptionsFrom(ctx)
		opts.Trace, opts.WhyNot = nil, nil
		opts.Allow = func(why fgraph.Reason) bool { return why.Pass != want.Pass || why.Rule != want.Rule }
		without, err := r.run(rewrite.WithOptions(ctx, opts))
		if err != nil {
			return "", "", "", err
		}
		if without.Kind == None {
			return want.Pass, want.Rule, want.Node, nil
		}
	}
	culprit, _, err := r.bisect(ctx, f)
	return culprit.Pass, culprit.Rule, culprit.Node, err
}

// bisect finds the rewrite or the pass without which there is no failure of that kind.
func (r *runner) bisect(ctx context.Context, f Failure) (culprit rewrite.Culprit, found bool, err error) {
	var fault error
	opts := rewrite.OptionsFrom(ctx)
	opts.WhyNot = nil
	culprit, found = rewrite.Bisect(rewrite.WithOptions(ctx, opts), func(ctx context.Context) bool {
		if fault != nil {
			return true
		}
		var got Failure
		got, fault = r.run(ctx)
		// An early failure knows its place, and has to be the same one. The place of a late failure
		// is known only after this search, so its kind alone can be compared.
		if f.Kind.early() {
			return !got.Same(f)
		}
		return got.Kind != f.Kind
	})
	return culprit, found, fault
}

// run runs the optimizer, and then the graph. An error is no failure of the optimizer.
func (r *runner) run(ctx context.Context) (Failure, error) {
	g, err := r.copied()
	if err != nil {
		return Failure{}, fmt.Errorf("%w: %w", ErrCase, err)
	}
	// The right values are computed only after the optimizer has succeeded, and once: they don't
	// depend on what a bisection allows.
	f := classify(r.rewrite(ctx, g))
	if ctx.Err() != nil {
		return Failure{}, context.Cause(ctx)
	}
	if f.Kind == Run {
		f.Kind = Error // of the optimizer as a whole
	}
	if f.Kind != None || r.earlyOnly {
		return f, nil
	}
	if err := r.compute(ctx); err != nil {
		return Failure{}, err
	}
	got, err := r.evaluate(ctx, g)
	if ctx.Err() != nil {
		return Failure{}, context.Cause(ctx)
	}
	if f = classify(err); f.Kind != None {
		return f, nil
	}
	what, accepted, err := r.judge(ctx, got)
	if err != nil {
		return Failure{}, err
	}
	if what != "" {
		return Failure{Kind: Values, Err: errors.New(what)}, nil
	}
	return Failure{Accepted: accepted}, nil
}

// rewrite optimizes a graph within the budget.
func (r *runner) rewrite(ctx context.Context, g *fgraph.FunctionGraph) error {
	opts := rewrite.OptionsFrom(ctx)
	opts.Check = opts.Check || r.checked
	if r.Budget != nil {
		within, asked := rewrite.Budget(*r.Budget), opts.Allow
		// The budget is asked first, so that it counts the same rewrites with and without the
		// question of a bisection.
		opts.Allow = func(why fgraph.Reason) bool {
			return within(why) && (asked == nil || asked(why))
		}
	}
	return r.opt.Rewrite(rewrite.WithOptions(ctx, opts), g, nil)
}

// evaluate runs an optimized graph. A panic is an error.
func (r *runner) evaluate(ctx context.Context, g *fgraph.FunctionGraph) (outputs []any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &rewrite.PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return r.evaluator.Evaluate(ctx, g, r.values)
}
