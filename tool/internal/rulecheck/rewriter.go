package rulecheck

import (
	"context"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// A Case is an expression on which a rule may fire, as the domain reads it.
type Case struct {
	Vars string // declares its inputs
	Expr string
}

// CheckRewriter checks a rule that is a Go function, on every apply of the expressions of o.Cases.
// tags are those of the rule.
func CheckRewriter(ctx context.Context, d Domain, r rewrite.NodeRewriter, tags []string, o Options) (Report, error) {
	about := rewrite.Describe(r)
	c := newChecker(ctx, d, &o, tags, about.Name)
	if fires := c.cases(r); fires == 0 {
		c.trouble = append(c.trouble, fmt.Sprintf("it does not fire on any of %d expressions", len(o.Cases)))
	}
	report := c.report()
	report.Name, report.Rule = about.Name, about.Doc
	return report, ctx.Err()
}

// cases checks a rule on the expressions of the options. It returns how often the rule fired.
func (c *checker) cases(r rewrite.NodeRewriter) (fires int) {
	for _, k := range c.opts.Cases {
		for _, outputs := range c.domain.Expressions(k) {
			if c.ctx.Err() == nil {
				fires += c.expression(r, outputs)
			}
		}
	}
	return fires
}

// expression lets a rule fire on each apply of an expression by itself.
func (c *checker) expression(r rewrite.NodeRewriter, outputs []*fgraph.Variable) (fires int) {
	g, err := c.domain.Graph(outputs)
	if err != nil {
		return 0
	}
	for _, a := range slices.Collect(g.Ordered()) {
		if !rewrite.Wants(r, a.Op()) {
			continue
		}
		in := &Instance{Graph: g}
		ok, err := in.fireAt(rewrite.NewContext(c.ctx, g), r, a)
		switch {
		case err != nil:
			c.judge.Fault(in, Wrong, err.Error())
		case ok:
			fires++
			c.replaced(in)
		}
	}
	return fires
}

// replaced compares both sides of what a Go rule replaced.
func (c *checker) replaced(in *Instance) {
	for i, v := range in.Left {
		if !v.Type().Accepts(in.Right[i].Type()) {
			c.judge.Fault(in, Type, fmt.Sprintf("%v becomes a %v", v, in.Right[i].Type()))
			return
		}
	}
	if c.judge.Compare(in, nil) && len(c.fired) < maxKept && len(in.Left) == 1 {
		c.fired = append(c.fired, fired{in.Left[0], in.Right[0]})
	}
}
