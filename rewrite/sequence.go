package rewrite

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// A Member is a graph rewriter with the name that it has where it is used.
type Member struct {
	Name     string
	Rewriter GraphRewriter
}

// A Sequence runs graph rewriters one after the other. Each has its
// requirements added right before it runs.
type Sequence struct {
	Name    string
	Members []Member
}

// NewSequence returns a sequence of rewriters that are named as they name
// themselves.
func NewSequence(name string, rewriters ...GraphRewriter) *Sequence {
	s := &Sequence{Name: name}
	for _, r := range rewriters {
		s.Members = append(s.Members, Member{NameOf(r), r})
	}
	return s
}

// RewriterName returns s.Name.
func (s *Sequence) RewriterName() string { return s.Name }

// Class returns the class of the sequence in a profile.
func (s *Sequence) Class() string { return profile.ClassSequence }

// AddRequirements does nothing: what a member needs is attached when its turn
// comes.
func (s *Sequence) AddRequirements(*fgraph.FunctionGraph) error { return nil }

// Apply runs the members.
func (s *Sequence) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	rec.SetClass("", s.Class())
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

// Run attaches what r requires to g and applies it. While it runs, and if rec is
// not nil, the graph measures the time of its features.
func Run(ctx context.Context, r GraphRewriter, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	if rec.Enabled() && !g.Timing() {
		g.SetTiming(true)
		defer g.SetTiming(false)
	}
	name := passFrom(ctx, NameOf(r))
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
		err = nil // it may not go on, and has not failed
	}
	if err != nil {
		e, ok := err.(*Error)
		if !ok {
			e = &Error{Pass: name, Err: err}
		}
		reproduce(ctx, e)
	}
	return err
}

// runMember runs a member as a child of rec. A failure is dealt with as the
// options say, but for the end of ctx.
func runMember(ctx context.Context, m Member, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	if err := ended(ctx, m.Name); err != nil {
		return err
	}
	child := rec.Begin(m.Name, ClassOf(m.Rewriter))
	defer child.End()
	err := Run(WithPass(ctx, m.Name), m.Rewriter, g, child)
	if err == nil {
		return nil
	}
	if e := ended(ctx, m.Name); e != nil {
		return err
	}
	e, ok := err.(*Error)
	if !ok {
		e = &Error{Pass: m.Name, Err: err}
	}
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
			err = &Error{Pass: pass, Err: &PanicError{Value: r, Stack: debug.Stack()}}
		}
	}()
	return do()
}

// checkAfter looks for damage.
func checkAfter(g *fgraph.FunctionGraph) error {
	if err := g.Check(); err != nil {
		return err
	}
	return g.Validate()
}

// FromFunc returns a graph rewriter that consists of functions. doc says in a
// sentence what it does. requirements, which may be nil, attaches the features
// that apply needs; a feature that the graph has already is dropped. The record
// gets the number of changes that apply has not recorded itself. What changes
// the graph itself is better made a [Global].
func FromFunc(name, doc string, requirements func(*fgraph.FunctionGraph) error,
	apply func(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error) GraphRewriter {
	return &fromFunc{name, doc, requirements, apply}
}

type fromFunc struct {
	name, doc    string
	requirements func(*fgraph.FunctionGraph) error
	apply        func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error
}

func (f *fromFunc) RewriterName() string { return f.name }

func (f *fromFunc) RewriterDoc() string { return f.doc }

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

// addTimes records the time that features took since g.Times() was before.
func addTimes(rec *profile.Recorder, g *fgraph.FunctionGraph, before fgraph.Times) {
	if rec.Enabled() {
		now := g.Times()
		rec.AddValidate(now.Validate - before.Validate)
		rec.AddCallback(now.Callback - before.Callback)
	}
}
