package tensorpass

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// OnlyTensors returns a rewriter that leaves graphs of other front ends alone, at no cost.
func OnlyTensors(r rewrite.GraphRewriter) rewrite.GraphRewriter {
	return onlyTensors{r}
}

type onlyTensors struct{ r rewrite.GraphRewriter }

// RewriterDoc returns what the rewriter says of itself, which may be nothing.
func (o onlyTensors) RewriterDoc() string {
	if d, ok := o.r.(rewrite.Documented); ok {
		return d.RewriterDoc()
	}
	return ""
}

// isTensors reports whether a graph is one of tensors: all graphs are of one kind or the other.
func isTensors(g *fgraph.FunctionGraph) bool {
	for _, v := range g.Outputs() {
		if _, ok := v.Type().(tensor.Type); ok {
			return true
		}
	}
	return false
}

// RewriterName returns the name of the rewriter.
func (o onlyTensors) RewriterName() string { return rewrite.NameOf(o.r) }

// Class returns the class of the rewriter in a profile.
func (o onlyTensors) Class() string { return rewrite.ClassOf(o.r) }

// Inplace reports whether the rewriter makes ops work in place.
func (o onlyTensors) Inplace() bool {
	i, ok := o.r.(rewrite.Inplacer)
	return ok && i.Inplace()
}

// AddRequirements attaches what the rewriter needs.
func (o onlyTensors) AddRequirements(g *fgraph.FunctionGraph) error {
	if !isTensors(g) {
		return nil
	}
	return o.r.AddRequirements(g)
}

// Apply runs the rewriter.
func (o onlyTensors) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	if !isTensors(g) {
		rec.SetClass("", o.Class())
		return nil
	}
	return o.r.Apply(ctx, g, rec)
}
