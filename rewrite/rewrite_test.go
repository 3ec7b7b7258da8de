package rewrite

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/profiletest"
)

type op string

func (o op) String() string { return string(o) }

type typ string

func (t typ) String() string { return string(t) }
func (t typ) Accepts(u fgraph.Type) bool {
	v, ok := u.(typ)
	return ok && strings.HasPrefix(string(v), string(t))
}

const num = typ("num")

func input(name string) *fgraph.Variable { return fgraph.NewInput(num, name) }
func call(o fgraph.Op, in ...*fgraph.Variable) *fgraph.Variable {
	return fgraph.NewApply(o, in, num).Out()
}

func newGraph(t testing.TB, inputs, outputs []*fgraph.Variable, features ...fgraph.Feature) *fgraph.FunctionGraph {
	t.Helper()
	g, err := fgraph.New(inputs, outputs, features...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func list[T any](x ...T) []T { return x }

func wantString(t testing.TB, g *fgraph.FunctionGraph, want string) {
	t.Helper()
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
	if got := g.String(); got != want {
		t.Fatalf("graph is %s, want %s", got, want)
	}
}

func run(t testing.TB, r GraphRewriter, g *fgraph.FunctionGraph) *profile.Record {
	t.Helper()
	rec := profile.New("test", Describe(r).Class)
	if err := Run(context.Background(), r, g, rec); err != nil {
		t.Fatal(err)
	}
	rec.End()
	if err := profiletest.Check(rec.Record()); err != nil {
		t.Fatal(err)
	}
	return rec.Record()
}

// simplify is the rule of Theano's tutorial: (x*y)/y → x and (x*y)/x → y.
var simplify = Rule{Name: "simplify", On: []Track{TrackOp(op("true_div"))}, Depth: 2,
	Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
		m := n.Inputs()[0].Owner()
		if m == nil || m.Op() != op("mul") {
			return c.Miss("no product"), nil
		}
		switch y := n.Inputs()[1]; y {
		case m.Inputs()[0]:
			return Replace(m.Inputs()[1]), nil
		case m.Inputs()[1]:
			return Replace(m.Inputs()[0]), nil
		}
		return c.Miss("divisor is not a factor"), nil
	}}

func TestTutorial(t *testing.T) {
	x, y, z := input("x"), input("y"), input("z")
	g := newGraph(t, list(x, y, z), list(call(op("true_div"), call(op("mul"), call(op("add"), y, z), x), call(op("add"), y, z))))
	walk := In2Out("simplify", simplify)
	run(t, walk, g)
	wantString(t, g, "[true_div(mul(add(y, z), x), add(y, z))]")
	run(t, &Merge{}, g)
	wantString(t, g, "[true_div(mul(*1 -> add(y, z), x), *1)]")
	run(t, walk, g)
	wantString(t, g, "[x]")
}

func swap(name, from, to string) Rule {
	made := fgraph.Op(op(to))
	return Rule{Name: name, On: []Track{TrackOp(op(from))}, Depth: 1,
		Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
			return Replace(fgraph.NewApply(made, n.Inputs(), num).Out()), nil
		}}
}

func TestCase51MutualRules(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		x, y := input("x"), input("y")
		g := newGraph(t, list(x, y), list(call(op("add"), x, call(op("add"), x, y))))
		e := &Equilibrium{Name: "fight", Rules: []NodeRewriter{swap("add_to_sub", "add", "sub"), swap("sub_to_add", "sub", "add")}, IgnoreNewTrees: ignore}
		err := Run(context.Background(), e, g, nil)
		if !errors.Is(err, ErrMaxUse) || !strings.Contains(err.Error(), "add_to_sub") || !strings.Contains(err.Error(), "sub_to_add") {
			t.Errorf("ignore %v: %v", ignore, err)
		}
		if err := g.Check(); err != nil {
			t.Error(err)
		}
		t.Log(err)
	}
}
