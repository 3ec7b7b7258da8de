package rewrite

import (
	"testing"

	"github.com/nnopt/nnopt/fgraph"
)

// TestLater: a rule is made once, when somebody needs more than its outline, and works like any
// other.
func TestLater(t *testing.T) {
	made := 0
	rule := Later(Description{Name: "drop_neg", Doc: "-x is x"}, func() NodeRewriter {
		made++
		return Rule{Name: "drop_neg", Doc: "-x is x", On: []Track{TrackOp(op("neg"))}, Depth: 1,
			Fn: func(_ *Context, a *fgraph.Apply) (Result, error) { return Replace(a.Inputs()[0]), nil }}
	})
	named := As(rule, Description{Name: "renamed"})
	walk := In2Out("walk", rule)
	q := &Equilibrium{Name: "equilibrium", Rules: []NodeRewriter{rule}}
	q.Prepare()
	for _, r := range []any{rule, named, walk, q} {
		if d := Outline(r); d.Name == "" {
			t.Errorf("no name: %+v", d)
		}
	}
	if d := Outline(walk); d.Doc != "-x is x" || d.Name != "walk" || d.Destroys {
		t.Errorf("%+v", d)
	}
	if made > 0 || Made(rule) || Made(named) {
		t.Fatalf("made %d times by those who wanted an outline", made)
	}
	for _, r := range []GraphRewriter{walk, q, walk} {
		x := input("x")
		g, err := fgraph.New([]*fgraph.Variable{x}, []*fgraph.Variable{nested(x, "neg", "exp", "neg")})
		if err != nil {
			t.Fatal(err)
		}
		if err := Run(t.Context(), r, g, nil); err != nil || g.String() != "[exp(x)]" {
			t.Errorf("%v %v", g, err)
		}
	}
	if made != 1 || !Made(rule) || !Made(named) {
		t.Errorf("made %d times", made)
	}
	if _, ok := Undescribed(named).(Rule); !ok || Describe(rule).Depth != 1 {
		t.Errorf("%T, %+v", Undescribed(named), Describe(rule))
	}
}
