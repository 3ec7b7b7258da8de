package rewrite

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
)

// A Context is what a node rewriter is told about its driver. It is valid for
// the call that it is handed to.
type Context struct {
	ctx  context.Context
	g    *fgraph.FunctionGraph
	opts *Options
	pass string
	rule string
	node *fgraph.Apply
}

// NewContext returns a context for calling a node rewriter without a driver.
func NewContext(ctx context.Context, g *fgraph.FunctionGraph) *Context {
	return &Context{ctx: ctx, g: g, opts: optionsFrom(ctx), pass: passFrom(ctx)}
}

// Graph returns the graph that the apply belongs to. To change it is an error.
func (c *Context) Graph() *fgraph.FunctionGraph { return c.g }

// Context returns the context of the run, for rules that take long.
func (c *Context) Context() context.Context { return c.ctx }

// Pass returns the name of the pass that is running.
func (c *Context) Pass() string { return c.pass }

// Miss proposes nothing and says why. The text is put together only if somebody
// wants to know.
func (c *Context) Miss(format string, args ...any) Result {
	if c.opts != nil && c.opts.WhyNot != nil && c.opts.wants(c.pass, c.rule) {
		c.opts.WhyNot(Miss{Pass: c.pass, Rule: c.rule, Apply: c.node, Text: fmt.Sprintf(format, args...)})
	}
	return Result{}
}
