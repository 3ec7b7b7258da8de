package rewrite

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/profile"
)

// nested applies ops to v, the last one outermost.
func nested(v *fgraph.Variable, ops ...string) *fgraph.Variable {
	for _, o := range ops {
		v = call(op(o), v)
	}
	return v
}

func repeat(o string, n int) []string { return slices.Repeat(list(o), n) }

// wrap is f(x) -> g(f(x)).
func wrap(name, f, g string) Rule {
	return Rule{Name: name, On: []Track{TrackOp(op(f))}, Depth: 1, Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
		return Replace(call(op(g), call(op(f), n.Inputs()...))), nil
	}}
}

// cancel is f(f(x)) -> x.
func cancel(name, f string) Rule {
	return Rule{Name: name, On: []Track{TrackOp(op(f))}, Depth: 2, Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
		in := n.Inputs()[0].Owner()
		if in == nil || in.Op() != op(f) {
			return c.Miss("the input is no %s", f), nil
		}
		return Replace(in.Inputs()[0]), nil
	}}
}

func TestCase29Cancel(t *testing.T) {
	for n, want := range map[int]string{4: "[x]", 5: "[op1(x)]"} {
		for _, d := range list[GraphRewriter](
			&Equilibrium{Rules: list[NodeRewriter](cancel("c", "op1"))},
			&Equilibrium{Rules: list[NodeRewriter](cancel("c", "op1")), Order: OutToIn},
			&Equilibrium{Rules: list[NodeRewriter](cancel("c", "op1")), IgnoreNewTrees: true},
			Out2In("c", cancel("c", "op1")),
			&Walk{ByOp: true, Rules: list[NodeRewriter](cancel("c", "op1"))},
		) {
			x := input("x")
			g := newGraph(t, list(x), list(nested(x, repeat("op1", n)...)))
			run(t, d, g)
			if _, ok := d.(*Walk); ok && n == 5 {
				continue // a single walk visits new applies later
			}
			wantString(t, g, want)
		}
	}
}

func TestCase30WrapIgnoringNewTrees(t *testing.T) {
	x := input("x")
	g := newGraph(t, list(x), list(nested(x, repeat("op1", 3)...)))
	rec := run(t, In2Out("w", wrap("w", "op1", "op2")), g)
	wantString(t, g, "[op2(op1(op2(op1(op2(op1(x))))))]")
	if rec.Applied() != 3 || g.NumApplies() != 6 {
		t.Errorf("%d applied", rec.Applied())
	}
}

func TestCase31SwapOnce(t *testing.T) {
	x, y := input("x"), input("y")
	g := newGraph(t, list(x, y), list(call(op("op2"), x, y)))
	swapInputs := Rule{Name: "swap", On: []Track{TrackOp(op("op2"))}, Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
		return Replace(call(op("op2"), n.Inputs()[1], n.Inputs()[0])), nil
	}}
	run(t, In2Out("swap", swapInputs), g)
	wantString(t, g, "[op2(y, x)]")
	// A walk that visits new applies goes on, but not forever.
	err := Run(context.Background(), &Walk{Name: "swap", Rules: list[NodeRewriter](swapInputs), VisitNew: true}, g, nil)
	var most *MaxUseError
	if !errors.As(err, &most) || len(most.Lap) != 2 || !most.Repeats {
		t.Errorf("%v", err)
	}
}

// equalOp is an op with its own equality.
// rename is f(x, …) -> g(x, …).
func rename(name, f, g string) Rule { return swap(name, f, g) }

func TestCase49Equilibrium(t *testing.T) {
	collapse := func(name, outer, inner, to string) Rule {
		return Rule{Name: name, On: []Track{TrackOp(op(outer))}, Depth: 2, Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
			in := n.Inputs()[0].Owner()
			if in == nil || in.Op() != op(inner) {
				return c.Miss("not on %s", inner), nil
			}
			return Replace(call(op(to), in.Inputs()...)), nil
		}}
	}
	x, y := input("x"), input("y")
	g := newGraph(t, list(x, y), list(call(op("op3"), call(op("op4"), x, y))))
	rec := run(t, &Equilibrium{Rules: list[NodeRewriter](rename("r1", "op1", "op2"), rename("r2", "op4", "op1"), collapse("r3", "op3", "op2", "op4"))}, g)
	wantString(t, g, "[op2(x, y)]")
	sum := 0
	for _, p := range rec.Passes {
		sum += p.Applied
	}
	if sum != 5 || rec.Applied() != 5 || rec.Passes[len(rec.Passes)-1].Applied != 0 || rec.Passes[0].Nodes != 2 {
		t.Errorf("%d applied in %d passes: %+v", sum, len(rec.Passes), rec.Passes)
	}

	x, y = input("x"), input("y")
	g = newGraph(t, list(x, y), list(nested(call(op("op3"), x, y), "op1", "op1")))
	run(t, &Equilibrium{Rules: list[NodeRewriter](
		collapse("r1", "op1", "op2", "op4"), rename("r2", "op3", "op4"), rename("r3", "op4", "op5"),
		rename("r4", "op5", "op6"), rename("r5", "op6", "op2"),
	)}, g)
	wantString(t, g, "[op2(x, y)]")
}

func TestCase50MaxUse(t *testing.T) {
	x, y := input("x"), input("y")
	g := newGraph(t, list(x, y), list(call(op("op3"), call(op("op4"), x, y))))
	collapse := Rule{Name: "r3", On: []Track{TrackOp(op("op3"))}, Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
		if in := n.Inputs()[0].Owner(); in != nil && in.Op() == op("op2") {
			return Replace(call(op("op4"), in.Inputs()...)), nil
		}
		return Result{}, nil
	}}
	e := &Equilibrium{Name: "few", MaxUse: 0.5, Rules: list[NodeRewriter](rename("r1", "op1", "op2"), rename("r2", "op4", "op1"), collapse)}
	var log strings.Builder
	ctx := WithOptions(context.Background(), Options{OnFailure: Warn, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err := Run(ctx, e, g, nil); err != nil {
		t.Fatal(err)
	}
	wantString(t, g, "[op1(x, y)]")
	if !strings.Contains(log.String(), "r2 fired 2 times") {
		t.Errorf("log: %s", log.String())
	}
}

// Rules that make the graph larger are not said to undo each other, however alike their rewrites look.
func TestGrowingRules(t *testing.T) {
	grow := func(name, from, to string) Rule {
		return Rule{Name: name, On: []Track{TrackOp(op(from))}, Fn: func(_ *Context, n *fgraph.Apply) (Result, error) {
			return Replace(call(op("pad"), call(op(to), n.Inputs()...))), nil
		}}
	}
	// Only its first rounds show what it does: later ones are f(f(f(…))) on both sides.
	deeper := Rule{Name: "deeper", On: []Track{TrackOp(op("f"))}, Fn: func(_ *Context, n *fgraph.Apply) (Result, error) {
		return Replace(call(op("f"), call(op("f"), n.Inputs()...))), nil
	}}
	for _, c := range []struct {
		rules []NodeRewriter
		want  string
	}{
		{list[NodeRewriter](deeper), "; each round of 1 rewrite makes the graph larger:\n\tdeeper: f(x) -> f(f(x))"},
		{list[NodeRewriter](grow("f_to_f", "f", "f")), "; each round of 1 rewrite makes the graph larger:\n\tf_to_f: f(x) -> pad(f(x))"},
		{list[NodeRewriter](grow("f_to_g", "f", "g"), grow("g_to_f", "g", "f")), "; each round of 2 rewrites makes the graph larger:\n\tg_to_f: g(x) -> "},
		{list[NodeRewriter](grow("f_to_g", "f", "g"), swap("g_to_f", "g", "f")), "; each round of 2 rewrites makes the graph larger:\n\tg_to_f: g(x) -> "},
		{list[NodeRewriter](swap("f_to_g", "f", "g"), swap("g_to_f", "g", "f")), "; these 2 undo each other:\n"},
	} {
		for _, d := range list[GraphRewriter](&Equilibrium{Rules: c.rules}, &Walk{Rules: c.rules, VisitNew: true}) {
			x := input("x")
			err := Run(t.Context(), d, newGraph(t, list(x), list(nested(x, "f"))), nil)
			if !errors.Is(err, ErrMaxUse) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%T: %v, not %s", d, err, c.want)
			}
		}
	}
	// In a group, what is proposed grows before the driver sees it.
	x := input("x")
	wrapped := Rule{Name: "wrap", On: []Track{TrackOp(op("f"))}, Fn: func(_ *Context, n *fgraph.Apply) (Result, error) {
		return Replace(call(op("f"), call(op("pad"), n.Inputs()...))), nil
	}}
	group := &Group{Name: "g", Rules: list[NodeRewriter](wrapped), ApplyAll: true}
	err := Run(t.Context(), In2Out("walk", group), newGraph(t, list(x), list(nested(x, "f"))), nil)
	if !errors.Is(err, ErrMaxUse) || !strings.Contains(err.Error(), "; each round of 1 rewrite makes the graph larger:") {
		t.Error(err)
	}
}

func TestCase51EveryDriverComesToAnEnd(t *testing.T) {
	fight := list[NodeRewriter](swap("add_to_sub", "add", "sub"), swap("sub_to_add", "sub", "add"))
	grows := list[NodeRewriter](wrap("wrap_f", "f", "f"))
	for _, rules := range [][]NodeRewriter{fight, grows} {
		for _, d := range list[GraphRewriter](
			&Equilibrium{Rules: rules}, &Equilibrium{Rules: rules, IgnoreNewTrees: true}, &Equilibrium{Rules: rules, Order: OutToIn},
			&Walk{Rules: rules, VisitNew: true}, &Walk{ByOp: true, Rules: rules},
		) {
			x, y := input("x"), input("y")
			g := newGraph(t, list(x, y), list(call(op("add"), x, call(op("f"), y)), call(op("sub"), x, y)))
			attempts := 0
			ctx := WithOptions(context.Background(), Options{Allow: func(fgraph.Reason) bool { attempts++; return true }})
			err := Run(ctx, d, g, nil)
			var most *MaxUseError
			if !errors.As(err, &most) || !most.Repeats {
				t.Errorf("%T: %v", d, err)
				continue
			}
			names := map[string]bool{}
			for _, e := range most.Lap {
				names[e.Rule] = true
			}
			if len(names) != len(rules) {
				t.Errorf("%T: lap names %v", d, names)
			}
			if attempts > 300 { // 8 times 8 times 4, and some for the second rule
				t.Errorf("%T: %d rewrites on a graph of 3 applies", d, attempts)
			}
			if err := g.Check(); err != nil {
				t.Error(err)
			}
		}
	}
	// A graph rewriter that always changes the graph also ends the run.
	x := input("x")
	g := newGraph(t, list(x), list(call(op("add"), x)))
	restless := FromFunc("restless", "", nil, func(_ context.Context, g *fgraph.FunctionGraph, _ *profile.Recorder) error {
		return g.Replace(g.Outputs()[0], call(op("add"), x), fgraph.Reason{})
	})
	err := Run(context.Background(), &Equilibrium{Globals: list(Member{"restless", restless})}, g, nil)
	if !errors.Is(err, ErrMaxUse) || !strings.Contains(err.Error(), "restless") {
		t.Errorf("%v", err)
	}
}

type special struct{ op }

// Theano tries the rules of the most specific class first. Go has no classes: an op has one
// type, and rules are tried in the order of the list.
func TestCase52OrderOfRules(t *testing.T) {
	var tried []string
	rule := func(name string, on ...Track) NodeRewriter {
		return Rule{Name: name, On: on, Fn: func(*Context, *fgraph.Apply) (Result, error) {
			tried = append(tried, name)
			return Result{}, nil
		}}
	}
	x := input("x")
	g := newGraph(t, list(x), list(call(special{"a"}, x)))
	run(t, In2Out("order", rule("instance", TrackOp(special{"a"})), rule("other", TrackOp(special{"b"})), rule("all"),
		rule("type", TrackType[special]()), rule("other type", TrackType[op]()), rule("both", TrackType[special](), TrackOp(special{"a"}))), g)
	if want := list("instance", "all", "type", "both"); !slices.Equal(tried, want) {
		t.Errorf("tried %q, want %q", tried, want)
	}
}

func TestCase53Tracks(t *testing.T) {
	nothing := func(*Context, *fgraph.Apply) (Result, error) { return Result{}, nil }
	for name, r := range map[string]NodeRewriter{
		"empty tracks": Rule{Name: "r", On: []Track{}, Fn: nothing},
		"zero track":   Rule{Name: "r", On: []Track{{}}, Fn: nothing},
		"nil op":       Rule{Name: "r", On: []Track{TrackOp(nil)}, Fn: nothing},
		"no function":  Rule{Name: "r"},
		"nil":          nil,
	} {
		x := input("x")
		g := newGraph(t, list(x), list(call(op("f"), x)))
		for _, d := range list[GraphRewriter](In2Out("walk", r), &Equilibrium{Rules: list(r)}) {
			if err := Run(context.Background(), d, g, nil); !errors.Is(err, ErrRule) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	x := input("x")
	g := newGraph(t, list(x), list(call(op("f"), x)))
	for _, r := range list[NodeRewriter](Rule{Name: "all", Fn: nothing}, Rule{Name: "type", On: []Track{TrackType[op]()}, Fn: nothing}) {
		if err := Run(context.Background(), &Walk{ByOp: true, Rules: list(r)}, g, nil); !errors.Is(err, ErrRule) {
			t.Errorf("walk by op: %v", err)
		}
	}
}

func TestGroup(t *testing.T) {
	rules := list[NodeRewriter](swap("b_to_c", "b", "c"), swap("a_to_b", "a", "b"), swap("c_to_d", "c", "d"))
	for all, want := range map[bool]string{false: "[b(x)]", true: "[d(x)]"} {
		x := input("x")
		g := newGraph(t, list(x), list(call(op("a"), x)))
		rec := run(t, In2Out("walk", &Group{Name: "group", Rules: rules, ApplyAll: all}), g)
		wantString(t, g, want)
		if rec.Applied() != 1 || rec.Rules[0].Name != "group" {
			t.Errorf("%+v", rec.Rules)
		}
	}
	// Rules of a group that undo each other do not loop forever.
	x := input("x")
	g := newGraph(t, list(x), list(call(op("a"), x)))
	group := &Group{Name: "g", Rules: list[NodeRewriter](swap("there", "a", "b"), swap("back", "b", "a")), ApplyAll: true}
	err := Run(context.Background(), In2Out("walk", group), g, nil)
	var most *MaxUseError
	if !errors.As(err, &most) || !most.Repeats || len(most.Lap) != 2 || !strings.Contains(err.Error(), "there: a(x) -> b(x)") || !strings.Contains(err.Error(), "back: b(x) -> a(x)") {
		t.Errorf("%v", err)
	}
	wantString(t, g, "[a(x)]")
}

// A change deep below an apply makes a driver show the apply again, even if the queue does
// not follow changes that far.
func TestEquilibriumLooksFar(t *testing.T) {
	deep := Rule{Name: "deep", On: []Track{TrackOp(op("top"))}, Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
		v := n.Inputs()[0]
		for v.Owner() != nil && v.Owner().Op() == op("mid") {
			v = v.Owner().Inputs()[0]
		}
		if v.Owner() == nil || v.Owner().Op() != op("g") {
			return c.Miss("no g at the bottom"), nil
		}
		return Replace(v), nil
	}}
	for _, order := range []Order{InToOut, OutToIn} {
		x := input("x")
		g := newGraph(t, list(x), list(nested(x, append(append(list("f"), repeat("mid", 50)...), "top")...)))
		run(t, &Equilibrium{Rules: list[NodeRewriter](deep, swap("f_to_g", "f", "g")), Order: order}, g)
		wantString(t, g, "[g(x)]")
	}
}

// A rule that requires an inner variable to have one client fires when the others
// are gone.
func TestEquilibriumNoticesLostClients(t *testing.T) {
	single := Rule{Name: "single", On: []Track{TrackOp(op("h"))}, Depth: 2, Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
		v := n.Inputs()[0]
		if v.Owner() == nil || len(v.Clients()) > 1 {
			return c.Miss("other clients"), nil
		}
		return Replace(call(op("fused"), v.Owner().Inputs()...)), nil
	}}
	drop := Rule{Name: "drop", On: []Track{TrackOp(op("zero"))}, Depth: 1, Fn: func(*Context, *fgraph.Apply) (Result, error) {
		return Replace(fgraph.NewConstant(num, 0, "")), nil
	}}
	x := input("x")
	f := nested(x, "f")
	g := newGraph(t, list(x), list(call(op("h"), f), call(op("zero"), f)))
	rec := run(t, &Equilibrium{Rules: list[NodeRewriter](single, drop)}, g)
	wantString(t, g, "[fused(x), 0]")
	if len(rec.Passes) != 2 {
		t.Errorf("%d passes", len(rec.Passes))
	}
}

func TestEquilibriumGlobals(t *testing.T) {
	x := input("x")
	e := func() *fgraph.Variable { return call(op("sub"), nested(x, "f"), nested(x, "f")) }
	g := newGraph(t, list(x), list(e(), e()))
	same := Rule{Name: "sub_to_zero", On: []Track{TrackOp(op("sub"))}, Depth: 1, Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
		if n.Inputs()[0] != n.Inputs()[1] {
			return c.Miss("different"), nil
		}
		return Replace(fgraph.NewConstant(num, 0, "")), nil
	}}
	rec := run(t, &Equilibrium{Rules: list[NodeRewriter](same), Cleanup: list(Member{"merge", &Merge{}})}, g)
	wantString(t, g, "[0, 0]")
	counts := map[string]int{}
	for _, p := range rec.Passes {
		for _, c := range p.Rules {
			counts[c.Name] += c.Count
		}
	}
	if counts["merge"] == 0 || counts["sub_to_zero"] != 1 || g.Outputs()[0] != g.Outputs()[1] {
		t.Errorf("%v", counts)
	}
}

func TestNamesAndClasses(t *testing.T) {
	if Describe(&Merge{}).Name != "MergeOptimizer" || Describe(simplify).Name != "simplify" || Describe(&vetoer{}).Name != "vetoer" || Describe(nil).Name != "nil" {
		t.Error("names")
	}
	if Describe(&Equilibrium{}).Class != "EquilibriumOptimizer" || Describe(FromFunc("f", "", nil, nil)).Class != "FromFunctionOptimizer" {
		t.Error("classes")
	}
	if !In2Out("w", inplaceRule{}).Describe().Destroys || In2Out("w", simplify).Describe().Destroys {
		t.Error("in place")
	}
}

type inplaceRule struct{ Rule }

func (inplaceRule) Describe() Description { return Description{Destroys: true} }

// The work of an equilibrium is proportional to the size of the graph and the number of
// rewrites, in either direction.
func TestEquilibriumVisitsFew(t *testing.T) {
	n := longtest.Of(4_000, 20_000)
	for _, order := range []Order{InToOut, OutToIn} {
		for name, rules := range map[string][]NodeRewriter{
			"cancel": {cancel("cancel", "f")},
			"rename": {swap("f_to_g", "f", "g"), swap("g_to_h", "g", "h")},
			"far":    {Rule{Name: "far", On: []Track{TrackOp(op("f"))}, Fn: cancel("", "f").Fn}},
		} {
			rec := run(t, &Equilibrium{Rules: rules, Order: order}, chain(t, n, op("f")))
			attempts := 0
			for _, r := range rec.Rules {
				attempts += r.Attempts
			}
			if attempts > 6*n {
				t.Errorf("%s, order %d: %d attempts for %d applies", name, order, attempts, n)
			}
			if len(rec.Passes) > 3 {
				t.Errorf("%s, order %d: %d passes", name, order, len(rec.Passes))
			}
		}
	}
}
