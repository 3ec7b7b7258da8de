package standard_test

import (
	"strings"
	"testing"
)

// TestExprFormats: the graph in all formats, and what calls cost by op and by apply.
func TestExprFormats(t *testing.T) {
	t.Parallel()
	vars := []string{"expr", "--vars", "X Y: matrix"}
	for format, wants := range map[string][]string{
		"graph": {"[Gemm(X, 1.0, X, Y, 1.0)]\n"}, "tree": {"Gemm"}, "dot": {"digraph \"expr\"", "Gemm"}, "html": {"<!DOCTYPE html>", "</html>"},
	} {
		r := nnopt(t, append(vars, "--format", format, "X @ Y + X")...).ok(t)
		for _, want := range wants {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("--format %s prints\n%s, without %q", format, r.stdout, want)
			}
		}
	}
	nnopt(t, append(vars, "--format", "svg", "X")...).fails(t, statusUsage, "graph, tree, dot or html")
	r := nnopt(t, append(vars, "--eval", "random", "--profile", "X @ Y + X")...).ok(t)
	for _, want := range []string{"Execution\n", "<#apply> <name>", "Apply\n", "<time> <bytes> <apply>"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("--profile prints\n%s, without %q", r.stdout, want)
		}
	}
}

// TestExprMistakes: an error marks the place that it is about.
func TestExprMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"x + foo(y)": "there is no function foo\n  x + foo(y)\n      ^\n",
		"x +":        "not end\n  x +\n     ^\n",
		"αβ + *":     "\n  αβ + *\n",
	} {
		nnopt(t, "expr", text).fails(t, statusUsage, want)
	}
}
