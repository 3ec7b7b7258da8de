package egraph

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/internal/longtest"
)

// big returns a graph that grows as long as it is let.
func big(t testing.TB) (*Graph, *Rules) {
	w := newMath(t)
	rules := w.rules(t, nil)
	g := New(w.lang, WithAnalysis(w.analysis()))
	w.add(t, g, mathSum)
	return g, rules
}

// TestLimits checks that limits hold within a tenth.
func TestLimits(t *testing.T) {
	for _, nodes := range []int{1000, 20000, 100000}[:longtest.Of(2, 3)] {
		for _, b := range []Backoff{{}, {1000, 5}} {
			g, rules := big(t)
			report, err := g.Saturate(t.Context(), rules, Options{Limits: Limits{Nodes: nodes}, Backoff: b})
			if err != nil {
				t.Fatal(err)
			}
			if report.Reason != NodeLimit || report.Nodes > nodes+nodes/10 {
				t.Errorf("%s with %d nodes of %d", report.Reason, report.Nodes, nodes)
			}
			checkSize(t, g)
		}
	}
	g, rules := big(t)
	report, err := g.Saturate(t.Context(), rules, Options{Limits: Limits{Laps: 3}})
	if err != nil || report.Reason != LapLimit || len(report.Laps) != 3 {
		t.Error(err, report)
	}
	g, rules = big(t)
	report, err = g.Saturate(t.Context(), rules, Options{Limits: Limits{Time: time.Millisecond}, Backoff: Backoff{1000, 5}})
	if err != nil || report.Reason != TimeLimit {
		t.Error(err, report)
	}
	checkSize(t, g)
}

// checkSize counts nodes and classes.
func checkSize(t *testing.T, g *Graph) {
	t.Helper()
	live := 0
	for n := range g.nodes {
		if c := g.find(g.nodes[n].class); !g.nodes[n].dead() && (g.classes[c].flags&prunedFlag == 0 || g.nodes[n].shape() == 0) {
			live++
		}
	}
	if n, _ := g.Size(); n != live {
		t.Errorf("%d nodes, Size says %d", live, n)
	}
}

// TestCancel cancels in the middle of matching, applying and rebuilding.
func TestCancel(t *testing.T) {
	for _, after := range []int{0, 1, 100, 5000, 30000} {
		g, rules := big(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		seen := 0
		old := g.analysis
		g.analysis = countdown{old, func() {
			if seen++; seen == after {
				cancel()
			}
		}}
		if after == 0 {
			cancel()
		}
		if _, err := g.Saturate(ctx, rules, Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("after %d: %v", after, err)
		}
	}
}

type countdown struct {
	Analysis
	step func()
}

func (c countdown) Make(g *Graph, n Node, k Class) bool {
	c.step()
	return c.Analysis.Make(g, n, k)
}

// TestCancelSoon cancels at many times of saturating, and of extracting from a large graph.
func TestCancelSoon(t *testing.T) {
	const soon = 2 * time.Second // 50 ms where the machine has nothing else to do
	nodes, times := 150000, 12
	if !longtest.Enabled() {
		nodes, times = 30000, 4
	}
	ended := func(what string, f func(ctx context.Context) error, after time.Duration) {
		ctx, cancel := context.WithCancel(t.Context())
		var at time.Time
		timer := time.AfterFunc(after, func() { at = time.Now(); cancel() })
		err := f(ctx)
		if timer.Stop() || err == nil {
			return // it ended before
		}
		if d := time.Since(at); !errors.Is(err, context.Canceled) || d > soon {
			t.Errorf("%s, cancelled after %v: %v, %v later", what, after, err, d)
		}
	}
	for i := range times {
		after := time.Duration(i*i) * time.Millisecond
		for _, b := range []Backoff{{}, {1000, 5}} {
			g, rules := big(t)
			ended("saturating", func(ctx context.Context) error {
				_, err := g.Saturate(ctx, rules, Options{Limits: Limits{Nodes: nodes}, Backoff: b})
				return err
			}, after)
		}
	}
	g, rules := big(t)
	if _, err := g.Saturate(t.Context(), rules, Options{Limits: Limits{Nodes: nodes}, Backoff: Backoff{1000, 5}}); err != nil {
		t.Fatal(err)
	}
	for i := range times {
		ended("extracting", func(ctx context.Context) error {
			_, err := g.Extract(ctx, treeSize, g.Find(0))
			return err
		}, time.Duration(i)*time.Millisecond/2)
	}
}

// TestCancelledBefore: a call that was cancelled does not stop the one after it.
func TestCancelledBefore(t *testing.T) {
	g, _ := big(t)
	for range 3000 {
		ctx, cancel := context.WithCancel(t.Context())
		g.Extract(ctx, func(_ *Graph, n Node) float64 { cancel(); return 1 }, g.Find(0))
		if c, err := g.Extract(t.Context(), treeSize, g.Find(0)); c == nil || err != nil {
			t.Fatal(c, err)
		}
	}
}

// TestLooks counts the work that is done between looks at whether the caller cancels, and what is
// still done after that.
func TestLooks(t *testing.T) {
	const most = 4 * pollEvery
	for _, b := range []Backoff{{}, {1000, 5}} {
		for _, stopAt := range []int{0, 100, 10000, 60000} {
			g, rules := big(t)
			work, worst, done := 0, 0, 0
			step := func() {
				work++
				if done++; done == stopAt {
					g.stop.Store(true)
					g.halt.Store(true)
				}
			}
			g.analysis = countdown{g.analysis, step}
			g.looks = func() { worst, work = max(worst, work), 0 }
			if _, err := g.Saturate(t.Context(), rules, Options{Limits: Limits{Nodes: 20000}, Backoff: b}); err != nil {
				t.Fatal(err)
			}
			if stopAt > 0 && done >= stopAt && done > stopAt+most {
				t.Errorf("%d steps after cancelling at %d", done-stopAt, stopAt)
			}
			if worst > most {
				t.Errorf("%d steps without a look", worst)
			}
			if stopAt > 0 {
				continue
			}
			if _, err := g.Extract(t.Context(), func(*Graph, Node) float64 { step(); return 1 }, g.Find(0)); err != nil {
				t.Fatal(err)
			}
			if worst > most {
				t.Errorf("%d costs without a look", worst)
			}
		}
	}
}

// TestBan checks that rules which explode are banned and named, and that the others still work.
func TestBan(t *testing.T) {
	g, rules := big(t)
	report, err := g.Saturate(t.Context(), rules, Options{Limits: Limits{Laps: 12}, Backoff: Backoff{100, 3}})
	if err != nil {
		t.Fatal(err)
	}
	text := report.String()
	for _, r := range report.Rules {
		if r.Name == "assoc_add" && r.Bans == 0 {
			t.Error("assoc_add is not banned")
		}
		if r.Matches > 0 && !strings.Contains(text, r.Name) {
			t.Errorf("the report lacks %s", r.Name)
		}
	}

	s := newSums(t)
	// The rule makes twice as many sums in each lap.
	rules = s.rules(t, "explode:\n    (join x y ...zs) => (join (join y x x) x y y ...zs)\nneg:\n    (neg (neg x)) => x\n")
	g = New(s.lang)
	a := s.add(t, g, "(join a b (join c d))")
	x, y := s.add(t, g, "(neg (neg (neg (neg p))))"), s.add(t, g, "p")
	report, err = g.Saturate(t.Context(), rules, Options{Limits: Limits{Laps: 40, Nodes: 5000}, Backoff: Backoff{20, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(report.Rules, func(r RuleReport) bool { return r.Name == "explode" }); report.Rules[i].Bans == 0 || report.Rules[i].Matches == 0 {
		t.Errorf("the rule is not banned: %s", report)
	}
	if g.Find(x) != g.Find(y) || g.Find(a) == g.Find(x) {
		t.Error("the other rule does not work")
	}
	if report.Nodes > 5500 {
		t.Errorf("%d nodes", report.Nodes)
	}
}

// TestSameTwice compares two runs.
func TestSameTwice(t *testing.T) {
	run := func() ([]node, []Lap) {
		g, rules := big(t)
		report, err := g.Saturate(t.Context(), rules, Options{Limits: Limits{Nodes: 30000}, Backoff: Backoff{1000, 5}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range report.Laps {
			report.Laps[i].Match, report.Laps[i].Apply, report.Laps[i].Rebuild = 0, 0, 0
		}
		return g.nodes, report.Laps
	}
	n1, l1 := run()
	n2, l2 := run()
	if len(n1) != len(n2) || len(l1) != len(l2) {
		t.Fatal("two runs differ in size")
	}
	for i := range n1 {
		if n1[i] != n2[i] {
			t.Fatalf("two runs differ in node %d", i)
		}
	}
	for i := range l1 {
		if !reflect.DeepEqual(l1[i], l2[i]) {
			t.Fatalf("two runs differ in lap %d", i)
		}
	}
}

// TestMisuse checks that rules and graphs that don't fit are refused.
func TestMisuse(t *testing.T) {
	w := newMath(t)
	g := New(w.lang)
	rules := w.rules(t, nil)
	if _, err := g.Saturate(t.Context(), rules, Options{}); !errors.Is(err, ErrLanguage) {
		t.Errorf("a graph that is older than the rules: %v", err)
	}
	if _, err := New(newMath(t).lang).Saturate(t.Context(), rules, Options{}); !errors.Is(err, ErrLanguage) {
		t.Errorf("a graph over another language: %v", err)
	}
	if _, err := New(w.lang).Explain(rules, 0, 0); !errors.Is(err, ErrExplain) {
		t.Errorf("an explanation without reasons: %v", err)
	}
}

// TestGiven explains what Union says, and what is congruent.
func TestGiven(t *testing.T) {
	s := newSums(t)
	rules := s.rules(t, "")
	g := New(s.lang, WithExplanations())
	a, b := s.add(t, g, "a"), s.add(t, g, "b")
	x, y := s.add(t, g, "(neg (join c a d))"), s.add(t, g, "(neg (join c b d))")
	if !g.Union(a, b) || g.Union(b, a) {
		t.Error("a and b are united once")
	}
	if !g.Rebuild() || g.Find(x) != g.Find(y) {
		t.Fatal("congruent terms are not equal")
	}
	e, err := g.Explain(rules, x, y)
	if err != nil || len(e.Steps) != 1 || e.Steps[0].Rule != "given" || e.Terms.String(e.End()) != "(neg (join c b d))" {
		t.Error(err, e)
	}
}

// TestSecond saturates a graph twice, with something new in between.
func TestSecond(t *testing.T) {
	s := newSums(t)
	rules := s.rules(t, "neg:\n    (neg (neg x)) => x\n")
	g := New(s.lang)
	s.add(t, g, "(neg (neg (neg a)))")
	for range 2 {
		if r, err := g.Saturate(t.Context(), rules, Options{}); err != nil || r.Reason != Saturated {
			t.Fatal(err, r)
		}
	}
	b := s.add(t, g, "(neg (neg (neg b)))")
	if _, err := g.Saturate(t.Context(), rules, Options{}); err != nil {
		t.Fatal(err)
	}
	if c := s.add(t, g, "(neg b)"); g.Find(c) != g.Find(b) {
		t.Error("what was added later is not rewritten")
	}
	checkInvariants(t, g)
}

// TestNeverDearer checks that a choice costs no more than what was given.
func TestNeverDearer(t *testing.T) {
	g, rules := big(t)
	root := g.Find(Class(len(g.classes) - 1))
	var costs []map[string]float64
	var before []float64
	rnd := rand.New(rand.NewPCG(5, 6))
	extract := func(k int) float64 {
		choice, err := g.Extract(t.Context(), func(g *Graph, n Node) float64 { return costs[k][g.Name(g.Op(n))] }, root)
		if err != nil {
			t.Fatal(err)
		}
		return choice.Cost
	}
	for k := range 30 {
		costs = append(costs, map[string]float64{})
		for _, s := range g.lang.sigs {
			costs[k][s.Name] = math.Floor(math.Exp(8 * rnd.Float64()))
		}
		before = append(before, extract(k))
	}
	if _, err := g.Saturate(t.Context(), rules, Options{Limits: Limits{Nodes: 10000}, Backoff: Backoff{1000, 5}}); err != nil {
		t.Fatal(err)
	}
	less := 0
	for k := range costs {
		after := extract(k)
		if after > before[k] {
			t.Errorf("costs %d: %v before, %v after", k, before[k], after)
		}
		if after < before[k] {
			less++
		}
	}
	if less == 0 {
		t.Error("nothing gets cheaper")
	}
}
