package rewrite_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// The message of a panic names the line of the rule, also where the fault shows in a package that the
// rule calls, in a function of its own, or while the rule is made.
func TestPanicSite(t *testing.T) {
	body := func(panics func()) rewrite.NodeRewriter {
		return rewrite.Rule{Name: "r", Fn: func(*rewrite.Context, *fgraph.Apply) (rewrite.Result, error) {
			panics()
			return rewrite.Result{}, nil
		}}
	}
	for _, c := range []struct {
		rule rewrite.NodeRewriter
		want string
	}{
		{body(fault), "panic: runtime error: index out of range [2] with length 0, at rewrite/panic_test.go:44"},
		{body(func() { _ = (*fgraph.Variable)(nil).Type() }), "panic: runtime error: invalid memory address or nil pointer dereference, at rewrite/panic_test.go:26"},
		{rewrite.Later(rewrite.Description{Name: "r"}, func() rewrite.NodeRewriter { fault(); return nil }), "at rewrite/panic_test.go:44"},
	} {
		for _, driver := range []rewrite.GraphRewriter{rewrite.In2Out("walk", c.rule), &rewrite.Equilibrium{Name: "walk", Rules: []rewrite.NodeRewriter{c.rule}}} {
			x := fgraph.NewInput(Float{}, "x")
			err := rewrite.Run(t.Context(), driver, graphOf([]*fgraph.Variable{x}, apply("sqr", x)), nil)
			var p *rewrite.PanicError
			if !errors.Is(err, rewrite.ErrPanic) || !errors.As(err, &p) || !strings.HasSuffix(err.Error(), c.want) || !strings.HasSuffix(err.Error(), p.At) {
				t.Errorf("%v, not %s", err, c.want)
			}
		}
	}
}

// fault panics on the line that the test expects.
func fault() {
	var none []int
	i := 2
	none[i]++
}
