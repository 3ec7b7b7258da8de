package standard_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/longtest"
)

const recurrentConfig = `input-node name=input dim=6
component name=a type=NaturalGradientAffineComponent input-dim=10 output-dim=4
component-node name=a component=a input=Append(input, IfDefined(Offset(r, -1)))
component name=r type=RectifiedLinearComponent dim=4
component-node name=r component=r input=a
output-node name=output input=r
`

// TestGraph: the graph of an expression and of a network is printed at any step.
func TestGraph(t *testing.T) {
	if out := nnopt(t, "graph", "(y + z)*x/(y + z)").ok(t).stdout; !strings.HasSuffix(out, "    return %x\n}\n") {
		t.Error(out)
	}
	every := nnopt(t, "graph", "--every", "--vars", "x: vector", "-exp(log(x))*x").ok(t).stdout
	contains(t, every, "# at the beginning: 4 applies\ngraph {\n    input %x : float64 vector\n", "# after elemwise_fusion: 1 applies\n")
	steps := strings.Split(strings.TrimSpace(every), "\n\n")
	for i := range steps[1:] {
		_, before, _ := strings.Cut(steps[i], "\n")
		_, after, _ := strings.Cut(steps[i+1], "\n")
		if before == after {
			t.Errorf("a step that changed nothing:\n%s", steps[i+1])
		}
	}
	config := file(t, "net.config", recurrentConfig)
	compiled := nnopt(t, "graph", "--query", "none", config, "--frames-per-chunk", "5").ok(t).stdout
	contains(t, compiled, "network: "+config, "Propagate{a}(", "program {\n", "input node=0 at=0")
	last := nnopt(t, "graph", config, "--frames-per-chunk", "5").ok(t).stdout
	contains(t, last, "derived {\n    1 = product base=a ", "storage {\n    options extend assign")
	after := nnopt(t, "graph", config, "--after", "plan_storage", "--frames-per-chunk", "5").ok(t).stdout
	contains(t, after, "storage {\n    options\n")
	every = nnopt(t, "graph", config, "--every", "--frames-per-chunk", "5").ok(t).stdout
	contains(t, every, "# at the beginning", "# after specialize", "# after plan_storage")
	if !strings.HasSuffix(strings.TrimSpace(every), strings.TrimSpace(last[strings.Index(last, "derived {"):])) {
		t.Errorf("the last step is not the result:\n%s\n%s", every, last)
	}
	contains(t, nnopt(t, "graph", config, "--format", "dot").ok(t).stdout, "digraph", `label="Propagate{a`, `x4"`)
}

// TestGraphJSON: the JSON form holds the text of the graph.
func TestGraphJSON(t *testing.T) {
	text := nnopt(t, "graph", "--grad", "x", "sum(exp(x)**2)", "--vars", "x: vector").ok(t).stdout
	var l graphfile.Listing
	if err := json.Unmarshal([]byte(nnopt(t, "graph", "--grad", "x", "sum(exp(x)**2)", "--vars", "x: vector", "--format", "json").ok(t).stdout), &l); err != nil {
		t.Fatal(err)
	}
	if l.String() != text {
		t.Errorf("%s\n%s", l.String(), text)
	}
	lines := strings.Split(strings.TrimSpace(nnopt(t, "graph", "--every", "--format", "json", "exp(log(x))").ok(t).stdout), "\n")
	var steps []string
	for _, line := range lines {
		var s stepListing
		if err := json.Unmarshal([]byte(line), &s); err != nil || len(s.Graphs) != 1 {
			t.Fatal(err, line)
		}
		steps = append(steps, s.Step)
	}
	if len(steps) < 2 || steps[0] != "the beginning" || steps[1] == "" {
		t.Error(steps)
	}
}

// TestOpt: a graph that was read is optimized as the one that was written.
func TestOpt(t *testing.T) {
	t.Parallel()
	config := file(t, "net.config", recurrentConfig)
	for _, args := range [][]string{
		{config, "--frames-per-chunk", "5"},
		{config, "--frames-per-chunk", "5", "--need-model-derivative", "--srand", "3"},
		{"--vars", "X: matrix; v: vector", "[dot(X, exp(log(v))), sum(X*2, axis=0)]"},
	} {
		graph := func(more ...string) string {
			return nnopt(t, append(append([]string{"graph"}, args...), more...)...).ok(t).stdout
		}
		want := graph()
		for _, more := range [][]string{{"--after", "merge1"}, {"--query", "none"}, {}}[:longtest.Of(1, 3)] {
			name := file(t, "some.graph", graph(more...))
			if got := nnopt(t, "opt", name).ok(t).stdout; got != want {
				t.Errorf("%v %v:\n%s\nwant\n%s", args, more, got, want)
			}
		}
	}
	name := file(t, "x.graph", "query: +canonicalize\nnote: kept\n\n"+nnopt(t, "graph", "--query", "none", "x*y/y").ok(t).stdout)
	r := nnopt(t, "opt", name, "--trace", "--profile").ok(t)
	contains(t, r.stdout, "note: kept", "return %x\n")
	contains(t, r.stderr, "canonicalize/", "Optimizer Profile")
	if strings.Contains(r.stdout, "query:") {
		t.Errorf("the query is done:\n%s", r.stdout)
	}
	contains(t, nnopt(t, "opt", name, "--query", "none").ok(t).stdout, "true_div(")
	contains(t, nnopt(t, "opt", name, "--max-rewrites", "0").ok(t).stdout, "true_div(")
	contains(t, nnopt(t, "opt", name, "--format", "dot").ok(t).stdout, "digraph")
	contains(t, nnopt(t, "opt", name, "--every").ok(t).stdout, "# after canonicalize")
}

func TestGraphFaults(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"graph"}, "MODEL or EXPR expected"},
		{[]string{"graph", "x", "--format", "html"}, "want text, dot or json"},
		{[]string{"graph", "x", "--after", "canonicalise"}, `no such pass; did you mean "canonicalize"?`},
		{[]string{"graph", "x", "--after", "plan_storage"}, "no such pass"},
		{[]string{"graph", "exp("}, "exp("},
		{[]string{"opt"}, "FILE expected"},
		{[]string{"opt", "no.graph"}, "no.graph"},
		{[]string{"opt", file(t, "a.graph", "hello")}, "is no graph file"},
		{[]string{"opt", file(t, "b.graph", "graph {\n%1 = frob() : float64\nreturn %1\n}\n")}, `b.graph:2: the op "frob"`},
		{[]string{"opt", file(t, "c.graph", "network: gone.config\ngraph {\nreturn\n}\n")}, "gone.config"},
		{[]string{"opt", file(t, "d.graph", "query: nonsense\ngraph {\nreturn\n}\n")}, "bad query"},
	} {
		r := nnopt(t, test.args...)
		if r.status == 0 {
			t.Errorf("%v: no error", test.args)
		}
		contains(t, r.stderr, test.want)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"n.config": recurrentConfig, "n.graph": "network: n.config\nsrand: x\ngraph {\nreturn\n}\n", "m.graph": "network: n.config\ntest-mode: sleepy\ngraph {\nreturn\n}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	contains(t, nnopt(t, "opt", filepath.Join(dir, "n.graph")).stderr, "srand")
	contains(t, nnopt(t, "opt", filepath.Join(dir, "m.graph")).stderr, "sleepy")
}
