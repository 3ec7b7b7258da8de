package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const network = `
input-node name=input dim=4
component name=affine type=NaturalGradientAffineComponent input-dim=4 output-dim=8
component-node name=affine component=affine input=input
component name=relu type=RectifiedLinearComponent dim=8
component-node name=relu1 component=relu input=affine
component-node name=relu2 component=relu input=relu1
output-node name=output input=relu2
`

// TestVerbs runs every verb on what the program has of its own.
func TestVerbs(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("net.config", []byte(network), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("own.rules", []byte(ownRules), 0o666); err != nil {
		t.Fatal(err)
	}
	const graph = "graph {\n input %x : float64 scalar\n %0 = Swish(%x) : float64 scalar\n %1 = neg(%x) : float64 scalar\n" +
		" %2 = Swish(%1) : float64 scalar\n %3 = sub(%0, %2) : float64 scalar\n return %3\n}\n"
	if err := os.WriteFile("own.graph", []byte(graph), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want []string // on standard output or standard error
	}{
		{args: []string{"help"}, want: []string{"usage: owntool VERB"}},
		{args: []string{"version"}, want: []string{"owntool "}},
		{[]string{"passes"}, []string{"local_swish ", "local_swish_mirror", "unswish", "share_swish", "relu_of_relu", "Swish(-x) → Swish(x) - x"}},
		{[]string{"passes", "--query=+fast_run -swish", "--explain=share_swish"}, []string{"not selected"}},
		{[]string{"passes", "--rules"}, []string{"local_swish: specialize; fast_run swish", "(mul x (sigmoid x)) => (Swish x)"}},
		// The op: typed by name and as a method, computed, differentiated, fused, and in place.
		{[]string{"expr", "--vars=x: vector", "--eval=x=[0, 1]", "x.Swish()"}, []string{"[Swish(x)]", "[0.0, 0.731"}},
		{[]string{"expr", "--vars=x: vector", "--grad=x", "--query=fast_run -fusion -inplace", "sum(Swish(x))"}, []string{"[add(*1 -> sigmoid(x), mul(x, *1, sub(1.0, *1)))]"}},
		{[]string{"expr", "--vars=X: matrix", "shape(Swish(X))"}, []string{"[Shape(X)]"}},
		{[]string{"expr", "Swish(x)*y"}, []string{"[Composite{mul(mul(i0, sigmoid(i0)), i1)}(x, y)]"}},
		{[]string{"expr", "--vars=X Y: matrix", "--eval=random", "Swish(dot(X, Y))"}, []string{"[Swish{inplace}(Dot22(X, Y))]", "from what was typed: 0\n"}},
		{[]string{"expr", "Swihs(x)"}, []string{"there is no function Swihs; did you mean Swish?"}},
		// The text rules, the Go rule, the global pass, and a rule that the user types.
		{[]string{"expr", "x*sigmoid(x)"}, []string{"[Swish(x)]"}},
		{[]string{"expr", "--trace=local_swish_mirror", "Swish(x) - Swish(-x)"}, []string{"[x]", "specialize/local_swish_mirror: sub(Swish(x), Swish(neg(x))) -> x"}},
		{[]string{"expr", "--query=fast_run -fusion", "--trace=unswish", "Swish(x) + 2*sigmoid(x)"}, []string{"unswish/local_unswish: Swish(x) -> mul(x, sigmoid(x))"}},
		{[]string{"expr", "--query=fast_run -fusion", "--trace=share_swish", "Swish(x) + Swish(-x)"}, []string{"share_swish: Swish(neg(x)) -> sub(Swish(x), x)"}},
		{[]string{"expr", "--query=fast_run -fusion", "--max-rewrites=0", "Swish(x) - Swish(-x)"}, []string{"[sub(Swish(x), Swish(neg(x)))]"}},
		{[]string{"expr", "--why-not=local_swish", "x*sigmoid(y)"}, []string{"why not: specialize/local_swish: at mul(x, sigmoid(y)): "}},
		{[]string{"expr", "--why-not=local_unswish", "Swish(x)"}, []string{"why not: unswish/local_unswish: at Swish(x): nothing else computes sigmoid(x)"}},
		{[]string{"expr", "--query=none", "--rule=(Swish (Swish x)) => (Swish x)", "Swish(Swish(x))"}, []string{"[Swish(x)]"}},
		{[]string{"expr", "--query=debug", "--vars=x: vector", "Swish(x)*x - Swish(-x)"}, []string{"1 ops, 5 as typed"}},
		// The op in files of graphs.
		{[]string{"graph", "--query=none", "Swish(x) - Swish(-x)"}, []string{"%0 = Swish(%x) @1 : float64 scalar"}},
		{[]string{"graph", "--every", "Swish(x) + Swish(-x)"}, []string{"# after share_swish"}},
		{[]string{"opt", "--query=fast_run -fusion", "own.graph"}, []string{"input %x : float64 scalar\n    return %x"}},
		// A wrong rule: found, repeated, made small, blamed.
		{[]string{"expr", "--query=debug", "--rule=(Swish x) => (sigmoid x)", "Swish(x)*y"}, []string{"other values", "rule1", "owntool-failure-1.graph"}},
		{[]string{"reproduce", "owntool-failure-1.graph"}, []string{"it still fails: values in canonicalize/rule1"}},
		{[]string{"reduce", "owntool-failure-1.graph"}, []string{"1 applies instead of 2, query +rule1"}},
		{[]string{"bisect", "owntool-failure-1.graph"}, []string{"canonicalize/rule1: Swish(x) -> sigmoid(x)"}},
		{[]string{"expr", "--profile", "Swish(x) + Swish(-x)"}, []string{"share_swish"}},
		{[]string{"rule", "check", "--file=own.rules"}, []string{"local_swish\n", "local_swish_mirror\n", "2 of 2 rules"}},
		{[]string{"rule", "check", "(Swish x) => x"}, []string{"! wrong", "left: Swish(x) = "}},
		{[]string{"view", "--output=page.html", "Swish(x) + Swish(-x)"}, nil},
		// The rule for networks.
		{[]string{"compile", "net.config"}, []string{"optimized:"}},
		{[]string{"compile", "--trace=relu_of_relu", "net.config"}, []string{"rewriting: relu_of_relu: "}},
		{[]string{"compile", "--optimization.relu-of-relu=false", "--trace=relu_of_relu", "net.config"}, []string{"not selected"}},
		{[]string{"compile", "--query=debug", "net.config"}, []string{"optimized:"}},
		{[]string{"profile", "net.config"}, []string{"relu_of_relu"}},
		{[]string{"profile", "--format=json", "--output=profile.json", "net.config"}, nil},
		{[]string{"profile", "--diff=profile.json", "--query=+fast_run -relu_of_relu", "net.config"}, []string{"relu_of_relu"}},
		// The page to watch either on.
		{[]string{"view", "--output=expr.html", "x*sigmoid(x)"}, nil},
		{[]string{"view", "--output=net.html", "net.config"}, nil},
		{[]string{"bench", "nnet3", "--count-only", "--model=net.config"}, []string{"commands"}},
	} {
		var out bytes.Buffer
		config().Run(t.Context(), c.args, nil, &out, &out)
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("owntool %s: %q is missing in\n%s", strings.Join(c.args, " "), want, out.String())
			}
		}
		if strings.Contains(out.String(), "goroutine ") || strings.Contains(out.String(), "internal error, please report") {
			t.Errorf("owntool %s:\n%s", strings.Join(c.args, " "), out.String())
		}
	}
	for name, title := range map[string]string{"expr.html": "x*sigmoid(x)", "net.html": "net.config"} {
		if page, err := os.ReadFile(name); err != nil || !strings.Contains(string(page), "<title>"+title+"</title>") {
			t.Errorf("%s: no page of %s: %v", name, title, err)
		}
	}
	if page, err := os.ReadFile("page.html"); err != nil || !bytes.Contains(page, []byte("Swish(x)")) {
		t.Errorf("the page of view does not show the op: %v", err)
	}
}

// TestLength: an own tool takes at most 100 lines.
func TestLength(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(f, "_test.go") {
			lines += bytes.Count(text, []byte("\n"))
		}
	}
	if lines > 100 {
		t.Errorf("%d lines", lines)
	}
}
