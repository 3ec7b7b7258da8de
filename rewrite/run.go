package rewrite

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// Run adds the requirements of r to g and applies r. If rec is not nil, the graph measures the
// time spent in its features meanwhile.
func Run(ctx context.Context, r GraphRewriter, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	if rec.Enabled() && !g.Timing() {
		g.SetTiming(true)
		defer g.SetTiming(false)
	}
	// The outermost run is observed as a whole; those inside of it are part of it.
	if opts := optionsFrom(ctx); opts.Observe != nil {
		end, err := opts.Observe(g, rec)
		if err != nil {
			return err
		}
		defer end()
		inner := *opts
		inner.Observe = nil
		ctx = WithOptions(ctx, inner)
	}
	name := passFrom(ctx)
	if name == "" {
		name = Outline(r).Name // a rule that can't be made is a failure of the run
	}
	err := protect(name, func() error {
		var w watching
		ctx, w = watch(ctx, g, name)
		defer w.end(g)
		if m, ok := r.(Maker); ok {
			m.MakeRules(g, rec)
		}
		if err := r.AddRequirements(g); err != nil {
			return fmt.Errorf("requirements: %w", err)
		}
		rec.Nodes(g.NumApplies())
		return r.Apply(withPass(ctx, name), g, rec)
	})
	rec.Nodes(g.NumApplies())
	if denied(err) {
		err = nil // the rewriter stopped, but did not fail
	}
	if err != nil {
		e := located(name, err)
		reproduce(ctx, e)
		// A pass that was interrupted may return the error of its context as it is.
		if ctx.Err() != nil {
			return e
		}
	}
	return err
}

// located returns err as an Error. If it is not one yet, it becomes an Error of the named pass.
func located(pass string, err error) *Error {
	if e, ok := err.(*Error); ok {
		return e
	}
	return &Error{Pass: pass, Err: err}
}

// runMember runs a member with a child of rec. It treats a failure according to the options,
// unless ctx is done.
func runMember(ctx context.Context, m Member, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	if err := ended(ctx, m.Name); err != nil {
		return err
	}
	var child *profile.Recorder
	if rec.Enabled() { // or the description is for nothing
		child = rec.Begin(m.Name, Outline(m.Rewriter).Class)
		defer child.End()
	}
	err := Run(withPass(ctx, m.Name), m.Rewriter, g, child)
	if err == nil {
		return nil
	}
	// A run that was cancelled has failed for that reason, whatever the options say about failures
	// of passes.
	if e := ended(ctx, m.Name); e != nil {
		return err
	}
	e := located(m.Name, err)
	e.reproduced = true // by Run
	return optionsFrom(ctx).fail(ctx, e)
}

// ended returns an error if ctx is done.
func ended(ctx context.Context, pass string) error {
	if ctx.Err() == nil {
		return nil
	}
	return &Error{Pass: pass, Err: context.Cause(ctx)}
}

// protect turns a panic into an error.
func protect(pass string, do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &Error{Pass: pass, Err: newPanic(r)}
		}
	}()
	return do()
}
