package generic

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// AddDestroyHandler marks the place in the sequence from which on ops may be made in-place, and attaches the feature that
// keeps them from destroying what is still needed. It is not attached earlier because every later change pays for it. It
// fails if something works in place already where it must not.
func AddDestroyHandler() rewrite.GraphRewriter {
	nothing := func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error { return nil }
	return rewrite.FromFunc("add_destroy_handler", "from here on ops may destroy their inputs", fgraph.WatchDestroyers, nothing)
}
