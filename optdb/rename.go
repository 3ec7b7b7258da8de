package optdb

import "github.com/nnopt/nnopt/rewrite"

// rule returns the node rewriter of an entry under the name of the entry.
func (e *Entry) rule() rewrite.NodeRewriter {
	d := rewrite.Describe(e.Rewriter)
	d.Name, d.Doc, d.Destroys = e.Name, e.Doc, e.inplace()
	return rewrite.As(e.Rewriter.(rewrite.NodeRewriter), d)
}
