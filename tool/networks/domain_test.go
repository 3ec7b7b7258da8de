package networks_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/nnet3pass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
	"github.com/nnopt/nnopt/tool/standard"
)

// TestDomain: the machine finds what rules for networks do to matrices.
func TestDomain(t *testing.T) {
	for i, c := range []struct{ rule, class, says string }{
		{"(RectifiedLinearComponent y@(RectifiedLinearComponent x)) => y", "exact", ""},
		{"(Propagate{c} x) && identity(c) => x", "exact", ""},
		{"(TanhComponent{c} (Block{r} x)) => (Block{r} (TanhComponent{c} x))", "rounding", ""},
		{"(Assemble{a} (Propagate{c} x)) && identity(c) => (Assemble{a} x)", "exact", ""},
		{"(RectifiedLinearComponent 0) => 0", "exact", ""},
		{"(TanhComponent (TanhComponent x)) => x", "wrong", "left: Propagate{Tanh3}(Propagate{Tanh3}(x)) = [[0, 0, 0], [0, 0, 0.642015]]; right: x = [[0, 0, 0], [0, 0, 1]]"},
		{"(Scale{a} (Propagate{c} x)) => (Propagate{c} (Scale{a} x))", "wrong", "right: Propagate{"},
		{"(Concat{a} x y) => (Concat{a} y x)", "wrong", "left: Concat{2x6}(x, y) = "},
		{"(Stack{a} x y) => (Stack{a} y x)", "wrong", "left: Stack{"},
		{"(SelectRows{a} x) => x", "wrong", "right: x = "},
		{"(Sum{a} x y) => x", "wrong", "left: Sum{"},
		{"(Propagate{c} x) => 0", "wrong", "right: Fill{0}() = [[0, 0, 0], [0, 0, 0]]"},
		{"(SigmoidComponent{c} (TanhComponent x)) => (SigmoidComponent{c} x)", "wrong", "right: Propagate{Sigmoid"},
		{"(Backprop{b} ...xs) => 0", "never_fires", "no op of the family Backprop is known"},
	} {
		if !longtest.Enabled() && i%3 != 0 {
			continue
		}
		var out, stderr bytes.Buffer
		standard.Program{}.Run(t.Context(), []string{"rule", "check", c.rule}, nil, &out, &stderr)
		if got := strings.Fields(strings.TrimPrefix(out.String(), "! ") + " -"); got[0] != c.class || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: %s%s\nwant %s with %q", c.rule, out.String(), stderr.String(), c.class, c.says)
		}
	}
	var out bytes.Buffer
	if status := (standard.Program{}).Run(t.Context(), []string{"rule", "check", "--vars=x: matrix", "(Concat{a} x y) => (Concat{a} y x)"}, nil, &out, &out); status != 2 {
		t.Errorf("types have a meaning: %s", out.String())
	}
}

// TestDatabaseRules: rules for networks that a program has are among all rules.
func TestDatabaseRules(t *testing.T) {
	rules, err := pattern.ParseRules("own.rules", "# The second of two does nothing.\nrelu_of_relu: canonicalize; fast_run\n    (RectifiedLinearComponent y@(RectifiedLinearComponent x)) => y\n\n"+
		"# It is wrong.\nno_tanh: canonicalize; fast_run\n    (TanhComponent x) => x\n")
	if err != nil {
		t.Fatal(err)
	}
	p := standard.Program{Database: func() (*optdb.SequenceDB, error) {
		db := passes.Default()
		return db, optdb.AddRules(db, nnet3pass.Vocabulary(), rules)
	}}
	cfg := p.Config()
	networks := cfg.Dialects[slices.IndexFunc(cfg.Dialects, func(d *tool.Dialect) bool { return d.Name == "nnet3" })]
	domain, err := networks.Domain("")
	if err != nil {
		t.Fatal(err)
	}
	db, err := cfg.Database()
	if err != nil {
		t.Fatal(err)
	}
	entries := cfg.TextRules(networks, db.Entries(), nil)
	reports, _, err := rulecheck.CheckDatabase(t.Context(), domain, entries, rulecheck.Options{})
	if err != nil || len(reports) != 2 {
		t.Fatalf("%d rules: %v", len(reports), err)
	}
	for _, r := range reports {
		if want := map[string]rulecheck.Class{"relu_of_relu": rulecheck.Exact, "no_tanh": rulecheck.Wrong}[r.Name]; r.Class != want {
			t.Errorf("%s is %s: %s", r.Name, r.Class, r.Counterexample)
		}
	}
}
