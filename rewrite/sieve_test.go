package rewrite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// sifted is a rule for one op, whose sieve keeps the rules that replace that op, or misbehaves.
type sifted struct {
	Rule
	behave string
	steps  *int
}

func (r *sifted) Sieve(rules []NodeRewriter) func() Sift {
	if r.behave == "unknown" {
		return nil
	}
	return siftedRules{rules, r.behave, r.steps}.begin
}

type siftedRules struct {
	rules  []NodeRewriter
	behave string
	steps  *int
}

func (s siftedRules) begin() Sift {
	return func(n *fgraph.Apply, list []int) []int {
		*s.steps++
		switch s.behave {
		case "panic":
			panic("a fault of the sieve")
		case "change":
			_ = n.Graph().Replace(n.Out(), call(op("changed"), n.Inputs()...), fgraph.Reason{})
		}
		for i := len(s.rules) - 1; i >= 0; i-- {
			r := s.rules[i].(*sifted)
			if s.behave == "everything" || r.Name == fmt.Sprint(n.Op()) {
				list = append(list, i, i)
			}
		}
		return list
	}
}

// TestSieve: the rules that a sieve leaves are asked in order, and each once. If the sieve has a
// fault, all rules are asked. The counts are those of all rules that were excluded or asked.
func TestSieve(t *testing.T) {
	for _, behave := range []string{"", "everything", "panic", "change", "unknown"} {
		steps, asked := 0, 0
		var rules []NodeRewriter
		for _, name := range []string{"a", "b", "c", "d", "f"} {
			fn := func(_ *Context, n *fgraph.Apply) (Result, error) {
				asked++
				if n.Op() != op(name) || name == "d" {
					return Result{}, nil
				}
				return Replace(call(op("new "+name), n.Inputs()...)), nil
			}
			rules = append(rules, &sifted{Rule{Name: name, On: []Track{TrackType[op]()}, Depth: 1, Fn: fn}, behave, &steps})
		}
		rules = append(rules, Rule{Name: "go", Fn: func(*Context, *fgraph.Apply) (Result, error) { return Result{}, nil }})
		const rounds = 100
		build := func() *fgraph.FunctionGraph {
			x := input("x")
			v := x
			for range rounds {
				for _, name := range []string{"a", "c", "d", "e"} {
					v = call(op(name), v)
				}
			}
			return newGraph(t, list(x), list(v))
		}
		w := In2Out("walk", rules...)
		run(t, w, build()) // the sieve pays after this
		steps, asked = 0, 0
		g := build()
		rec := run(t, w, g)
		for i, want := range []int{4, 3, 3, 2, 2, 2} {
			if r := rec.Rules[i]; r.Attempts != want*rounds {
				t.Errorf("%q: %d attempts of %s, want %d", behave, r.Attempts, r.Name, want*rounds)
			}
		}
		for a := range g.Applies() {
			if a.Op() == op("a") || a.Op() == op("c") || a.Op() == op("changed") {
				t.Errorf("%q: %v is left", behave, a)
			}
		}
		wantSteps, wantAsked := 4*rounds, 3*rounds // a, c and d
		switch behave {
		case "everything":
			wantAsked = 14 * rounds
		case "panic", "change":
			wantSteps, wantAsked = 1, 14*rounds
		case "unknown":
			wantSteps, wantAsked = 0, 14*rounds
		}
		if steps != wantSteps || asked != wantAsked {
			t.Errorf("%q: the sieve was used %d times and the rules were asked %d times, want %d and %d", behave, steps, asked, wantSteps, wantAsked)
		}
		all := WithOptions(context.Background(), Options{AskAll: true})
		steps, asked = 0, 0
		if err := Run(all, w, build(), nil); err != nil {
			t.Fatal(err)
		}
		if steps != 0 || asked != 14*rounds {
			t.Errorf("%q: the sieve was used %d times and the rules were asked %d times", behave, steps, asked)
		}
	}
}

// TestTallyWithErrors: a rule that fails has been asked, and those after it are asked unless the
// run ends.
func TestTallyWithErrors(t *testing.T) {
	fault := errors.New("fault")
	rules := list[NodeRewriter](
		Rule{Name: "first", Fn: func(*Context, *fgraph.Apply) (Result, error) { return Result{}, nil }},
		Rule{Name: "fails", Fn: func(*Context, *fgraph.Apply) (Result, error) { return Result{}, fault }},
		Rule{Name: "last", Fn: func(*Context, *fgraph.Apply) (Result, error) { return Result{}, nil }})
	for policy, want := range map[Policy][]int{Stop: {1, 1, 0}, Ignore: {2, 2, 2}} {
		x := input("x")
		g := newGraph(t, list(x), list(call(op("f"), call(op("f"), x))))
		rec := profile.New("test", "")
		ctx := WithOptions(context.Background(), Options{OnFailure: policy})
		set, err := newRuleSet(rules)
		if err != nil {
			t.Fatal(err)
		}
		e, err := newEngine(ctx, "pass", set, rules, g, rec)
		if err != nil {
			t.Fatal(err)
		}
		for a := range g.Applies() {
			if _, err := e.visit(a); err != nil {
				break
			}
		}
		for i, n := range e.tally.attempts(e.asker.ruleSet) {
			if n != want[i] {
				t.Errorf("policy %d: %s was asked %d times, want %d", policy, set.names[i], n, want[i])
			}
		}
		e.close()
	}
}

// odd is an op that may not equal itself.
type odd struct{ x float64 }

func (o odd) String() string { return fmt.Sprint("odd", o.x) }

// TestDispatch: the rules that track an op are found by the op, its type and without tracks, in
// order, however ops are compared.
func TestDispatch(t *testing.T) {
	nothing := func(*Context, *fgraph.Apply) (Result, error) { return Result{}, nil }
	rule := func(on ...Track) NodeRewriter { return Rule{Name: fmt.Sprint(on), On: on, Fn: nothing} }
	set, err := newRuleSet(list[NodeRewriter](
		rule(TrackOp(op("f")), TrackOp(op("g"))), rule(TrackType[op]()), rule(TrackOp(op("f")), TrackOp(op("f"))),
		Rule{Name: "all", Fn: nothing}, rule(TrackOp(odd{1}), TrackOp(odd{math.NaN()})), rule(TrackType[odd](), TrackOp(odd{2})),
		rule(TrackOp(alike{"f", 1}), TrackType[op]())))
	if err != nil {
		t.Fatal(err)
	}
	d := dispatch{ruleSet: set}
	for _, c := range []struct {
		op   fgraph.Op
		want []int
	}{
		{op("f"), []int{0, 1, 2, 3, 6}}, {op("g"), []int{0, 1, 3, 6}}, {op("h"), []int{1, 3, 6}}, {odd{1}, []int{3, 4, 5}},
		{odd{2}, []int{3, 5}}, {odd{math.NaN()}, []int{3, 5}}, {alike{"f", 2}, []int{3, 6}}, {alike{"g", 1}, []int{3}}, {inplaceOp("f"), []int{3}},
	} {
		if got := d.of(c.op).list.rules; !slices.Equal(got, c.want) {
			t.Errorf("%v: rules %v, want %v", c.op, got, c.want)
		}
	}
}

// alike is an op whose number does not matter.
type alike struct {
	name   string
	number int
}

func (o alike) String() string { return o.name }
func (o alike) HashOp() uint64 { return 1 }
func (o alike) EqualOp(p fgraph.Op) bool {
	a, ok := p.(alike)
	return ok && a.name == o.name
}
