package rewrite

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// FromFunc returns a graph rewriter made from functions. doc says in one sentence what it does.
// requirements, which may be nil, attaches the features that apply needs. Changes that apply
// does not record are counted automatically. For a pass that replaces variables, prefer a
// [Global].
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
	ctx, w := watch(ctx, g, passFrom(ctx, f.name))
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
