package standard_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestQueryFile: every verb that takes a query takes @FILE.
func TestQueryFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"few.query":  "# no fusion\nfast_run\n-fusion # measured\n",
		"bad.query":  "+fast_run\n\nfusion\n",
		"plan.graph": "graph {\n input %x : float64 vector\n %0 = mul(%x, %x) : float64 vector\n %1 = tanh(%0) : float64 vector\n return %1\n}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	const expr = "tanh(x*y) + x"
	if out := nnopt(t, "expr", "--query=@few.query", expr).ok(t).stdout; strings.Contains(out, "Composite") {
		t.Errorf("expr fused: %s", out)
	}
	if out := nnopt(t, "opt", "--query", "@few.query", "plan.graph").ok(t).stdout; strings.Contains(out, "Composite") {
		t.Errorf("opt fused: %s", out)
	}
	of := nnopt(t, "passes", "--query=+fast_run -fusion").ok(t).stdout
	if out := nnopt(t, "passes", "--query=@few.query").ok(t).stdout; out != of {
		t.Errorf("passes lists\n%s\nwant\n%s", out, of)
	}
	if out := nnopt(t, "graph", "--query=@few.query", expr).ok(t).stdout; strings.Contains(out, "Composite") {
		t.Errorf("graph prints %s", out)
	}
	for _, verb := range [][]string{{"expr", expr}, {"opt", "plan.graph"}, {"passes"}, {"reproduce", "plan.graph"}} {
		nnopt(t, append(verb, "--query=@bad.query")...).fails(t, statusUsage, "bad query in bad.query: line 3, column 1: the tag fusion needs")
		nnopt(t, append(verb, "--query=@none.query")...).fails(t, statusUsage, "none.query: no such file")
	}
}

// TestRulesOfQuery: saturation takes the rules of a file, whatever groups they name.
func TestRulesOfQuery(t *testing.T) {
	t.Chdir(t.TempDir())
	for i, c := range []struct{ query, want string }{
		{"+saturate", "maximum"},
		{"+saturate{laps=7, rules=@FILE} -found1", "maximum"},
		{"+saturate{rules=@FILE}", "[exp(x)]"},
		{"fast_run +saturate saturate{rules=@FILE, laps=7}", "[exp(x)]"},
	} {
		name := fmt.Sprintf("found%d", i)
		text := "# The exponential is above.\n" + name + ": canonicalize; unsafe_nan\n    (maximum x (exp x)) => (exp x)\n"
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		query := strings.Replace(c.query, "FILE", name, 1)
		if out := nnopt(t, "expr", "--query="+query, "maximum(x, exp(x))").ok(t).stdout; !strings.Contains(out, c.want) {
			t.Errorf("%s: %s, want %s", query, out, c.want)
		}
	}
	nnopt(t, "expr", "--query=+saturate{rules=@none.rules}", "x").fails(t, statusUsage, "none.rules: no such file")
}

// TestFindFrom: what a model misses is looked for in the graph of tensors that it is computed by: rules that replace
// something there, of terms that may be there. A float is no condition here, which (switch x y x) => y would need.
func TestFindFrom(t *testing.T) {
	out := nnopt(t, "rule", "find", "--from=../../docs/examples/tutorial/testdata/affine.onnx --shape x=2x3", "--complete").ok(t)
	if !strings.Contains(out.stderr, "ops: ") || !strings.Contains(out.stdout, "identities") {
		t.Errorf("%s\n%s", out.stdout, out.stderr)
	}
	nnopt(t, "rule", "find", "--from=../../docs/examples/tutorial/testdata/affine.onnx --shap x=2x3", "--complete").fails(t, statusUsage, "not defined: -shap")
	name := t.TempDir() + "/larger.graph"
	text := "graph {\n input %x : float32 vector\n input %y : float32 vector\n %0 = lt(%x, %y) : bool vector\n %1 = switch(%0, %y, %y) : float32 vector\n return %1\n}\n"
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	found := nnopt(t, "rule", "find", "--from="+name, "--vars=2", "--known=none").ok(t).stdout
	if !strings.HasPrefix(found, "# 1 rules") || !strings.Contains(found, "    # replaces something at 1 places\n") || !strings.Contains(found, "(switch (lt x y) y y) => y") {
		t.Error(found)
	}
}
