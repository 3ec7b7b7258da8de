package rulecheck

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
)

// A Case is an expression on which a rule may fire.
type Case struct {
	Vars string // declares its inputs, see expr.Scope.Declare
	Expr string
}

// CheckRewriter checks a rule that is a Go function, on the expressions of o.Cases: on every apply
// of them, and of others of the same shapes with other element types. tags are those of the rule.
func CheckRewriter(ctx context.Context, r rewrite.NodeRewriter, tags []string, o Options) (Report, error) {
	d := rewrite.Describe(r)
	c := newChecker(ctx, &o, tags, d.Name)
	if fires := c.cases(r); fires == 0 {
		c.trouble = append(c.trouble, fmt.Sprintf("it does not fire on any of %d expressions", len(o.Cases)))
	}
	report := c.report()
	report.Name, report.Rule = d.Name, d.Doc
	return report, ctx.Err()
}

// cases checks a rule on the expressions of the options. It returns how often the rule fired.
func (c *checker) cases(r rewrite.NodeRewriter) (fires int) {
	language := cmp.Or(c.opts.Language, expr.Default())
	for _, k := range c.opts.Cases {
		// The tests of Go rules mostly have float64s. The same expression of float32s shows
		// conversions that a rule forgets.
		for _, vars := range []string{k.Vars, single(k.Vars)} {
			s := language.NewScope()
			if s.Declare(vars) != nil {
				continue
			}
			outputs, err := s.Parse(k.Expr)
			if err == nil && c.ctx.Err() == nil {
				fires += c.expression(r, outputs)
			}
		}
	}
	return fires
}

// single makes float32s of the floats that have no element type.
func single(vars string) string {
	groups := strings.Split(vars, ";")
	for i, g := range groups {
		if names, t, ok := strings.Cut(g, ":"); ok {
			switch t = strings.TrimSpace(t); {
			case strings.HasPrefix(t, "float64"):
				groups[i] = names + ": float32" + strings.TrimPrefix(t, "float64")
			case strings.HasPrefix(t, "["), t == "scalar", t == "vector", t == "matrix", t == "row", t == "col", t == "tensor3", t == "tensor4":
				groups[i] = names + ": float32 " + t
			}
		}
	}
	return strings.Join(groups, ";")
}

// expression lets a rule fire on each apply of an expression by itself.
func (c *checker) expression(r rewrite.NodeRewriter, outputs []*fgraph.Variable) (fires int) {
	g, err := tensor.NewGraph(tensor.InputsOf(outputs...), outputs)
	if err == nil {
		err = g.Attach(tensor.NewShapes())
	}
	if err != nil {
		return 0
	}
	for _, a := range slices.Collect(g.Ordered()) {
		if !rewrite.Wants(r, a.Op()) {
			continue
		}
		in := &instance{graph: g}
		ok, err := in.fireAt(rewrite.NewContext(c.ctx, g), r, a)
		switch {
		case err != nil:
			c.note(verdict{class: Wrong}, finding{in: in, text: err.Error()})
		case ok:
			fires++
			c.replaced(in)
		}
	}
	return fires
}

// replaced compares both sides of what a Go rule replaced.
func (c *checker) replaced(in *instance) {
	for i, v := range in.left {
		if !v.Type().Accepts(in.right[i].Type()) {
			c.note(verdict{class: Type}, finding{in: in, text: fmt.Sprintf("%v becomes a %v", v, in.right[i].Type())})
			return
		}
	}
	if in.compile(c.ctx) != nil {
		return
	}
	if len(c.fired) < maxKept && len(in.left) == 1 {
		c.fired = append(c.fired, fired{in.left[0], in.right[0]})
	}
	c.compare(in, nil)
}
