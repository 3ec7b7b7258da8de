package saturate_test

import (
	"errors"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/saturate"
	"github.com/nnopt/nnopt/pattern"
)

// TestEqual: pairs of outputs are equal by rules, by more than one of them, or not; and rules that make
// numbers equal answer nothing.
func TestEqual(t *testing.T) {
	a, b, c := fgraph.NewInput(number, "a"), fgraph.NewInput(number, "b"), fgraph.NewInput(number, "c")
	g, err := fgraph.New([]*fgraph.Variable{a, b, c}, []*fgraph.Variable{
		call("add", call("mul", a, b), call("neg", call("neg", call("mul", a, c)))), call("mul", a, call("add", b, c)),
		call("f", a), call("sub", b, c),
	})
	if err != nil {
		t.Fatal(err)
	}
	pass := func(text string) *saturate.Pass {
		rules, err := pattern.ParseRules("rules", text)
		if err != nil {
			t.Fatal(err)
		}
		p := new(saturate.Pass)
		for _, r := range rules {
			s, err := pattern.New(toys{}, r)
			if err != nil {
				t.Fatal(err)
			}
			p.Rules = append(p.Rules, s)
		}
		return p
	}
	const right = "distribute:\n    (add (mul x y) (mul x z)) <=> (mul x (add y z))\nopposite:\n    (neg (neg x)) => x\n"
	before := g.String()
	equal, err := pass(right).Equal(t.Context(), g, nil)
	if err != nil || len(equal) != 2 || !equal[0] || equal[1] {
		t.Errorf("%v, %v", equal, err)
	}
	if g.String() != before {
		t.Errorf("the graph is %v", g)
	}
	if _, err := pass("zero:\n    (f _) => 0\none:\n    (f _) => 1\n").Equal(t.Context(), g, nil); !errors.Is(err, saturate.ErrCollapsed) {
		t.Errorf("0 = 1 by the rules: %v", err)
	}
}
