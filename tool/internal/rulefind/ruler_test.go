package rulefind_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
	"github.com/nnopt/nnopt/tool/internal/rulefind"
)

// built makes a variable of an expression over inputs.
func built(t *testing.T, d rulecheck.Domain, inputs []*fgraph.Variable, e pattern.Expr) *fgraph.Variable {
	t.Helper()
	switch e := e.(type) {
	case pattern.Name:
		return inputs[strings.Index("xyz", string(e))]
	case pattern.Literal:
		v, err := d.Vocabulary().Constant(e, inputs[0])
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	c := e.(*pattern.Call)
	var args []*fgraph.Variable
	for _, a := range c.Args {
		args = append(args, built(t, d, inputs, a))
	}
	op, ok := d.Vocabulary().Operator(c.Op)
	if !ok {
		t.Fatalf("no op %s", c.Op)
	}
	v, err := rulecheck.Apply(op, nil, args, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A list is rules that Ruler found over some ops, in testdata/ruler.
type list struct {
	name    string
	domain  func(t *testing.T) rulecheck.Domain
	options rulefind.Options
	most    int // of our rules
}

var lists = []list{
	{"bool", func(*testing.T) rulecheck.Domain { return world(1) },
		rulefind.Options{Ops: []string{"And", "Or", "Xor", "Not"}, Constants: []pattern.Literal{"0"}, Size: 3}, 28},
	{"bv4", func(*testing.T) rulecheck.Domain { return world(15) },
		rulefind.Options{Ops: []string{"Not", "Sub", "Neg", "Add", "Mul", "Shl", "Shr", "And", "Or", "Xor"}, Constants: []pattern.Literal{"0"}}, 49},
	{"rational", explorer,
		rulefind.Options{Ops: []string{"add", "sub", "mul", "true_div", "neg", "abs"}, Constants: []pattern.Literal{"-1", "0", "1", "2"}, Size: 3, Most: 2000, Rules: 59}, 59},
}

// TestRuler: rules found here derive at least 95 % of those that Ruler found, with no more of them.
func TestRuler(t *testing.T) {
	longtest.Only(t)
	for _, l := range lists {
		t.Run(l.name, l.test)
	}
}

func (l list) test(t *testing.T) {
	d := l.domain(t)
	text, err := os.ReadFile("testdata/ruler/" + l.name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	r, err := rulefind.Search(t.Context(), d, l.options)
	if err != nil {
		t.Fatal(err)
	}
	ground, err := d.Ground("", 3, rand.New(rand.NewPCG(0, 0)), nil)
	if err != nil {
		t.Fatal(err)
	}
	var ours [][2]*fgraph.Variable
	var rules, found []pattern.Rule
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range lines {
		// That an op commutes is known of it, and no rule.
		rule := pattern.Rule{Name: line, Cases: []pattern.Rewrite{law(t, line)}}
		if _, err := pattern.New(d.Vocabulary(), rule, pattern.Shared()); err == nil {
			rules = append(rules, rule)
		}
	}
	for _, f := range r.Found {
		ours, found = append(ours, f.Sides()), append(found, f.Rule)
	}
	missed := underived(t, d, found, ground.Leaves, lines)
	follow, err := rulefind.Follow(t.Context(), d, rules, ours)
	if err != nil {
		t.Fatal(err)
	}
	follow = slices.DeleteFunc(follow, func(ok bool) bool { return !ok })
	t.Logf("%d rules derive %d of %d of theirs, which derive %d; of %d candidates follow %d", len(ours), len(lines)-len(missed), len(lines), len(follow), r.Candidates, r.Derived)
	if 100*len(missed) > 5*len(lines) || len(ours) > l.most {
		t.Errorf("these do not follow: %q", missed)
	}
	for _, f := range r.Found {
		if !f.Proved && l.name != "rational" {
			t.Errorf("%v is not proved", f.Rule)
		}
	}
}
