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

// Describe returns the description of the rewriter.
func (o onlyTensors) Describe() rewrite.Description { return rewrite.Describe(o.r) }

// isTensors reports whether a graph is one of tensors: all graphs are of one kind or the other.
func isTensors(g *fgraph.FunctionGraph) bool {
	for _, v := range g.Outputs() {
		if _, ok := v.Type().(tensor.Type); ok {
			return true
		}
	}
	return false
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
		rec.SetClass("", o.Describe().Class)
		return nil
	}
	return o.r.Apply(ctx, g, rec)
}
