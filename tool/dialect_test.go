package tool_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
	"github.com/nnopt/nnopt/tool/repro"
)

// call runs a program, which must end with a status, and returns what it prints.
func call(t *testing.T, cfg tool.Config, status int, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if got := cfg.Run(t.Context(), args, nil, &out, &out); got != status {
		t.Fatalf("%q: status %d, want %d: %s", args, got, status, out.String())
	}
	return out.String()
}

// TestCircuits: a dialect of a few dozen lines has all verbs.
func TestCircuits(t *testing.T) {
	t.Chdir(t.TempDir())
	const plan = "input %x : wire\ninput %y : wire\ninput %z : wire\n%0 = Not(%x) : wire\n%1 = Not(%y) : wire\n%2 = And(%0, %1) : wire\n%3 = Not(%2) : wire\n" +
		"%4 = Or(%z, %y) : wire\n%5 = And(%z, %4) : wire\n%6 = Or(%5, %3) : wire\nreturn %6\n"
	const majority = "input %x : wire\ninput %y : wire\ninput %z : wire\n%0 = And(%x, %y) : wire\n%1 = And(%y, %z) : wire\n%2 = And(%x, %z) : wire\n" +
		"%3 = Or(%0, %1) : wire\n%4 = Or(%3, %2) : wire\nreturn %4\n"
	for name, text := range map[string]string{"plan.graph": "graph {\n" + plan + "}\n", "majority.graph": "graph {\n" + majority + "}\n", "wrong.graph": "query: +fast_run +wrong\nseed: 4\n\ngraph {\n" + plan + "}\n"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		status int
		args   string
		want   string
	}{
		{0, "opt --trace=all plan.graph", "canonicalize/de_morgan: Not(And(Not(x), Not(y))) -> Or(x, y)"},
		{0, "opt|--why-not=absorb|--query=+fast_run +wrong|plan.graph", "absorb fired 1 times"},
		{0, "opt --max-rewrites=0 plan.graph", "%3 = Not(%2) : wire"},
		{0, "graph --after=canonicalize plan.graph", "%2 = Or(%x, %y) : wire"},
		{0, "graph --format=dot plan.graph", "digraph"},
		{1, "opt|--query=debug +wrong|wrong.graph", "a reproducer is in circuits-failure-1.graph (values in canonicalize/absorb)"},
		// One draw does not show it; all eight do.
		{0, "opt|--query=debug +seldom_wrong|--draws=1|majority.graph", "Or(%x, %y)"},
		{1, "opt|--query=debug +seldom_wrong|--draws=1|--srand=1|majority.graph", "values in canonicalize/either"},
		{1, "opt|--query=debug +seldom_wrong|majority.graph", "values in canonicalize/either"},
		{1, "reproduce circuits-failure-3.graph", "it still fails: values in canonicalize/either"},
		{2, "opt --draws=3 majority.graph", "--draws"},
		{0, "profile plan.graph", "de_morgan"},
		{0, "passes --query=+fast_run", "canonicalize"},
		{0, "view --output=page.html plan.graph", ""},
		{1, "rule check --all", "! wrong       absorb\n    x: wire = "},
		{0, "rule|check|(And x (Or x y)) => x", "  exact       rule1\n"},
		{0, "rule find --ops=And,Or,Not --vars=2", "\n    (Not (Not x)) => x\n"},
		{0, "rule find --ops=And,Or --vars=1 --complete --known=none", "     2  100 %  identities\n     0    0 %  that the passes"},
		{0, "rule find --from=majority.graph --size=3", "    # replaces something at 1 places\n"},
		{2, "rule find", "--ops=OP,OP or --from=FILE expected"},
		{2, "rule find --ops=Nand", "Nand"},
		{2, "rule find --ops=And,or", `reserved name: "or" means alternatives in rules`},
		{2, "rule|check|--ops=And|(And x x) => x", "--ops has no meaning for rule check"},
		{2, "rule find --all --ops=And", "--all has no meaning for rule find"},
		{1, "reproduce wrong.graph", "it fails: values in canonicalize/absorb: "},
		{0, "reduce --output=small.graph wrong.graph", "2 applies instead of 7"},
		{0, "bisect wrong.graph", "to blame: rewrite "},
		{1, "reproduce small.graph", "it still fails: values in canonicalize/absorb"},
		{2, "opt", "FILE expected"},
		{2, "graph", "FILE expected"},
		{2, "view", "FILE or PROFILE expected"},
		{1, "opt none.graph", "none.graph"},
		{2, "profile --run=3 plan.graph", "--run has no meaning"},
		{2, "tune plan.graph", "a file of graphs can't be tuned, since nothing runs it"},
	} {
		args := strings.Fields(c.args)
		if strings.Contains(c.args, "|") {
			args = strings.Split(c.args, "|")
		}
		if out := call(t, circuitTool, c.status, args...); !strings.Contains(out, c.want) {
			t.Errorf("%s prints\n%s\nwithout %q", c.args, out, c.want)
		}
	}
	if page, err := os.ReadFile("page.html"); err != nil || !bytes.Contains(page, []byte("de_morgan")) {
		t.Errorf("the page has no rule: %v", err)
	}
}

// theory is a vocabulary with the names that logic has for gates, one of which means something else in
// rules.
type theory struct{ circuits }

func (v theory) Operator(name string) (pattern.Operator, bool) {
	gate, ok := map[string]string{"and": "And", "or": "Or", "not": "Not"}[name]
	op, _ := v.circuits.Operator(gate)
	return op, ok
}

// TestDatabaseFault: where the database can't be made, verbs say why, and nothing else.
func TestDatabaseFault(t *testing.T) {
	t.Chdir(t.TempDir())
	plan := "graph {\ninput %x : wire\n%0 = Not(%x) : wire\nreturn %0\n}\n"
	if err := os.WriteFile("plan.graph", []byte(plan), 0o666); err != nil {
		t.Fatal(err)
	}
	const or = "# Absorption.\nabsorb: canonicalize; fast_run\n    (and x (or x y)) => x\n    (or x (and x y)) => x\n\n# De Morgan.\nde_morgan: canonicalize; fast_run\n" +
		"    (not (or x y)) => (and (not x) (not y))\n"
	for _, c := range []struct {
		name, rules, want string
		vocabulary        pattern.Vocabulary
	}{
		{"or", or, `or.rules:3: rule absorb: pattern "(and x (or x y)) => x": reserved name: "(or x y)" are alternatives, "what x matches, or else what y does", and never an op. ` +
			`The vocabulary has an op with the name "or"; give it another one in rules, such as "or_"`, theory{}},
		{"syntax", "# A.\na: canonicalize\n    (And x\n", "syntax.rules:3: the last rewrite is not complete: (And x", circuits{}},
		{"typo", "# A.\na: canonicalise\n    (And x x) => x\n", "typo.rules:2: rule a: optdb: circuits/canonicalise: unknown entry: no database has that name, did you mean canonicalize?", circuits{}},
		{"gate", "# A.\na: canonicalize\n    (And x x) => (Nand x x)\n", `gate.rules:3: rule a: pattern "(And x x) => (Nand x x)": column 14: unknown op: Nand`, circuits{}},
		{"nil", "", "the program has no database: Config.Database returns nil, and no error", nil},
	} {
		cfg := circuitTool
		cfg.Database = func() (*optdb.SequenceDB, error) {
			if c.vocabulary == nil {
				return nil, nil
			}
			return circuitDatabase(c.name+".rules", c.rules, c.vocabulary)
		}
		for _, args := range []string{
			"opt plan.graph", "opt --rule=(And(x)(x))=>x plan.graph", "opt --optimization.absorb=false plan.graph", "graph plan.graph", "passes", "passes --as-pipeline",
			"passes --explain=absorb", "profile plan.graph", "rule check --all", "view --output=page.html plan.graph", "reproduce plan.graph", "bisect plan.graph", "reduce plan.graph",
			"tune plan.graph",
		} {
			verb, _, _ := strings.Cut(args, " ")
			if out := call(t, cfg, 1, strings.Fields(args)...); !strings.HasPrefix(out, "circuits "+verb+": ") || !strings.HasSuffix(out, c.want+"\n") || strings.Count(out, "\n") != 1 {
				t.Errorf("%s: %s prints\n%s\nnot %s", c.name, args, out, c.want)
			}
		}
		call(t, cfg, 0, "help", "opt")
	}
}

// broken is circuits that can't be computed, or only seem so.
type broken struct {
	circuits
	err error
}

func (b broken) Evaluate(context.Context, *fgraph.FunctionGraph, []any) ([]any, error) {
	return nil, b.err
}

// TestNothingIsComputed: what compares values says so if there are none.
func TestNothingIsComputed(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("and.graph", []byte("graph {\ninput %x : wire\ninput %y : wire\n%0 = And(%x, %y) : wire\nreturn %0\n}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, w := range []broken{{err: errors.New("no current")}, {}} {
		want := "0 values for 1 outputs"
		if w.err != nil {
			want = w.err.Error()
		}
		d := *circuitTool.Dialects[0]
		d.Open = func(*tool.Console, string, *graphfile.File) (repro.World, error) { return w, nil }
		d.Domain = func(string) (rulecheck.Domain, error) {
			return rulecheck.World{
				Rules: circuits{}, Types: []fgraph.Type{wire{}}, Evaluate: w.Evaluate, Random: func(fgraph.Type, bool, *rand.Rand) any { return true },
				Compare: func(x, y any) rulecheck.Class { return rulecheck.Exact },
			}.Domain(), nil
		}
		cfg := circuitTool
		cfg.Dialects = []*tool.Dialect{&d}
		if out := call(t, cfg, 0, "opt", "--query=debug", "and.graph"); !strings.Contains(out, "values are not compared: the graph can't be run without optimization: "+want) {
			t.Errorf("opt prints\n%s", out)
		}
		if out := call(t, cfg, 1, "rule", "check", "(And x y) => (Or x y)"); !strings.Contains(out, "never_fires rule1\n    what it replaces can't be computed: "+want) {
			t.Errorf("rule check prints\n%s", out)
		}
	}
}

// TestTraceForm: --trace has one form, and never takes the file for its value.
func TestTraceForm(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "graph {\ninput %x : wire\n%0 = Not(%x) : wire\n%1 = And(%0, %0) : wire\n%2 = Not(%1) : wire\nreturn %2\n}\n"
	if err := os.WriteFile("plan.graph", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"opt", "graph", "profile"} {
		for _, form := range []string{"--trace", "--trace=all", "--trace=de_morgan", "--trace=canonicalize"} {
			for _, args := range [][]string{{verb, form, "plan.graph"}, {verb, "plan.graph", form}} {
				if out := call(t, circuitTool, 0, args...); !strings.Contains(out, "rewriting: canonicalize/de_morgan: ") {
					t.Errorf("%q prints\n%s", args, out)
				}
			}
		}
		if out := call(t, circuitTool, 0, verb, "--trace=absorb", "plan.graph"); strings.Contains(out, "rewriting: ") || !strings.Contains(out, "trace: no rewrite by canonicalize/absorb: not selected") {
			t.Errorf("%s prints\n%s", verb, out)
		}
	}
	for _, v := range circuitTool.AllVerbs() {
		if help := call(t, circuitTool, 0, "help", v.Name); strings.Contains(help, "--trace ") && !strings.Contains(help, "or with --trace=NAMES") {
			t.Errorf("%s has a form of --trace of its own", v.Name)
		}
	}
}

// TestHelp: help says nothing of dialects that a program does not have.
func TestHelp(t *testing.T) {
	all := call(t, circuitTool, 0, "help")
	for _, v := range circuitTool.AllVerbs() {
		all += call(t, circuitTool, 0, "help", v.Name)
	}
	for _, word := range []string{"tensor", "a network", "net.config", "an expression", "MODEL", "EXPR", "demo"} {
		if i := strings.Index(all, word); i >= 0 {
			t.Errorf("help says %s: %.200s", word, all[max(0, i-100):])
		}
	}
}
