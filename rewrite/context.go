package rewrite

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// A Context tells a node rewriter about its driver. It is valid during the call.
type Context struct {
	ctx  context.Context
	g    *fgraph.FunctionGraph
	opts *Options
	pass string
	rule string
	node *fgraph.Apply

	counters *[]profile.Counter // of the rule; nil if nothing is recorded
	memos    map[any]any        // by a nil pointer to its type
}

// Memo returns the value of a type that rules have in a run of a driver, at first its zero value. It is for what
// remains true while the graph changes, so that a rule need not look at the same part of a graph for each of many
// applies.
func Memo[T any](c *Context) *T {
	key := (*T)(nil)
	if m, ok := c.memos[key]; ok {
		return m.(*T)
	}
	if c.memos == nil {
		c.memos = make(map[any]any)
	}
	m := new(T)
	c.memos[key] = m
	return m
}

// NewContext returns a context for calling a node rewriter without a driver.
func NewContext(ctx context.Context, g *fgraph.FunctionGraph) *Context {
	return &Context{ctx: ctx, g: g, opts: optionsFrom(ctx), pass: passFrom(ctx)}
}

// Graph returns the graph that the apply belongs to. The rewriter must not change it.
func (c *Context) Graph() *fgraph.FunctionGraph { return c.g }

// Context returns the context of the run, for rules that take a long time.
func (c *Context) Context() context.Context { return c.ctx }

// Count adds to a counter of the rule, which the profile shows with the rule. An empty unit
// means a count, see [profile.Counter].
func (c *Context) Count(name string, delta float64, unit string) {
	if c.counters != nil {
		*c.counters = profile.AddCounter(*c.counters, profile.Counter{Name: name, Value: delta, Unit: unit})
	}
}

// Explains reports whether somebody wants the reasons that rewriters give to Miss.
func (c *Context) Explains() bool { return c.opts != nil && c.opts.WhyNot != nil }

// Miss proposes nothing and gives the reason, which is formatted only if [Options.WhyNot] is
// set.
func (c *Context) Miss(format string, args ...any) Result {
	if c.Explains() && c.opts.wants(c.pass, c.rule) {
		c.opts.WhyNot(Miss{Pass: c.pass, Rule: c.rule, Apply: c.node, Text: fmt.Sprintf(format, args...)})
	}
	return Result{}
}
