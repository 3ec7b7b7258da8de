package rewrite

import (
	"cmp"
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// A Global is a graph rewriter made from a function that changes the graph through a [Handle].
type Global struct {
	Name     string // a verb phrase, or the established name
	Doc      string // what the pass does, in one sentence
	Class    string // in a profile; [profile.ClassFromFunction] by default
	Destroys bool   // whether Fn inserts ops that destroy their inputs
	Fn       func(ctx context.Context, h *Handle) error
}

// Describe returns the fields of the pass.
func (p Global) Describe() Description {
	return Description{Name: p.Name, Doc: p.Doc, Class: p.Class, Destroys: p.Destroys}
}

// AddRequirements attaches a [fgraph.DestroyHandler] if p.Destroys is set.
func (p Global) AddRequirements(g *fgraph.FunctionGraph) error { return watchDestroyers(g, p.Destroys) }

// Apply calls p.Fn.
func (p Global) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	rec.SetClass("", cmp.Or(p.Class, profile.ClassFromFunction))
	rec.Nodes(g.NumApplies())
	h := newHandle(ctx, g, rec, passFrom(ctx, p.Name))
	defer h.close()
	return p.Fn(ctx, &h)
}

// AddDestroyHandler returns the pass that permits in-place ops from then on: it attaches a
// [fgraph.DestroyHandler], and fails if the graph already destroys something unsafely. It comes
// late because every later change pays for the feature.
func AddDestroyHandler() GraphRewriter {
	nothing := func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error { return nil }
	return FromFunc("add_destroy_handler", "from here on ops may destroy their inputs", fgraph.WatchDestroyers, nothing)
}
