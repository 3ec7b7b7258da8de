package rewrite

import (
	"context"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// Bisect finds a wrong rule among many rewrites by others, the wrong change among several
// of a global pass, and a pass that is wrong without changing the graph.
func TestBisect(t *testing.T) {
	bad := Rule{Name: "bad", On: []Track{TrackOp(op("f3"))}, Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
		return Replace(call(op("wrong"), n.Inputs()...)), nil
	}}
	good := Rule{Name: "good", Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
		if n.Op() != op("f") {
			return c.Miss("no f"), nil
		}
		return Replace(call(op("g"), n.Inputs()...)), nil
	}}
	global := FromFunc("called otherwise", "", nil, func(_ context.Context, g *fgraph.FunctionGraph, _ *profile.Recorder) error {
		for i, a := range slices.Collect(g.Ordered()) {
			to := op("h")
			if i == 50 {
				to = "wrong"
			}
			if err := g.Replace(a.Out(), call(to, a.Inputs()...), fgraph.Reason{Rule: "rename"}); err != nil {
				return err
			}
		}
		return nil
	})
	harm := false
	behind := FromFunc("behind", "", nil, func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error {
		harm = true
		return nil
	})
	for _, c := range []struct {
		name    string
		members []Member
		want    string
		found   bool
	}{
		{"nothing wrong", []Member{{"p", In2Out("p", good)}}, "", false},
		{"a rule", []Member{{"p", In2Out("p", good)}, {"q", In2Out("q", bad, good)}, {"r", In2Out("r", good)}}, "q/bad: f3(g(g(x))) -> wrong(g(g(x)))", true},
		{"a global pass", []Member{{"p", In2Out("p", good)}, {"global", global}, {"r", In2Out("r", good)}}, "global/rename: g(h(h(…))) -> wrong(h(h(…)))", true},
		{"a pass", []Member{{"p", In2Out("p", good)}, {"behind", behind}, {"r", In2Out("r", good)}}, "pass behind", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			runs := 0
			got, found := Bisect(context.Background(), func(ctx context.Context) bool {
				runs++
				harm = false
				x := input("x")
				v := call(op("f3"), call(op("f"), call(op("f"), x)))
				for range 100 {
					v = call(op("f"), v)
				}
				g := newGraph(t, list(x), list(v))
				if err := Run(ctx, &Sequence{Name: "all", Members: c.members}, g, nil); err != nil {
					t.Fatal(err)
				}
				for a := range g.Applies() {
					if a.Op() == op("wrong") {
						return false
					}
				}
				return !harm
			})
			if found != c.found || found && got.String() != c.want {
				t.Errorf("%v, %t, want %v", got, found, c.want)
			}
			if runs > 16 {
				t.Errorf("%d runs", runs)
			}
		})
	}
	if _, found := Bisect(context.Background(), func(context.Context) bool { return false }); found {
		t.Error("found a culprit where nothing helps")
	}
}
