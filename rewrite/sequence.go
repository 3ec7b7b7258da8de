package rewrite

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// A Member is a graph rewriter with the name under which it runs.
type Member struct {
	Name     string
	Rewriter GraphRewriter
}

// A Sequence runs graph rewriters one after another. It adds the requirements of each
// right before it runs.
type Sequence struct {
	Name    string
	Members []Member
}

// NewSequence returns a sequence of rewriters under their own names.
func NewSequence(name string, rewriters ...GraphRewriter) *Sequence {
	s := &Sequence{Name: name}
	for _, r := range rewriters {
		s.Members = append(s.Members, Member{Describe(r).Name, r})
	}
	return s
}

// Describe returns the name and the class of the sequence.
func (s *Sequence) Describe() Description {
	return Description{Name: s.Name, Class: profile.ClassSequence}
}

// AddRequirements does nothing: each member adds its own when it runs.
func (s *Sequence) AddRequirements(*fgraph.FunctionGraph) error { return nil }

// Apply runs the members.
func (s *Sequence) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	rec.SetClass("", profile.ClassSequence)
	rec.Nodes(g.NumApplies())
	opts := optionsFrom(ctx)
	if opts.BeforePass != nil {
		inner := *opts
		inner.BeforePass = nil
		ctx = WithOptions(ctx, inner)
	}
	start := g.Commits()
	for _, m := range s.Members {
		if opts.BeforePass != nil && !opts.BeforePass(m.Name) {
			break
		}
		ctx := withSnapshot(withoutSnapshot(ctx), g)
		if err := runMember(ctx, m, g, rec); err != nil {
			return err
		}
		rec.Nodes(g.NumApplies())
		if opts.Check {
			if err := checkAfter(g); err != nil {
				e := &Error{Pass: m.Name, Err: err}
				reproduce(ctx, e)
				return e
			}
		}
	}
	rec.Changed(g.Commits() - start)
	return nil
}

// Rewrite adds the requirements and applies the sequence, see [Run].
func (s *Sequence) Rewrite(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	return Run(ctx, s, g, rec)
}

// Run adds the requirements of r to g and applies r. If rec is not nil, the graph
// measures the time spent in its features meanwhile.
func Run(ctx context.Context, r GraphRewriter, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	if rec.Enabled() && !g.Timing() {
		g.SetTiming(true)
		defer g.SetTiming(false)
	}
	name := passFrom(ctx)
	if name == "" {
		name = Describe(r).Name
	}
	ctx = withSnapshot(ctx, g)
	w := watch(optionsFrom(ctx), g, name)
	defer w.end(g)
	err := protect(name, func() error {
		if err := r.AddRequirements(g); err != nil {
			return fmt.Errorf("requirements: %w", err)
		}
		rec.Nodes(g.NumApplies())
		return r.Apply(WithPass(ctx, name), g, rec)
	})
	rec.Nodes(g.NumApplies())
	if denied(err) {
		err = nil // the rewriter stopped, but did not fail
	}
	if err != nil {
		reproduce(ctx, located(name, err))
	}
	return err
}

// located returns err as an Error, of the named pass if it is none yet.
func located(pass string, err error) *Error {
	if e, ok := err.(*Error); ok {
		return e
	}
	return &Error{Pass: pass, Err: err}
}

// runMember runs a member with a child of rec. It treats a failure according to the
// options, unless ctx is done.
func runMember(ctx context.Context, m Member, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	if err := ended(ctx, m.Name); err != nil {
		return err
	}
	child := rec.Begin(m.Name, Describe(m.Rewriter).Class)
	defer child.End()
	err := Run(WithPass(ctx, m.Name), m.Rewriter, g, child)
	if err == nil {
		return nil
	}
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
			err = &Error{Pass: pass, Err: &panicError{Value: r, Stack: debug.Stack()}}
		}
	}()
	return do()
}

// checkAfter checks and validates the graph.
func checkAfter(g *fgraph.FunctionGraph) error {
	if err := g.Check(); err != nil {
		return err
	}
	return g.Validate()
}

// FromFunc returns a graph rewriter made from functions. doc says in one sentence what
// it does. requirements, which may be nil, attaches the features that apply needs.
// Changes that apply does not record are counted automatically. For a pass that
// replaces variables, prefer a [Global].
func FromFunc(name, doc string, requirements func(*fgraph.FunctionGraph) error,
	apply func(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error) GraphRewriter {
	return &fromFunc{name, doc, requirements, apply}
}

type fromFunc struct {
	name, doc    string
	requirements func(*fgraph.FunctionGraph) error
	apply        func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error
}

func (f *fromFunc) Describe() Description { return Description{Name: f.name, Doc: f.doc} }

func (f *fromFunc) AddRequirements(g *fgraph.FunctionGraph) error {
	if f.requirements == nil {
		return nil
	}
	return f.requirements(g)
}

func (f *fromFunc) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	w := watch(optionsFrom(ctx), g, passFrom(ctx, f.name))
	defer w.end(g)
	if !rec.Enabled() {
		return f.apply(ctx, g, rec)
	}
	commits, times, had := g.Commits(), g.Times(), *rec.Record()
	err := f.apply(ctx, g, rec)
	now := rec.Record()
	rec.Changed(g.Commits() - commits - (now.Changed - had.Changed))
	times.Validate += now.Validate - had.Validate
	times.Callback += now.Callback - had.Callback
	addTimes(rec, g, times)
	return err
}

// addTimes records the time spent in features since g.Times() returned before.
func addTimes(rec *profile.Recorder, g *fgraph.FunctionGraph, before fgraph.Times) {
	if rec.Enabled() {
		now := g.Times()
		rec.AddValidate(now.Validate - before.Validate)
		rec.AddCallback(now.Callback - before.Callback)
	}
}
