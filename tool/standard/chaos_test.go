package standard_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
)

// TestChaos: a model whose output moves further than rounding explains when its input moves by 1e-6 is held to that
// movement, and to no less; the report says so. Others are held to the tolerance.
func TestChaos(t *testing.T) {
	longtest.Only(t)
	t.Chdir(t.TempDir())
	var table []string
	for i := range 64 {
		table = append(table, fmt.Sprint(float32(i*i%37)/9-1.7))
	}
	// The argument of the sine is a million times as large as a turn, so its last bits decide.
	const tail = `
    %k = constant {1e7} : float[]
    %a = Mul(%x, %k) : float[64]
    %s = Sin(%a) : float[64]
    %c = constant {0.01} : float[]
    %d = Mul(%s, %c) : float[64]
    %y = Add(%x, %d) : float[64]
    %n = Neg(%x) : float[64]
    return %y, %n
}
`
	graphs := map[string]string{
		"floats": "onnx-model: none\n\ngraph {\n    input %x : float[64]" + tail,
		// Without an input that could move, constants do.
		"ids": "onnx-model: none\n\ngraph {\n    input %i : int64[2]\n    %t = constant {[" + strings.Join(table, ",") + "]} : float[2,32]\n    %x = Gather(%t, %i) : float[2,32]" + strings.ReplaceAll(tail, "64", "2,32"),
	}
	const rounds, wrong, less = "--rule=(Mul x 10000000) => (Mul (Mul x 1000) 10000)", "--rule=(Add x y) => (Add y y)", "--rule=(Neg x) => (Sub 0.001 x)"
	for name, text := range graphs {
		graph := file(t, name+".graph", text)
		nnopt(t, "opt", "--query=none", "--output=chaos.onnx", graph).ok(t)
		what := map[string]string{"floats": "inputs move", "ids": "constants move, since no input is a float,"}[name]
		out := nnopt(t, "opt", "--query=none", rounds, "--output=out.onnx", "chaos.onnx").ok(t).stdout
		contains(t, out, "as far as the model does itself: output 0 is off by ", " % of its norm, and moves by up to ", " % when "+what+" by 1e-06 (largest of ")
		// What is wrong by more, or where nothing moves, is a fault.
		for _, rule := range []string{wrong, less} {
			nnopt(t, "opt", "--query=none", rule, "--output=wrong.onnx", "chaos.onnx").fails(t, statusFault, "the optimized model computes something else: output ")
		}
		if _, err := os.Stat("wrong.onnx"); err == nil {
			t.Error("a wrong model was written")
		}
		// So do all verbs that compare.
		nnopt(t, "opt", "--query=debug", rounds, graph).ok(t)
		nnopt(t, "opt", "--query=debug", rounds, wrong, graph).fails(t, statusFault, "a reproducer is in nnopt-failure-1.graph (values in canonicalize/rule2)")
		nnopt(t, "reproduce", "nnopt-failure-1.graph").fails(t, statusFault, "it still fails")
		contains(t, nnopt(t, "bisect", "nnopt-failure-1.graph").ok(t).stdout, "rule2: Add(")
		r := nnopt(t, "reproduce", "--query=+rule1", "nnopt-failure-1.graph").ok(t)
		contains(t, r.stderr, "it does not fail\noutput 0 is off by ")
		for _, name := range []string{"nnopt-failure-1.graph", "nnopt-failure-1.before.graph"} {
			if err := os.Remove(name); err != nil {
				t.Error(err)
			}
		}
	}
}
