package rewritetest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
)

type op string

func (o op) String() string { return string(o) }

type real struct{}

func (real) String() string             { return "real" }
func (real) Accepts(t fgraph.Type) bool { return t == real{} }

func call(o op, in ...*fgraph.Variable) *fgraph.Variable {
	return fgraph.NewApply(o, in, real{}).Out()
}

// negNeg is -(-x) → x.
var negNeg = rewrite.Rule{Name: "neg_neg", On: []rewrite.Track{rewrite.TrackOp(op("neg"))}, Depth: 2,
	Fn: func(c *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
		in := n.Inputs()[0].Owner()
		if in == nil || in.Op() != op("neg") {
			return c.Miss("%v is no negation", n.Inputs()[0]), nil
		}
		return rewrite.Replace(in.Inputs()[0]), nil
	}}

var flip = rewrite.Rule{Name: "flip", On: []rewrite.Track{rewrite.TrackOp(op("add"))},
	Fn: func(_ *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
		return rewrite.Replace(call("add", n.Inputs()[1], n.Inputs()[0])), nil
	}}

func negs(t testing.TB, n int) *fgraph.FunctionGraph {
	x := fgraph.NewInput(real{}, "x")
	v := x
	for range n {
		v = call("neg", v)
	}
	return rewritetest.Graph(t, []*fgraph.Variable{x}, v)
}

func sum(t testing.TB) *fgraph.FunctionGraph {
	x, y := fgraph.NewInput(real{}, "x"), fgraph.NewInput(real{}, "y")
	return rewritetest.Graph(t, []*fgraph.Variable{x, y}, call("add", x, y))
}

// sign evaluates graphs of negations, at 1.
func sign(g *fgraph.FunctionGraph) ([]any, error) {
	value := map[*fgraph.Variable]float64{g.Inputs()[0]: 1}
	for a := range g.Ordered() {
		if a.Op() != op("neg") {
			return nil, errors.ErrUnsupported
		}
		value[a.Out()] = -value[a.Inputs()[0]]
	}
	return []any{value[g.Outputs()[0]]}, nil
}

// broken is a test that is expected to fail.
type broken struct {
	testing.TB
	message string
}

func (b *broken) Helper()                   {}
func (b *broken) Context() context.Context  { return context.Background() }
func (b *broken) Fatal(args ...any)         { b.message = fmt.Sprint(args...); runtime.Goexit() }
func (b *broken) Fatalf(f string, a ...any) { b.message = fmt.Sprintf(f, a...); runtime.Goexit() }

func TestHelpers(t *testing.T) {
	all := &rewrite.Equilibrium{Name: "all", Rules: []rewrite.NodeRewriter{negNeg}}
	once := rewrite.In2Out("once", flip)
	drop := rewrite.In2Out("drop", rewrite.Rule{Name: "drop", Fn: func(_ *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
		return rewrite.Replace(n.Inputs()[0]), nil
	}})
	for _, c := range []struct {
		name string
		do   func(t testing.TB)
		want string // part of the message, empty if the test must pass
	}{
		{"fires", func(t testing.TB) { rewritetest.Fires(t, negNeg, negs(t, 2), "[x]") }, ""},
		{"fires, other result", func(t testing.TB) { rewritetest.Fires(t, negNeg, negs(t, 2), "[y]") }, "want   [y]"},
		{"does not fire, but should", func(t testing.TB) { rewritetest.Fires(t, negNeg, negs(t, 1), "[x]") }, "at neg(x): x is no negation"},
		{"does not fire", func(t testing.TB) { rewritetest.DoesNotFire(t, negNeg, negs(t, 1)) }, ""},
		{"fires, but should not", func(t testing.TB) { rewritetest.DoesNotFire(t, negNeg, negs(t, 2)) }, "neg_neg fires on [neg(neg(x))]"},
		{"reaches", func(t testing.TB) { rewritetest.Reaches(t, all, negs(t, 9), "[neg(x)]") }, ""},
		{"reaches, but goes on", func(t testing.TB) { rewritetest.Reaches(t, once, sum(t), "[add(y, x)]") }, "once does not terminate"},
		{"never settles", func(t testing.TB) {
			rewritetest.Run(t, &rewrite.Equilibrium{Name: "flips", Rules: []rewrite.NodeRewriter{flip}}, sum(t))
		}, "flip: add(y, x) -> add(x, y)"},
		{"keeps values", func(t testing.TB) { rewritetest.KeepsValues(t, all, negs(t, 5), sign) }, ""},
		{"changes values", func(t testing.TB) { rewritetest.KeepsValues(t, drop, negs(t, 5), sign) }, "with other values"},
		{"no values", func(t testing.TB) { rewritetest.KeepsValues(t, drop, sum(t), sign) }, errors.ErrUnsupported.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == "" {
				c.do(t)
				return
			}
			b := &broken{TB: t}
			done := make(chan bool)
			go func() {
				defer close(done)
				c.do(b)
			}()
			<-done
			if !strings.Contains(b.message, c.want) {
				t.Errorf("the message is %q, which does not contain %q", b.message, c.want)
			}
		})
	}
}
