package rewrite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// byHandle renames f to g through a handle, and byGraph through the graph itself.
var byHandle = Global{Name: "by_handle", Doc: "f becomes g", Fn: func(_ context.Context, h *Handle) error {
	for _, a := range slices.Collect(h.Graph().Ordered()) {
		if a.Op() != op("f") {
			continue
		}
		if _, err := h.Replace("rename", a, fgraph.Replacement{Old: a.Out(), New: call(op("g"), a.Inputs()...)}); err != nil {
			return err
		}
	}
	return nil
}}

var byGraph = FromFunc("by_graph", "f becomes g", nil, func(_ context.Context, g *fgraph.FunctionGraph, _ *profile.Recorder) (err error) {
	for _, a := range slices.Collect(g.Ordered()) {
		if a.Op() == op("f") {
			err = errors.Join(err, g.Replace(a.Out(), call(op("g"), a.Inputs()...), fgraph.Reason{}))
			err = errors.Join(err, g.Replace(a.Out(), a.Out(), fgraph.Reason{})) // does nothing
		}
	}
	return err
})

// byWalk renames f to g by means of a walk.
var byWalk = FromFunc("by_walk", "f becomes g", nil, In2Out("inner", swap("rename", "f", "g")).Apply)

// However a pass changes its graph, Allow and Trace are called exactly once for each change,
// and the change is counted and attributed to the pass under its name in the sequence.
func TestEveryChangeIsSeen(t *testing.T) {
	for _, c := range []struct {
		pass GraphRewriter
		rule string
	}{{byHandle, "/rename"}, {byGraph, ""}, {byWalk, "/rename"}, {In2Out("walk", swap("rename", "f", "g")), "/rename"}} {
		for budget := range 5 {
			var told strings.Builder
			var asked []string
			allow := Budget(budget)
			ctx := WithOptions(t.Context(), Options{Trace: TraceTo(&told), Allow: func(why fgraph.Reason) bool {
				asked = append(asked, why.String())
				return allow(why)
			}})
			x := input("x")
			g := newGraph(t, list(x), list(nested(x, "f", "f", "f")))
			rec := profile.New("all", profile.ClassSequence)
			if err := Run(ctx, &Sequence{Name: "all", Members: []Member{{"pass", c.pass}}}, g, rec); err != nil {
				t.Fatalf("%s, budget %d: %v", Describe(c.pass).Name, budget, err)
			}
			made := min(budget, 3)
			if n := strings.Count(g.String(), "g("); n != made {
				t.Errorf("%s, budget %d: %v", Describe(c.pass).Name, budget, g)
			}
			if n := strings.Count(told.String(), "rewriting: pass"+c.rule+": "); n != made || strings.Count(told.String(), "\n") != made {
				t.Errorf("%s, budget %d: told\n%s", Describe(c.pass).Name, budget, &told)
			}
			if len(asked) != 3 || slices.ContainsFunc(asked, func(s string) bool { return s != "pass"+c.rule }) {
				t.Errorf("%s, budget %d: asked %q", Describe(c.pass).Name, budget, asked)
			}
			if n := rec.Record().Children[0].Changed; n != made {
				t.Errorf("%s, budget %d: %d changes were counted", Describe(c.pass).Name, budget, n)
			}
			for a := range g.Applies() {
				if why := g.ImportedBy(a).String(); a.Op() == op("g") && why != "pass"+c.rule {
					t.Errorf("%s, budget %d: %v is by %q", Describe(c.pass).Name, budget, a, why)
				}
			}
		}
	}
}

// A pass that returns its own error fails, even if a change was also not allowed.
func TestDenied(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {other, false}, {fgraph.ErrNotAllowed, true}, {fgraph.ErrInconsistent, false},
		{fmt.Errorf("p: %w", fgraph.ErrNotAllowed), true},
		{errors.Join(fgraph.ErrNotAllowed, fmt.Errorf("q: %w", fgraph.ErrNotAllowed)), true},
		{errors.Join(fgraph.ErrNotAllowed, other), false},
		{&Error{Err: fgraph.ErrNotAllowed}, true},
	} {
		if got := denied(c.err); got != c.want {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}

// Allow and Trace are called once for a change made as a whole. It does not start if it is
// not allowed.
func TestWhole(t *testing.T) {
	whole := Global{Name: "whole", Fn: func(ctx context.Context, h *Handle) error {
		_, err := h.Whole("", func() error { return byGraph.Apply(ctx, h.Graph(), nil) })
		return err
	}}
	for budget, want := range []string{"[f(f(x))]", "[g(g(x))]"} {
		var told strings.Builder
		ctx := WithOptions(t.Context(), Options{Trace: TraceTo(&told), Allow: Budget(budget)})
		x := input("x")
		g := newGraph(t, list(x), list(nested(x, "f", "f")))
		if err := Run(ctx, whole, g, nil); err != nil || g.String() != want || told.String() != strings.Repeat("rewriting: whole\n", budget) {
			t.Errorf("budget %d: %v, %v, told %q", budget, g, err, &told)
		}
	}
}

// A rule whose function changes the graph fails, whether or not it hides the error, and the
// graph is unchanged.
func TestRuleThatChangesTheGraph(t *testing.T) {
	for _, hides := range []bool{false, true} {
		meddle := Rule{Name: "meddle", Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
			err := c.Graph().Replace(n.Out(), n.Inputs()[0], fgraph.Reason{Rule: "meddle"})
			if hides {
				err = nil
			}
			return Result{}, err
		}}
		for _, d := range []GraphRewriter{In2Out("driver", meddle), &Equilibrium{Name: "driver", Rules: []NodeRewriter{meddle}}} {
			x := input("x")
			g := newGraph(t, list(x), list(nested(x, "f")))
			err := Run(t.Context(), d, g, nil)
			var e *Error
			if !errors.Is(err, ErrRule) || !errors.As(err, &e) || e.Rule != "meddle" || g.String() != "[f(x)]" {
				t.Errorf("%T: %v, %v", d, g, err)
			}
			if err := g.Replace(g.Outputs()[0], x, fgraph.Reason{}); err != nil {
				t.Errorf("%T: afterwards: %v", d, err)
			}
		}
	}
}

// overwriter is an op that destroys its input.
type overwriter string

func (o overwriter) String() string             { return string(o) }
func (o overwriter) DestroyMap() []fgraph.Alias { return []fgraph.Alias{{Output: 0, Input: 0}} }

// A pass can't insert an op that overwrites its input before a handler is attached. The error
// names the pass, the rule and the op.
func TestOverwriterWithoutHandler(t *testing.T) {
	rule := Rule{Name: "f_in_place", On: []Track{TrackOp(op("f"))}, Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
		return Replace(call(overwriter("f!"), n.Inputs()...)), nil
	}}
	global := FromFunc("early", "", nil, func(_ context.Context, g *fgraph.FunctionGraph, _ *profile.Recorder) error {
		return g.Replace(g.Outputs()[0], call(overwriter("f!"), g.Inputs()[0]), fgraph.Reason{Rule: "f_in_place"})
	})
	for _, pass := range []GraphRewriter{In2Out("early", rule), global} {
		x := input("x")
		g := newGraph(t, list(x), list(nested(x, "f")))
		err := Run(t.Context(), pass, g, nil)
		if !errors.Is(err, fgraph.ErrNoHandler) || g.String() != "[f(x)]" {
			t.Fatalf("%v, %v", g, err)
		}
		for _, want := range []string{"early", "f_in_place", "f! overwrites its input 0"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %s", err, want)
			}
		}
	}
}

// stubborn is a pass that goes on until features and options let it have its way.
var stubborn = Global{Name: "stubborn", Fn: func(_ context.Context, h *Handle) error {
	for {
		a := h.Graph().Outputs()[0].Owner()
		done, err := h.Replace("push", a, fgraph.Replacement{Old: a.Out(), New: call(op("g"), a.Out())})
		if err != nil || done && h.Graph().NumApplies() > 3 {
			return err
		}
	}
}}

// A pass that spins ends when its context is done, with the cause, its own name, and not as a failure of
// the rewriter; and it ends by itself if nothing that it wants is allowed.
func TestSpinningPass(t *testing.T) {
	cause := errors.New("enough")
	objects := new(vetoer)
	for _, c := range []struct {
		name string
		opts Options
	}{
		{"refused", Options{OnFailure: Ignore}},
		{"not allowed", Options{OnFailure: Ignore, Allow: Budget(0)}},
	} {
		ctx, cancel := context.WithCancelCause(WithOptions(t.Context(), c.opts))
		x := input("x")
		g := newGraph(t, list(x), list(nested(x, "f")), objects)
		calls := 0
		objects.asked = func() {
			if calls++; calls == 100 {
				cancel(cause)
			}
		}
		if c.opts.Allow != nil {
			g.Detach(objects)
			allow := c.opts.Allow
			c.opts.Allow = func(why fgraph.Reason) bool { objects.asked(); return allow(why) }
			ctx = WithOptions(ctx, c.opts)
		}
		err := Run(ctx, &Sequence{Name: "all", Members: []Member{{"first", byHandle}, {"spin", stubborn}}}, g, nil)
		var e *Error
		if !errors.Is(err, cause) || !errors.As(err, &e) || e.Pass != "spin" || err.Error() != "spin: enough" || calls < 100 || calls > 101 {
			t.Errorf("%s: %v after %d attempts", c.name, err, calls)
		}
	}

	x := input("x")
	g := newGraph(t, list(x), list(nested(x, "f")))
	if err := Run(WithOptions(t.Context(), Options{Allow: Budget(1)}), stubborn, g, nil); err != nil || g.String() != "[g(f(x))]" {
		t.Errorf("budget: %v, %v", g, err)
	}
}

// The error of a pass that was interrupted names the pass, even if the pass returns what its context
// says, and does so before a whole change.
func TestInterruptedPass(t *testing.T) {
	for name, fn := range map[string]func(context.Context, *Handle) error{
		"own": func(ctx context.Context, _ *Handle) error { return ctx.Err() },
		"whole": func(_ context.Context, h *Handle) error {
			_, err := h.Whole("", func() error { return nil })
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		pass := Global{Name: name, Fn: func(ctx context.Context, h *Handle) error { cancel(); return fn(ctx, h) }}
		x := input("x")
		err := Run(ctx, pass, newGraph(t, list(x), list(nested(x, "f"))), nil)
		if want := name + ": context canceled"; !errors.Is(err, context.Canceled) || err.Error() != want {
			t.Errorf("%v, not %s", err, want)
		}
	}
}
