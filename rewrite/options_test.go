package rewrite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// incomparable is an op that can't be compared.
type incomparable struct{ _ []int }

func (incomparable) String() string { return "incomparable" }

// A proposal that no graph could accept is the fault of the rule. The graph stays as it was.
func TestNonsense(t *testing.T) {
	x, y := input("x"), input("y")
	two := fgraph.NewApply(op("two"), list(x), num, num)
	build := func() *fgraph.FunctionGraph {
		two = fgraph.NewApply(op("two"), list(x), num, num)
		return newGraph(t, list(x, y), list(two.Outputs()[0], call(op("g"), two.Outputs()[0])))
	}
	for _, c := range []struct {
		name   string
		result func(n *fgraph.Apply) (Result, error)
		err    error
		want   string
	}{
		{"one output of two", func(*fgraph.Apply) (Result, error) { return Replace(x), nil }, ErrRule, ""},
		{"nil for a used one", func(*fgraph.Apply) (Result, error) { return Replace(nil, x), nil }, ErrRule, ""},
		{"nil for an unused one", func(*fgraph.Apply) (Result, error) { return Replace(x, nil), nil }, nil, "[x, g(x)]"},
		{"itself", func(n *fgraph.Apply) (Result, error) { return Replace(n.Outputs()...), nil }, nil, "[*1 -> two(x)::0, g(*1::0)]"},
		{"a copy of itself", func(n *fgraph.Apply) (Result, error) {
			return Replace(fgraph.NewApply(n.Op(), n.Inputs(), num, num).Outputs()...), nil
		}, nil, "[*1 -> two(x)::0, g(*1::0)]"},
		{"both", func(n *fgraph.Apply) (Result, error) {
			return Result{Outputs: n.Outputs(), Pairs: []fgraph.Replacement{{Old: x, New: y}}}, nil
		}, ErrRule, ""},
		{"nil in a pair", func(n *fgraph.Apply) (Result, error) {
			return Result{Pairs: []fgraph.Replacement{{Old: x}}}, nil
		}, ErrRule, ""},
		{"pairs", func(n *fgraph.Apply) (Result, error) {
			return Result{Pairs: []fgraph.Replacement{{Old: n.Out(), New: y}}}, nil
		}, nil, "[y, g(y)]"},
		{"removed", func(n *fgraph.Apply) (Result, error) {
			return Result{Outputs: list(x, nil), Remove: list(n.Out())}, nil
		}, nil, "[x, g(x)]"},
		{"not removed", func(n *fgraph.Apply) (Result, error) {
			return Result{Outputs: list(call(op("h"), n.Out()), nil), Remove: list(n.Out())}, nil
		}, nil, "[*1 -> two(x)::0, g(*1::0)]"},
		{"cycle", func(n *fgraph.Apply) (Result, error) {
			return Replace(call(op("h"), n.Out().Clients()[1].Apply.Out()), nil), nil
		}, fgraph.ErrCycle, ""},
		{"foreign", func(n *fgraph.Apply) (Result, error) {
			other := input("z")
			newGraph(t, list(other), list(call(op("f"), other)))
			return Replace(call(op("f"), other), nil), nil
		}, fgraph.ErrForeign, ""},
		{"undeclared", func(n *fgraph.Apply) (Result, error) { return Replace(call(op("f"), input("z")), nil), nil }, fgraph.ErrMissingInput, ""},
		{"incomparable", func(n *fgraph.Apply) (Result, error) { return Replace(call(incomparable{}, x), nil), nil }, fgraph.ErrInvalid, ""},
		{"type", func(n *fgraph.Apply) (Result, error) {
			return Replace(fgraph.NewConstant(typ("other"), 1, ""), nil), nil
		}, fgraph.ErrType, ""},
		{"error", func(n *fgraph.Apply) (Result, error) { return Replace(x, x), context.DeadlineExceeded }, context.DeadlineExceeded, ""},
		{"panic", func(n *fgraph.Apply) (Result, error) { panic(errors.ErrUnsupported) }, errors.ErrUnsupported, ""},
		{"panic", func(n *fgraph.Apply) (Result, error) { panic("no") }, ErrPanic, ""},
	} {
		if c.want == "" {
			c.want = "[*1 -> two(x)::0, g(*1::0)]"
		}
		for _, policy := range []Policy{Stop, Ignore} {
			x, y = input("x"), input("y")
			g := build()
			rule := Rule{Name: "rule", On: []Track{TrackOp(op("two"))}, Fn: func(_ *Context, n *fgraph.Apply) (Result, error) { return c.result(n) }}
			err := Run(WithOptions(context.Background(), Options{OnFailure: policy}), In2Out("pass", rule), g, nil)
			if policy == Ignore && err != nil || policy == Stop && !errors.Is(err, c.err) {
				t.Errorf("%s: %v", c.name, err)
			}
			if policy == Stop && c.err != nil {
				var e *Error
				if !errors.As(err, &e) || e.Pass != "pass" || e.Rule != "rule" || e.Node != "two(x)" {
					t.Errorf("%s: %#v", c.name, e)
				}
				if own := c.name == "error" || c.name == "panic"; errors.Is(err, ErrRule) == own {
					t.Errorf("%s: ErrRule: %v", c.name, err)
				}
			}
			wantString(t, g, c.want)
		}
	}
}

func TestCase11Trace(t *testing.T) {
	for _, c := range []struct {
		only []string
		want string
	}{
		{nil, "rewriting: walk/f_to_g: f(x) -> g(x)\nrewriting: walk/h_to_k: h(g(x)) -> k(g(x))\n"},
		{list("h_to_k"), "rewriting: walk/h_to_k: h(g(x)) -> k(g(x))\n"},
		{list("other"), ""},
		{list("walk"), "rewriting: walk/f_to_g: f(x) -> g(x)\nrewriting: walk/h_to_k: h(g(x)) -> k(g(x))\n"},
	} {
		var text strings.Builder
		x := input("x")
		g := newGraph(t, list(x), list(nested(x, "f", "h")))
		ctx := WithOptions(context.Background(), Options{Trace: TraceTo(&text), TraceOnly: c.only})
		if err := Run(ctx, In2Out("walk", swap("f_to_g", "f", "g"), swap("h_to_k", "h", "k")), g, nil); err != nil {
			t.Fatal(err)
		}
		if text.String() != c.want {
			t.Errorf("%q:\n%s", c.only, text.String())
		}
	}
	// Refused changes are traced with an error.
	var text strings.Builder
	x := input("x")
	g := newGraph(t, list(x), list(nested(x, "f")), &vetoer{})
	ctx := WithOptions(context.Background(), Options{Trace: TraceTo(&text)})
	rec := profile.New("walk", "")
	if err := Run(ctx, In2Out("walk", swap("f_to_g", "f", "g")), g, rec); err != nil {
		t.Fatal(err)
	}
	wantString(t, g, "[f(x)]")
	if !strings.HasPrefix(text.String(), "refused: walk/f_to_g: f(x): ") || rec.Record().Rules[0].Refused != 1 {
		t.Errorf("%s%+v", text.String(), rec.Record().Rules)
	}
}

type vetoer struct{ asked func() }

func (*vetoer) OnAttach(*fgraph.FunctionGraph) error { return nil }

func (v *vetoer) Validate(*fgraph.FunctionGraph) error {
	if v.asked != nil {
		v.asked()
	}
	return fmt.Errorf("%w: no", fgraph.ErrInconsistent)
}

func TestBudget(t *testing.T) {
	for n := range 6 {
		x := input("x")
		g := newGraph(t, list(x), list(call(op("two"), nested(x, "f", "f"), nested(x, "f", "f"))))
		ctx := WithOptions(context.Background(), Options{Allow: Budget(n)})
		s := NewSequence("s", &Merge{}, In2Out("walk", swap("f_to_g", "f", "g")))
		if err := s.Rewrite(ctx, g, nil); err != nil {
			t.Fatal(err)
		}
		want := list("[two(f(f(x)), f(f(x)))]", "[two(f(*1 -> f(x)), f(*1))]", "[two(*1 -> f(f(x)), *1)]",
			"[two(*1 -> f(g(x)), *1)]", "[two(*1 -> g(g(x)), *1)]", "[two(*1 -> g(g(x)), *1)]")[n]
		wantString(t, g, want)
	}
}

func TestWhyNot(t *testing.T) {
	x, y := input("x"), input("y")
	g := newGraph(t, list(x, y), list(call(op("true_div"), call(op("mul"), x, y), call(op("f"), x))))
	var misses []string
	ctx := WithOptions(context.Background(), Options{WhyNot: func(m Miss) {
		misses = append(misses, fmt.Sprintf("%s at %v: %s", m.Rule, m.Apply, m.Text))
	}})
	if err := Run(ctx, In2Out("walk", simplify), g, nil); err != nil {
		t.Fatal(err)
	}
	if want := list("simplify at true_div(mul(x, y), f(x)): divisor is not a factor"); !slices.Equal(misses, want) {
		t.Errorf("%q", misses)
	}
}

func TestOrigin(t *testing.T) {
	x := input("x")
	v := nested(x, "f", "h")
	v.Owner().SetOrigin(7)
	g := newGraph(t, list(x), list(v))
	inner := Rule{Name: "r", On: []Track{TrackOp(op("h"))}, Fn: func(_ *Context, n *fgraph.Apply) (Result, error) {
		deep := call(op("own"), n.Inputs()...)
		deep.Owner().SetOrigin(3)
		return Replace(call(op("k"), deep)), nil
	}}
	run(t, In2Out("walk", inner), g)
	k := g.Outputs()[0].Owner()
	own := k.Inputs()[0].Owner()
	if k.Origin() != 7 || own.Origin() != 3 || own.Inputs()[0].Owner().Origin() != -1 {
		t.Error(k.Origin(), own.Origin())
	}
}

func TestContextEnds(t *testing.T) {
	for _, d := range list[GraphRewriter](
		In2Out("driver", swap("f_to_g", "f", "g")), &Equilibrium{Name: "driver", Rules: list[NodeRewriter](swap("f_to_g", "f", "g"))},
		&Walk{ByOp: true, Name: "driver", Rules: list[NodeRewriter](swap("f_to_g", "f", "g"))}, NewSequence("driver", &Merge{Name: "driver"}),
	) {
		ctx, cancel := context.WithCancelCause(context.Background())
		stop := errors.New("enough")
		fired := 0
		ctx = WithOptions(ctx, Options{OnFailure: Ignore, Allow: func(fgraph.Reason) bool {
			if fired++; fired == 10 {
				cancel(stop)
			}
			return true
		}})
		g := chain(t, 5000, op("f"))
		if _, ok := d.(*Sequence); ok {
			x := input("x")
			var outs []*fgraph.Variable
			for range 5000 {
				outs = append(outs, call(op("f"), x))
			}
			g = newGraph(t, list(x), outs)
		}
		err := Run(ctx, d, g, nil)
		var e *Error
		if !errors.Is(err, stop) || !errors.As(err, &e) || e.Pass != "driver" {
			t.Errorf("%T: %v", d, err)
		}
		if fired < 10 || fired > 10+2*checkEvery {
			t.Errorf("%T: %d rewrites", d, fired)
		}
		if err := g.Check(); err != nil {
			t.Error(err)
		}
	}
}

func TestSequencePolicies(t *testing.T) {
	boom := FromFunc("boom", "", nil, func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error { panic("boom") })
	bad := FromFunc("bad", "", func(*fgraph.FunctionGraph) error { return errors.ErrUnsupported }, nil)
	for _, policy := range []Policy{Stop, Warn, Ignore} {
		var log strings.Builder
		x := input("x")
		g := newGraph(t, list(x), list(nested(x, "f")))
		s := NewSequence("all", boom, bad, In2Out("walk", swap("f_to_g", "f", "g")))
		ctx := WithOptions(context.Background(), Options{OnFailure: policy, Check: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
		rec := profile.New("all", "")
		err := s.Rewrite(ctx, g, rec)
		rec.End()
		if policy == Stop {
			if !errors.Is(err, ErrPanic) || !strings.HasPrefix(err.Error(), "boom: ") {
				t.Error(err)
			}
			continue
		}
		if err != nil {
			t.Error(err)
		}
		wantString(t, g, "[g(x)]")
		if n := strings.Count(log.String(), "rewriter failed"); policy == Warn && n != 2 || policy == Ignore && n != 0 {
			t.Errorf("log: %s", log.String())
		}
		if r := rec.Record(); len(r.Children) != 3 || r.Children[2].Name != "walk" || r.Children[2].Class != profile.ClassTopo || r.Changed != 1 {
			t.Errorf("%+v", r)
		}
	}
}

func TestContext(t *testing.T) {
	x := input("x")
	g := newGraph(t, list(x), list(call(op("f"), x)))
	ctx := withPass(WithOptions(context.Background(), Options{MaxUse: 3}), "pass")
	c := NewContext(ctx, g)
	if c.Graph() != g || c.Context() != ctx || c.pass != "pass" || OptionsFrom(c.Context()).MaxUse != 3 || OptionsFrom(context.Background()).MaxUse != 0 {
		t.Error("context")
	}
	// A rule can be called without a driver.
	r, err := simplify.Transform(c, g.Outputs()[0].Owner())
	if err != nil || !r.Empty() {
		t.Error(r, err)
	}
	if got := fmt.Sprintf("%v %v %v %v", TrackOp(op("f")), TrackType[op](), TrackType[op](), TrackOp(op("f")).Op()); got != "f rewrite.op rewrite.op f" {
		t.Error(got)
	}
	if !TrackType[op]().matches(op("f")) || TrackOp(op("g")).matches(op("f")) || TrackType[special]().matches(op("f")) {
		t.Error("tracks")
	}
}

func TestGroupOfSeveralOutputs(t *testing.T) {
	two := func(o string, in []*fgraph.Variable) []*fgraph.Variable {
		return fgraph.NewApply(op(o), in, num, num).Outputs()
	}
	rule := func(from, to string) Rule {
		return Rule{Name: from, On: []Track{TrackOp(op(from))}, Depth: 3, Fn: func(_ *Context, n *fgraph.Apply) (Result, error) {
			return Result{Outputs: two(to, n.Inputs())}, nil
		}}
	}
	half := Rule{Name: "half", On: []Track{TrackOp(op("c"))}, Fn: func(_ *Context, n *fgraph.Apply) (Result, error) {
		return Replace(nil, n.Inputs()[0]), nil // no replacement for output 0
	}}
	x := input("x")
	outs := two("a", list(x))
	g := newGraph(t, list(x), slices.Clone(outs))
	group := &Group{Name: "g", Rules: list[NodeRewriter](rule("a", "b"), rule("b", "c"), half), ApplyAll: true}
	run(t, In2Out("walk", group), g)
	wantString(t, g, "[*1 -> c(x)::0, *1::1]")
	if group.Describe().Depth != 0 || (&Group{Rules: group.Rules[:2]}).Describe().Depth != 3 || group.Describe().Destroys || group.Tracks() == nil {
		t.Error("what the group says of itself")
	}
	if (&Group{Rules: list[NodeRewriter](Rule{Name: "all"})}).Tracks() != nil {
		t.Error("a rule of the group wants to see everything")
	}
}

func TestDebugChecks(t *testing.T) {
	x := input("x")
	v := &vetoer{}
	g := newGraph(t, list(x), list(call(op("f"), x)))
	attach := FromFunc("attach", "", func(g *fgraph.FunctionGraph) error { return g.Attach(v) }, nothingToDo)
	for check, want := range map[bool]error{true: fgraph.ErrInconsistent, false: nil} {
		err := NewSequence("s", attach).Rewrite(WithOptions(context.Background(), Options{Check: check}), g, nil)
		if !errors.Is(err, want) {
			t.Errorf("check %v: %v", check, err)
		}
	}
}

func nothingToDo(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error { return nil }

// An error without a cause can be printed.
func TestPrintNothing(t *testing.T) {
	if got := (&Error{Pass: "p"}).Error(); got != "p: <nil>" {
		t.Error(got)
	}
}
