package optdb

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// A rule is a node rewriter under the name of its entry.
type rule struct {
	rewrite.NodeRewriter
	entry *Entry
}

func (r rule) RewriterName() string { return r.entry.Name }
func (r rule) RewriterDoc() string  { return r.entry.Doc }
func (r rule) Inplace() bool        { return r.entry.inplace() }
func (r rule) Reach() int           { return rewrite.ReachOf(r.NodeRewriter) }

func (r rule) TransformFunc() rewrite.TransformFunc { return rewrite.FuncOf(r.NodeRewriter) }

// An idle rewriter does nothing. It is the driver of a GroupDB, which has none.
type idle struct{}

func (idle) AddRequirements(*fgraph.FunctionGraph) error { return nil }
func (idle) Apply(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error {
	return nil
}
