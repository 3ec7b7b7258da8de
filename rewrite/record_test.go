package rewrite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/pprof"
	"github.com/nnopt/nnopt/profile/profiletest"
)

// The record of every driver is consistent: after a complete run, one that a feature
// objects to, one that fails, and one that is cancelled. It can be written in every form.
func TestRecordsOfAllDrivers(t *testing.T) {
	rules := list[NodeRewriter](swap("f_to_g", "f", "g"), cancel("cancel_g", "g"), swap("g_to_h", "g", "h"))
	fight := list[NodeRewriter](swap("there", "f", "g"), swap("back", "g", "f"))
	merge := Member{"merge", &Merge{}}
	drivers := map[string]GraphRewriter{
		"walk":            In2Out("d", rules...),
		"walk back":       Out2In("d", rules...),
		"walk new":        &Walk{Rules: rules, VisitNew: true},
		"op-keyed":        &Walk{ByOp: true, Rules: rules},
		"equilibrium":     &Equilibrium{Rules: rules},
		"members":         &Equilibrium{Rules: rules, Globals: list(merge), Final: list(Member{"final", In2Out("", rules[2])}), Cleanup: list(Member{"cleanup", &Merge{}})},
		"fight":           &Equilibrium{Rules: fight},
		"late":            &Equilibrium{Rules: fight, IgnoreNewTrees: true},
		"group":           In2Out("d", &Group{Name: "group", Rules: rules}),
		"merge":           &Merge{},
		"function":        FromFunc("d", "", nil, nothingToDo),
		"sequence":        NewSequence("d", &Merge{}, In2Out("w", rules...), NewSequence("inner", &Equilibrium{Rules: rules}, &Merge{})),
		"nothing":         &Sequence{},
		"one that panics": NewSequence("d", &Merge{}, In2Out("bad", Rule{Name: "bad", Fn: func(*Context, *fgraph.Apply) (Result, error) { panic(1) }})),
	}
	for name, d := range drivers {
		for _, policy := range []Policy{Stop, Ignore} {
			for _, features := range [][]fgraph.Feature{nil, {&vetoer{}}, {fgraph.NewDestroyHandler(nil)}} {
				x := input("x")
				g := newGraph(t, list(x), list(call(op("two"), nested(x, repeat("f", 40)...), nested(x, "f", "f", "g"))), features...)
				ctx, cancel := context.WithTimeout(WithOptions(context.Background(), Options{OnFailure: policy}), time.Minute)
				if name == "nothing" {
					cancel() // cancelled before it starts
				}
				rec := profile.New(name, Describe(d).Class)
				err := Run(ctx, d, g, rec)
				rec.End()
				cancel()
				r := rec.Record()
				if check := errors.Join(profiletest.Check(r), g.Check()); check != nil {
					t.Errorf("%s, policy %d, %v: %v", name, policy, err, check)
				}
				if r.NodesAfter != g.NumApplies() {
					t.Errorf("%s: %d applies after, not %d", name, r.NodesAfter, g.NumApplies())
				}
				var text, trace bytes.Buffer
				f := &profile.Function{Message: name, Optimizer: r}
				if err := errors.Join(f.WriteText(&text), f.WriteTrace(&trace), pprof.New(r).CheckValid()); err != nil || !json.Valid(trace.Bytes()) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

// TestRuleCounters: what a rule counts stands with the rule in the profile, whichever driver runs it
// and whether it fires or not, and costs nothing when nobody records.
func TestRuleCounters(t *testing.T) {
	seen := Rule{Name: "count_f", On: list(TrackOp(op("f"))), Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
		c.Count("seen", 1, "")
		c.Count("weight", 2.5, "kg")
		return Result{}, nil
	}}
	build := func() *fgraph.FunctionGraph {
		x := input("x")
		return newGraph(t, list(x), list(nested(x, repeat("f", 5)...)))
	}
	for name, d := range map[string]GraphRewriter{
		"walk":        In2Out("d", seen),
		"two":         In2Out("d", swap("g_to_h", "g", "h"), seen),
		"equilibrium": &Equilibrium{Name: "d", Rules: list[NodeRewriter](seen)},
		"group":       In2Out("d", &Group{Name: "count_f", Rules: list[NodeRewriter](seen)}),
	} {
		rec := profile.New("d", Describe(d).Class)
		if err := Run(context.Background(), d, build(), rec); err != nil {
			t.Fatal(err)
		}
		rec.End()
		r := rec.Record()
		rule := r.Rules[slices.IndexFunc(r.Rules, func(u profile.RuleRecord) bool { return u.Name == "count_f" })]
		if diff := cmp.Diff([]profile.Counter{{Name: "seen", Value: 5}, {Name: "weight", Value: 12.5, Unit: "kg"}}, rule.Counters); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		var text bytes.Buffer
		if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), " seen 5\n") || !strings.Contains(text.String(), " weight 12.5 kg\n") {
			t.Errorf("%s: %v\n%s", name, err, text.String())
		}
	}
	if err := Run(context.Background(), In2Out("d", seen), build(), nil); err != nil {
		t.Fatal(err)
	}
	c := NewContext(context.Background(), build())
	if n := testing.AllocsPerRun(10, func() { c.Count("seen", 1, "") }); n != 0 {
		t.Errorf("%v allocations without a record", n)
	}
}
