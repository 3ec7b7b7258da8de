package rewrite

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// A Global is a graph rewriter made of a function that changes the graph through a
// [Handle].
type Global struct {
	Name string // a verb phrase, or the name that the field knows it under
	Doc  string // what it does, in a sentence
	// ProfileClass is the class in a profile, [profile.ClassFromFunction] if it
	// is empty.
	ProfileClass string
	// Destroys tells that Fn brings in ops that destroy their inputs. A
	// [fgraph.DestroyHandler] is attached before it runs.
	Destroys bool
	Fn       func(ctx context.Context, h *Handle) error
}

// RewriterName returns p.Name.
func (p Global) RewriterName() string { return p.Name }

// RewriterDoc returns p.Doc.
func (p Global) RewriterDoc() string { return p.Doc }

// Inplace returns p.Destroys.
func (p Global) Inplace() bool { return p.Destroys }

// Class returns the class in a profile.
func (p Global) Class() string {
	if p.ProfileClass == "" {
		return profile.ClassFromFunction
	}
	return p.ProfileClass
}

// AddRequirements attaches what replacements are made through.
func (p Global) AddRequirements(g *fgraph.FunctionGraph) error { return requirements(g, p.Destroys) }

// Apply calls p.Fn.
func (p Global) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	rec.SetClass("", p.Class())
	rec.Nodes(g.NumApplies())
	h, err := newHandle(ctx, g, rec, p.Name)
	if err != nil {
		return err
	}
	defer h.close()
	return p.Fn(ctx, h)
}

// AddDestroyHandler returns the pass from which on ops may destroy their inputs: it
// attaches an [fgraph.DestroyHandler], and fails if something destroys already what it
// must not. It comes late because every later change pays for the feature.
func AddDestroyHandler() GraphRewriter {
	nothing := func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error { return nil }
	return FromFunc("add_destroy_handler", "from here on ops may destroy their inputs", fgraph.WatchDestroyers, nothing)
}
