package standard_test

import (
	"strings"
	"testing"

	"github.com/nnopt/nnopt/tool/standard"
)

// TestNetworkRules: --rule and --rules add rules to verbs on networks, whose reproducers have them.
func TestNetworkRules(t *testing.T) {
	t.Chdir(t.TempDir())
	config := file(t, "two.config", `input-node name=input dim=4
component name=a type=RectifiedLinearComponent dim=4
component-node name=a component=a input=input
component name=b type=RectifiedLinearComponent dim=4
component-node name=b component=b input=a
output-node name=output input=b
`)
	right := file(t, "right.rules", `# The second of two ReLUs does nothing.
once: canonicalize; fast_run
    (RectifiedLinearComponent (RectifiedLinearComponent{c} x)) => (RectifiedLinearComponent{c} x)
`)
	without := nnopt(t, "compile", config).ok(t)
	with := nnopt(t, "compile", "--rules", right, "--trace=once", config).ok(t)
	contains(t, with.stderr, "canonicalize/once: Propagate{b}(Propagate{a}(in0)) -> Propagate{a}(in0)")
	if n, m := strings.Count(without.stdout, "Propagate"), strings.Count(with.stdout, "Propagate"); n != 2 || m != 1 {
		t.Errorf("%d runs of a component without the rule, %d with it", n, m)
	}
	contains(t, nnopt(t, "compile", "--rules", right, "--query=+fast_run -once", config).ok(t).stdout, "b.Propagate")

	wrong := "(RectifiedLinearComponent x) => x"
	name := testReproducer(t, standard.Program{}, nnopt(t, "compile", "--query=debug", "--rule", wrong, config), "values in canonicalize/rule1", "canonicalize/rule1: Propagate{")
	// A graph file of a network takes rules of networks, another one those of tensors.
	contains(t, nnopt(t, "opt", "--query=none", "--rule", wrong, "--trace=all", name).ok(t).stderr, "canonicalize/rule1: Propagate{")
	graph := file(t, "x.graph", nnopt(t, "graph", "--vars=x: vector", "tanh(x)").ok(t).stdout)
	contains(t, nnopt(t, "opt", "--query=none", "--rule", "(tanh x) => x", "--trace=all", graph).ok(t).stderr, "canonicalize/rule1: tanh(x) -> x")

	for rule, want := range map[string]string{"(Tanh": "\"(\" is never closed", "(tanh x) => x": "--rule: rule rule1: "} {
		if got := nnopt(t, "compile", "--rule", rule, config); got.status != statusUsage || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v, want %s", rule, got, want)
		}
	}
}
