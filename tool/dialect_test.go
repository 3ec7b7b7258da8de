package tool_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/tool"
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
