package generic

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// Destroyer is a feature that says which of the graph's inputs in-place ops may destroy. Without one they may destroy none.
type Destroyer interface {
	Destroyable(input *fgraph.Variable) bool
}

// AddDestroyHandler marks the place in the sequence from which on ops may be made in-place, and attaches the feature that
// keeps them from destroying what is still needed. It is not attached earlier because every later change pays for it.
func AddDestroyHandler() rewrite.GraphRewriter {
	requirements := func(g *fgraph.FunctionGraph) error {
		var opts fgraph.DestroyOptions
		if d, ok := fgraph.FeatureOf[Destroyer](g); ok {
			opts.Destroyable = d.Destroyable
		}
		return g.Attach(fgraph.NewDestroyHandler(opts))
	}
	nothing := func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error { return nil }
	return rewrite.FromFunc("add_destroy_handler", requirements, nothing)
}
