package graphtest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/optdb/graphtest"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor/expr"
)

var update = flag.Bool("update", false, "write the results into the files")

func config() graphtest.Config {
	pass := func(name string, err error) rewrite.GraphRewriter {
		return rewrite.FromFunc(name, "does nothing", nil, func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error { return err })
	}
	rule := func(name, text string) rewrite.NodeRewriter {
		r, err := pattern.Compile(tensorpass.Vocabulary(), text, pattern.Named(name))
		if err != nil {
			panic(err)
		}
		return r
	}
	return graphtest.Config{
		Dialect: expr.Dialect{}, Database: passes.Default(),
		Passes: []rewrite.GraphRewriter{
			pass("none", nil), pass("fail", errors.New("out of order")),
			rewrite.In2Out("twice", rule("double", "(abs x) => (add x x)"), rule("other", "(sin x) => (cos x)")),
		},
	}
}

func TestRun(t *testing.T) {
	cfg := config()
	cfg.Update = *update
	graphtest.Run(t, "testdata/*.graph", cfg)
}

// ExampleCheck tests a rule by a text.
func ExampleCheck() {
	const text = `passes: twice

graph {
    input %x : float64 scalar
    %0 = abs(%x) : float64 scalar
    return %0
}
---
`
	updated, err := graphtest.Check(context.Background(), "text", text, config())
	fmt.Println(errors.Is(err, graphtest.ErrResult))
	fmt.Print(updated)
	// Output:
	// true
	// passes: twice
	//
	// graph {
	//     input %x : float64 scalar
	//     %0 = abs(%x) : float64 scalar
	//     return %0
	// }
	// ---
	// graph {
	//     input %x : float64 scalar
	//     %0 = add(%x, %x) : float64 scalar
	//     return %0
	// }
}

// TestUpdate: what Check returns is right, and stays as it is.
func TestUpdate(t *testing.T) {
	text, err := os.ReadFile("testdata/division.graph")
	if err != nil {
		t.Fatal(err)
	}
	wrong := strings.ReplaceAll(string(text), "return %x\n}\n===", "return %y\n}\n\n===")
	got, err := graphtest.Check(t.Context(), "x", wrong, config())
	if !errors.Is(err, graphtest.ErrResult) || errors.Is(err, graphtest.ErrCase) || got != string(text) {
		t.Errorf("%v\n%s", err, got)
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "wrong.graph")
	if err := os.WriteFile(name, []byte(wrong), 0o666); err != nil {
		t.Fatal(err)
	}
	cfg := config()
	cfg.Update = true
	graphtest.Run(t, filepath.Join(dir, "*.graph"), cfg)
	if got, err := os.ReadFile(name); err != nil || string(got) != string(text) {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestFaults(t *testing.T) {
	const graph = "graph {\n    input %x : float64 scalar\n    %0 = abs(%x) : float64 scalar\n    return %0\n}\n"
	const doubled = "---\ngraph {\n    input %x : float64 scalar\n    %0 = add(%x, %x) : float64 scalar\n    return %0\n}\n"
	for text, want := range map[string]string{
		"":                                 `f:1: bad case: bad graph: f:0: "graph {" is missing`,
		graph:                              "neither the field query nor the field passes",
		"a b: c\n" + graph:                 "neither a field",
		"query: nonsense\n" + graph:        "bad query",
		"query: +nonsense\n" + graph:       "nonsense",
		"passes: nothing\n" + graph:        "there is no pass nothing",
		"passes: none\n" + graph:           "another result: got",
		"passes: fail\n" + graph:           "the passes fail: out of order",
		"passes: none\nerror: x\n" + graph: `no error comes out, want "x"`,
		"passes: fail\nerror: in order\n" + graph:                                   "the passes fail",
		"passes: twice\nexpect: double, other\n" + graph + doubled:                  "other makes no rewrite",
		"passes: twice\nexpect-not: double\n" + graph + doubled:                     "double makes a rewrite",
		"passes: twice\n" + graph + doubled + "=== second\npasses: none\ngraph {\n": `f: second:13: bad case: bad graph: f:15: "return" is missing`,
	} {
		_, err := graphtest.Check(t.Context(), "f", text, config())
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, graphtest.ErrCase) && !errors.Is(err, graphtest.ErrResult) {
			t.Errorf("%s\n%v, want %s", text, err, want)
		}
	}
	cfg := config()
	cfg.Database = nil
	if _, err := graphtest.Check(t.Context(), "f", "query: +fast_run\n"+graph, cfg); err == nil || !strings.Contains(err.Error(), "no database") {
		t.Error(err)
	}
	cfg.Open = func(folder string, head *graphfile.File) (graphfile.Dialect, error) {
		return nil, fmt.Errorf("%s %s", filepath.Base(folder), head.Field("passes"))
	}
	if _, err := graphtest.Check(t.Context(), "dir/f", "passes: none\n"+graph, cfg); !errors.Is(err, graphtest.ErrCase) || !strings.Contains(err.Error(), "dir none") {
		t.Error(err)
	}
	if _, err := graphtest.Check(t.Context(), "f", "passes: twice\nsections: yes\n"+graph+doubled, config()); err != nil {
		t.Error(err)
	}
}
