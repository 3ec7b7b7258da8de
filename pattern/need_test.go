package pattern_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// TestNeeds: a rule needs what its cases have in common among the arguments of the root.
func TestNeeds(t *testing.T) {
	for _, c := range []struct {
		vocab pattern.Vocabulary
		op    fgraph.Op
		rule  string
		want  string
	}{
		{toys{}, nil, "(add x y) => x", ""},
		{toys{}, nil, "(add (mul x y) x) => x", "mul"},
		{toys{}, nil, "(add (mul (exp x) y) z@(exp x) ...r) => x", "mul; exp"},
		{toys{}, nil, "(add (or (mul x y) (exp (add x y))) x) => x", "mul exp"},
		{toys{}, nil, "(add (or x (exp x)) (or (mul x y) (true_div x y))) => 0", "mul true_div"},
		{toys{}, nil, "(add x 2) => x", ""}, // the vocabulary does not say what may be a number
		{valuedToys{}, nil, "(add x 2) => x", "constant"},
		{valuedToys{}, nil, "(add (or 1 (exp 0)) x) => x", "exp constant"},
		{toys{}, nil, "(or (add (mul x y) (exp y)) (mul (exp x) y)) => x", "mul exp"},
		{toys{}, toy("mul"), "(or (add (mul x y) (exp y)) (mul (exp x) y)) => x", "exp"},
		{toys{}, nil, "(or (add (mul x y) (exp y)) (mul x y)) => x", ""},
		{toys{}, toy("add"), "(add (mul x y) (exp y)) => x\n(mul x y) => x", "mul; exp"},
		{toys{}, nil, "(add (mul x y) (exp y)) => x\n(mul x y) => x", ""},
		{toys{}, nil, "(add (mul x y) (exp y)) => x\n(add (op1 x y) x) => x", "mul op1"},
		{toys{}, nil, "(add (mul x y) (exp y)) => x\n(add (op1 x y) x (op1 x)) => x", "mul op1; exp op1"},
		{toys{}, nil, "(true_div x x) => x", "same"},
		{toys{}, nil, "(true_div x@(exp y) x) => x", "exp; same"},
		{valuedToys{}, nil, "(add 2 (exp x) _) => x", "exp; constant"},
		{toys{}, nil, "(add x) => x\n(add x x ...r) => x", "same 1 inputs"},
		{toys{}, nil, "(add x ...r) => x", ""},
		{valuedToys{}, nil, "(exp 1) => 2", "constant"},
	} {
		var r pattern.Rule
		for _, text := range strings.Split(c.rule, "\n") {
			w, err := pattern.ParseRewrite(text)
			if err != nil {
				t.Fatal(err)
			}
			r.Cases = append(r.Cases, w)
		}
		s, err := pattern.New(c.vocab, r)
		if err != nil {
			t.Fatal(err)
		}
		if got := needsText(s.Needs(c.op)); got != c.want {
			t.Errorf("%s at %v needs %q, want %q", c.rule, c.op, got, c.want)
		}
	}
}

func needsText(needs []rewrite.Need) string {
	var list []string
	for _, n := range needs {
		var words []string
		for _, track := range n.Ops {
			words = append(words, fmt.Sprint(track))
		}
		if n.Constant {
			words = append(words, "constant")
		}
		for _, t := range n.Through {
			words = append(words, "through "+fmt.Sprint(t))
		}
		if n.Same {
			words = append(words, "same")
		}
		for _, k := range n.Counts {
			words = append(words, fmt.Sprint(k, " inputs"))
		}
		list = append(list, strings.Join(words, " "))
	}
	return strings.Join(list, "; ")
}
