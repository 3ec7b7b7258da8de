package standard_test

import (
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
