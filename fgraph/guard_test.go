package fgraph

import (
	"errors"
	"strings"
	"testing"
)

// ledger is a guard that records its calls.
type ledger struct {
	forbid bool
	lines  []string
}

func (l *ledger) Allow(_ *FunctionGraph, pairs []Replacement, why Reason) bool {
	l.lines = append(l.lines, "may "+why.String()+"?")
	return !l.forbid
}

func (l *ledger) Done(_ *FunctionGraph, _ []Replacement, why Reason, err error) {
	what := "did "
	if err != nil {
		what = "did not "
	}
	l.lines = append(l.lines, what+why.String())
}

// A guard is asked once before every change, but not about no-ops. Reasons name the
// current pass.
func TestGuard(t *testing.T) {
	x := input("x")
	y := input("y")
	h := NewHistory()
	g := newGraph(t, list(x, y), list(call(sigmoid, x), call(add, x, y)), h)
	var l ledger
	g.SetGuard(&l)
	g.SetPass("pass")
	for _, c := range []struct {
		do   func() error
		want string
	}{
		{func() error { return g.Replace(g.Outputs()[0], call(add, x, x), Reason{Rule: "r"}) }, "may pass/r?, did pass/r"},
		{func() error { return g.ReplaceValidate(g.Outputs()[0], call(sigmoid, x), Reason{}) }, "may pass?, did pass"},
		{func() error {
			return g.ReplaceAll([]Replacement{{g.Outputs()[0], y}, {g.Outputs()[1], call(sigmoid, y)}}, Reason{Pass: "mine", Rule: "r"})
		}, "may pass/r?, did pass/r"},
		{func() error { return g.AddOutput(call(add, y, y), Reason{Pass: "mine"}) }, "may pass/mine?, did pass/mine"},
		{func() error { return g.RemoveOutput(2, Reason{}) }, "may pass?, did pass"},
		{func() error { return g.Replace(x, x, Reason{}) }, ""},
		{func() error { return g.Replace(call(sigmoid, x), x, Reason{}) }, ""},
		{func() error { return g.Replace(y, call(add, y, input("z")), Reason{}) }, "may pass?, did not pass"},
	} {
		l.lines = nil
		before := g.Commits()
		err := c.do()
		if got := strings.Join(l.lines, ", "); got != c.want || strings.Contains(c.want, "did pass") != (g.Commits() > before) {
			t.Errorf("%s, want %s; %v", got, c.want, err)
		}
		l.lines, l.forbid, before = nil, true, g.Commits()
		if err := c.do(); g.Commits() != before || c.want != "" && err == nil {
			t.Errorf("%s, although it is forbidden: %v", c.want, err)
		}
		l.forbid = false
		check(t, g)
	}
	a := g.Outputs()[1].Owner()
	if why := g.ImportedBy(a); why != (Reason{"pass", "r"}) {
		t.Errorf("%v was brought in by %v", a, why)
	}
}

// A frozen graph can't be changed, and remembers attempts.
func TestFreeze(t *testing.T) {
	x := input("x")
	h := NewHistory()
	g := newGraph(t, list(x), list(call(sigmoid, x)), h)
	before := g.String()
	for _, try := range []func() error{
		func() error { return g.Replace(g.Outputs()[0], x, Reason{}) },
		func() error { return g.AddOutput(x, Reason{}) },
		func() error { return g.RemoveOutput(0, Reason{}) },
		func() error { return g.AddInput(input("z")) },
		func() error { return h.Revert(h.Checkpoint()) },
	} {
		g.Freeze()
		if err := try(); !errors.Is(err, ErrInvalid) || g.String() != before {
			t.Errorf("%v: %v", err, g)
		}
		if !g.Thaw() {
			t.Error("nothing was tried")
		}
	}
	g.Freeze()
	if g.Thaw() {
		t.Error("something was tried")
	}
	if err := g.Replace(g.Outputs()[0], x, Reason{}); err != nil {
		t.Error(err)
	}
}

// permit allows overwriting inputs with some names.
type permit string

func (permit) OnAttach(*FunctionGraph) error  { return nil }
func (p permit) Destroyable(v *Variable) bool { return strings.Contains(string(p), v.Name()) }

// A new handler validates existing destroyers immediately. The objection names who
// brought them in.
func TestWatchDestroyers(t *testing.T) {
	for _, c := range []struct {
		permit permit
		build  func(x *Variable) *Variable
		want   string // part of the error
	}{
		{"", func(x *Variable) *Variable { return call(sip, x) }, "it is memory of x, an input that may not be destroyed"},
		{"x", func(x *Variable) *Variable { return call(sip, x) }, ""},
		{"x", func(x *Variable) *Variable { return call(add, call(sip, x), x) }, "reads it, but has to come later"},
		{"", func(x *Variable) *Variable { s := call(sigmoid, x); return call(add, call(sip, s), s) }, "reads it, but has to come later"},
		{"", func(x *Variable) *Variable { return call(sip, call(sigmoid, x)) }, ""},
	} {
		x := input("x")
		g := newGraph(t, list(x), list(call(sigmoid, x)), c.permit)
		if err := g.Replace(g.Outputs()[0], c.build(x), Reason{Rule: "early"}); err != nil {
			t.Fatal(err)
		}
		err := WatchDestroyers(g)
		_, attached := FeatureOf[*DestroyHandler](g)
		if c.want == "" {
			if err != nil || !attached {
				t.Error(g, err)
			}
			continue
		}
		if attached || !errors.Is(err, ErrInconsistent) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "which overwrites its input 0 (by early)") {
			t.Errorf("%v: %v", g, err)
		}
	}
}
