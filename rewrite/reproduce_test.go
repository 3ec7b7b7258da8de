package rewrite

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// Every failure is reported once under every policy, with the pass, the rule, the apply and
// the graph before the pass.
func TestReproduce(t *testing.T) {
	wrong := errors.New("first line\nsecond line")
	bad := Rule{Name: "bad", On: []Track{TrackOp(op("k"))}, Fn: func(*Context, *fgraph.Apply) (Result, error) { return Result{}, wrong }}
	boom := FromFunc("", "", nil, func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error { panic("boom") })
	damage := FromFunc("", "", nil, func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error { return nil })
	first := Member{"first", In2Out("", swap("f_to_g", "f", "g"))}
	for _, c := range []struct {
		name   string
		member Member
		graph  string
		want   string
	}{
		{"rule", Member{"second", In2Out("", bad)}, "[k(*1 -> g(x), *1)]",
			"pass:   second\nrule:   bad\nnode:   k(g(x), g(x))\nerror:  first line\n\tsecond line\nquery:  +q\n"},
		{"equilibrium", Member{"second", &Equilibrium{Rules: list[NodeRewriter](bad)}}, "[k(*1 -> g(x), *1)]", "pass:   second\nrule:   bad\n"},
		{"global", Member{"second", &Equilibrium{Globals: list(Member{"inner", boom})}}, "[k(*1 -> g(x), *1)]", "pass:   inner\nerror:  panic: boom, at rewrite/reproduce_test.go:18\nquery:  +q\n"},
		{"nested", Member{"second", &Sequence{Members: list(Member{"again", In2Out("", swap("g_to_h", "g", "h"))}, Member{"inner", boom})}},
			"[k(*1 -> h(x), *1)]", "pass:   inner\nerror:  panic: boom, at rewrite/reproduce_test.go:18\n"},
		{"not ending", Member{"second", &Equilibrium{Rules: list[NodeRewriter](swap("g_to_h", "g", "h"), swap("h_to_g", "h", "g"))}},
			"[k(*1 -> g(x), *1)]", "pass:   second\nerror:  rules do not terminate: "},
		{"check", Member{"second", damage}, "[k(*1 -> g(x), *1)]", "pass:   second\nerror:  inconsistent graph: no\n"},
	} {
		for _, policy := range []Policy{Stop, Ignore} {
			if c.name == "check" && policy == Ignore {
				continue // a damaged graph ends the run under every policy
			}
			x, unnamed := input("x"), input("")
			f := call(op("f"), x)
			g := newGraph(t, list(x, unnamed), list(call(op("k"), f, f)))
			members := list(first, c.member)
			opts := Options{OnFailure: policy, Query: "+q"}
			if c.name == "check" {
				v := &vetoer{}
				members[1].Rewriter = FromFunc("", "", func(g *fgraph.FunctionGraph) error { return g.Attach(v) }, nothingToDo)
				opts.Check = true
			}
			var failures []Failure
			opts.Reproduce = func(f Failure) { failures = append(failures, f) }
			err := (&Sequence{Name: "all", Members: members}).Rewrite(WithOptions(context.Background(), opts), g, nil)
			if (err != nil) != (policy == Stop) {
				t.Errorf("%s: %v", c.name, err)
			}
			if len(failures) != 1 {
				t.Errorf("%s: %d failures: %v", c.name, len(failures), failures)
				continue
			}
			fail := failures[0]
			if fail.Graph.String() != c.graph || policy == Stop && !errors.Is(err, fail.Err) {
				t.Errorf("%s: %#v", c.name, fail)
			}
			text := fail.String()
			if !strings.HasPrefix(text, c.want) || !strings.Contains(text, "\ninputs: x: num; <num>: num\ngraph:  "+c.graph+"\n") {
				t.Errorf("%s:\n%s", c.name, text)
			}
			if errors.Is(fail.Err, ErrPanic) != strings.Contains(text, "\nstack:  goroutine") {
				t.Errorf("%s: stack:\n%s", c.name, text)
			}
		}
	}
}

// A driver that runs alone also reports failures. A cancelled run is not a failure.
func TestReproduceWithoutSequence(t *testing.T) {
	var got []Failure
	x := input("x")
	g := newGraph(t, list(x), list(call(op("f"), x)))
	ctx := WithOptions(context.Background(), Options{Reproduce: func(f Failure) { got = append(got, f) }})
	if err := Run(ctx, In2Out("walk", Rule{Name: "r"}), g, nil); !errors.Is(err, ErrRule) {
		t.Error(err)
	}
	if len(got) != 1 || got[0].Pass != "walk" || got[0].Graph.String() != "[f(x)]" {
		t.Errorf("%+v", got)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := NewSequence("s", &Merge{}).Rewrite(ended, g, nil); !errors.Is(err, context.Canceled) || len(got) != 1 {
		t.Errorf("%v, %d failures", err, len(got))
	}
}

func TestWhyNotAtAnApply(t *testing.T) {
	x, y := input("x"), input("y")
	rule := func(name, on string, fn func(c *Context, n *fgraph.Apply) (Result, error)) Rule {
		return Rule{Name: name, On: []Track{TrackOp(op(on))}, Fn: fn}
	}
	outside := call(op("f"), x)
	for _, c := range []struct {
		name     string
		rule     NodeRewriter
		features []fgraph.Feature
		want     string
	}{
		{"fires", swap("r", "f", "g"), nil, "it fires: f(x) -> g(x)"},
		{"tracks", swap("r", "h", "g"), nil, "it does not track f, but h"},
		{"a track of a type", Rule{Name: "r", On: []Track{TrackType[special]()}, Fn: swap("", "f", "g").Fn}, nil, "it does not track f, but rewrite.special"},
		{"says why", rule("r", "f", func(c *Context, _ *fgraph.Apply) (Result, error) { return c.Miss("%d is too few", 1), nil }), nil, "1 is too few"},
		{"does not say", rule("r", "f", func(*Context, *fgraph.Apply) (Result, error) { return Result{}, nil }), nil, "it proposes nothing, and does not say why"},
		{"no change", rule("r", "f", func(_ *Context, n *fgraph.Apply) (Result, error) { return Replace(call(op("f"), n.Inputs()...)), nil }), nil, "its proposal changes nothing"},
		{"fails", rule("r", "f", func(*Context, *fgraph.Apply) (Result, error) { return Result{}, errors.ErrUnsupported }), nil, "it fails: unsupported operation"},
		{"panics", rule("r", "f", func(*Context, *fgraph.Apply) (Result, error) { panic("no") }), nil, "it fails: panic: no"},
		{"type", rule("r", "f", func(*Context, *fgraph.Apply) (Result, error) {
			return Replace(fgraph.NewConstant(typ("other"), 1, "")), nil
		}), nil, "type num does not accept other"},
		{"faulty", Rule{Name: "r"}, nil, "faulty rule: r has no function"},
		{"vetoed", swap("r", "f", "g"), []fgraph.Feature{&vetoer{}}, "refused: f(x) -> g(x): why not/r: inconsistent graph: no"},
		{"vetoed by a DestroyHandler", rule("r", "f", func(_ *Context, n *fgraph.Apply) (Result, error) {
			return Replace(call(inplaceOp("f_in_place"), n.Inputs()...)), nil
		}), []fgraph.Feature{fgraph.NewDestroyHandler(nil)}, "f_in_place"},
	} {
		g := newGraph(t, list(x, y), list(call(op("top"), call(op("f"), x), y)), c.features...)
		n := g.Outputs()[0].Owner().Inputs()[0].Owner()
		if got := WhyNot(context.Background(), c.rule, g, n); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		wantString(t, g, "[top(f(x), y)]")
		if got := WhyNot(context.Background(), c.rule, g, outside.Owner()); got != "f(x) is not in the graph" {
			t.Error(got)
		}
		for _, v := range []*fgraph.Variable{x, y} {
			g2 := v.Graph()
			if g2 != g {
				t.Fatal("input lost its graph")
			}
		}
		x, y = input("x"), input("y")
		outside = call(op("f"), x)
	}
}

// A graph rewriter that undoes a rule is part of the reported cycle.
func TestCase51RuleAgainstCleanup(t *testing.T) {
	x := input("x")
	g := newGraph(t, list(x), list(call(op("a"), x)))
	back := In2Out("", swap("b_to_a", "b", "a"))
	for name, e := range map[string]*Equilibrium{
		"global":  {Globals: list(Member{"undo", back})},
		"final":   {Final: list(Member{"undo", back})},
		"cleanup": {Cleanup: list(Member{"undo", back})},
	} {
		e.Rules = list[NodeRewriter](swap("a_to_b", "a", "b"))
		err := Run(context.Background(), e, g, nil)
		var most *MaxUseError
		if !errors.As(err, &most) || !most.Repeats || len(most.Lap) != 2 || most.uses > 20 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range list("a_to_b: a(x) -> b(x)", "undo: graph of 1 applies -> of 1") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %q in %v", name, want, err)
			}
		}
	}
}
