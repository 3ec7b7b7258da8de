package optdb

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// rule returns the node rewriter of an entry under the name of the entry.
func (e *Entry) rule() rewrite.NodeRewriter {
	d := rewrite.Describe(e.Rewriter)
	d.Name, d.Doc, d.Destroys = e.Name, e.Doc, e.inplace()
	return rewrite.As(e.Rewriter.(rewrite.NodeRewriter), d)
}

// An idle rewriter does nothing. It is the driver of a GroupDB, which has none.
type idle struct{}

func (idle) AddRequirements(*fgraph.FunctionGraph) error { return nil }
func (idle) Apply(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error {
	return nil
}
