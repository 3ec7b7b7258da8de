package rewrite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/pprof"
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
				if check := errors.Join(r.Check(), g.Check()); check != nil {
					t.Errorf("%s, policy %d, %v: %v", name, policy, err, check)
				}
				if r.NodesAfter != g.NumApplies() {
					t.Errorf("%s: %d applies after, not %d", name, r.NodesAfter, g.NumApplies())
				}
				var text, page, trace bytes.Buffer
				f := &profile.Function{Message: name, Optimizer: r}
				if err := errors.Join(f.WriteText(&text), f.WriteHTML(&page), f.WriteTrace(&trace), pprof.New(r).CheckValid()); err != nil || !json.Valid(trace.Bytes()) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}
