package onnxpass_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/passes/onnxpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
	"github.com/nnopt/nnopt/tensor/array"
)

var update = flag.Bool("update", false, "rewrite the graphs in testdata")

// TestRulesCompile compiles all rules: those of the program panic where they are at fault.
func TestRulesCompile(t *testing.T) {
	for _, l := range onnxpass.Rules() {
		if d := rewrite.Describe(l.Rule); d.Doc == "" {
			t.Errorf("%s has no sentence", d.Name)
		}
	}
}

// TestSifted: of the rules of the program, those that begin with another operator are not asked.
func TestSifted(t *testing.T) {
	var rules []rewrite.NodeRewriter
	for _, l := range onnxpass.Rules() {
		if r, ok := rewrite.Undescribed(l.Rule).(*pattern.Substitution); ok {
			rules = append(rules, r)
		}
	}
	begin := rules[0].(rewrite.Sifter).Sieve(rules)
	if begin == nil {
		t.Fatal("rules are not sifted")
	}
	g, err := onnxpass.ParseGraph("x: float[2]; y = Neg(x); y", ir.Standard())
	if err != nil {
		t.Fatal(err)
	}
	if found := begin()(g.Outputs()[0].Owner(), nil); len(found) > len(rules)/10 {
		t.Errorf("%d of %d rules are asked about %v", len(found), len(rules), g)
	}
}

// TestRules runs every case of testdata: the rule fires and makes the graph in the file, or it
// does not fire. Values stay the same.
func TestRules(t *testing.T) {
	files := make(map[string][]string)
	rules := make(map[string]rewrite.NodeRewriter)
	for _, l := range onnxpass.Rules() {
		rules[rewrite.Outline(l.Rule).Name] = l.Rule
	}
	fires, rests := make(map[string]bool), make(map[string]bool)
	for _, c := range onnxpass.Cases() {
		t.Run(fmt.Sprintf("%s/%s:%d", c.Rule, path.Base(c.File), c.Line), func(t *testing.T) {
			rule := rules[c.Rule]
			if rule == nil {
				t.Fatal("there is no such rule")
			}
			g := parseGraph(t, c.Graph)
			if c.Want == "!" {
				rests[c.Rule] = true
				rewritetest.DoesNotFire(t, rule, g)
				return
			}
			fires[c.Rule] = true
			if *update {
				if rewritetest.Run(t, rewrite.In2Out(c.Rule, rule), g).Applied() == 0 {
					t.Fatalf("does not fire: %s", rewritetest.WhyNot(t, rule, g))
				}
				if files[c.File] == nil {
					files[c.File] = readLines(t, c.File)
				}
				files[c.File][c.Line-1] = c.Rule + " | " + c.Graph + " | " + g.String()
			} else {
				rewritetest.Fires(t, rule, g, c.Want)
			}
			sameValues(t, parseGraph(t, c.Graph), g)
		})
	}
	for _, l := range onnxpass.Rules() {
		name := rewrite.Outline(l.Rule).Name
		if !fires[name] || !rests[name] {
			t.Errorf("%s needs a case where it fires and one where it must not", name)
		}
	}
	for name, lines := range files {
		if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func readLines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// parseGraph returns the graph of a case, as one of a model.
func parseGraph(t testing.TB, text string) *fgraph.FunctionGraph {
	t.Helper()
	operators := ir.Standard()
	g, err := onnxpass.ParseGraph(text, operators)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	source := ir.NewSource(operators)
	source.Evaluator = lower.Evaluator{}
	if err := g.Attach(source); err != nil {
		t.Fatal(err)
	}
	return g
}

// sameValues compares what two graphs compute, for several values of the symbols of their inputs. Where
// the first one can't be computed, such as for empty tensors, nothing is asked of the second.
func sameValues(t testing.TB, before, after *fgraph.FunctionGraph) {
	t.Helper()
	computed := false
	for seed := range uint64(5) {
		inputs := draw(t, before, seed)
		want, err := evaluate(before, inputs)
		if err != nil {
			t.Logf("not compared: %v", err)
			continue
		}
		computed = true
		got, err := evaluate(after, inputs)
		if err != nil {
			t.Fatalf("the result can't be computed, of inputs %v: %v", shapes(inputs), err)
		}
		for i := range want {
			if !equal(got[i], want[i]) {
				t.Fatalf("output %d of inputs %v is %v, not %v", i, shapes(inputs), got[i], want[i])
			}
		}
	}
	if !computed {
		t.Error("it can't be computed")
	}
}

func shapes(inputs []*array.Array) (list [][]int) {
	for _, a := range inputs {
		list = append(list, a.Shape())
	}
	return list
}

// draw draws inputs: small integers, among them 0 and negative ones, in place of floats, so that sums in
// another order are the same. The last seed has sizes of 0.
func draw(t testing.TB, g *fgraph.FunctionGraph, seed uint64) []*array.Array {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 31))
	symbols := make(map[string]int)
	var inputs []*array.Array
	for _, v := range g.Inputs() {
		dims, ranked := ir.TypeOf(v).Shape()
		if !ranked {
			dims = []ir.Dim{ir.Symbol("n"), ir.Known(3)}
		}
		shape := make([]int, len(dims))
		for i, d := range dims {
			if n, ok := d.Number(); ok {
				shape[i] = int(n)
				continue
			}
			n, ok := symbols[d.String()]
			if !ok || d.IsUnknown() {
				n = 1 + rng.IntN(4)
				if seed == 4 {
					n = 0
				}
				symbols[d.String()] = n
			}
			shape[i] = n
		}
		a, err := lower.NewArray(ir.TypeOf(v).Elem(), shape...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range a.Len() {
			if ir.TypeOf(v).Elem() == onnx.Float {
				a.SetFloat(i, float64(rng.IntN(9)-4))
			} else {
				a.SetFloat(i, float64(rng.IntN(2)))
			}
		}
		inputs = append(inputs, a)
	}
	return inputs
}

func evaluate(g *fgraph.FunctionGraph, inputs []*array.Array) ([]*array.Array, error) {
	m, err := ir.Export(g)
	if err != nil {
		return nil, err
	}
	args := make(map[string]*array.Array)
	for i, a := range inputs {
		args[m.Graph.Inputs[i].Name] = a
	}
	f, err := session.Model(context.Background(), m, session.Options{}, args)
	if err != nil {
		return nil, err
	}
	results, err := f.Call(context.Background(), args)
	if err != nil {
		return nil, err
	}
	var outputs []*array.Array
	for _, o := range m.Graph.Outputs {
		outputs = append(outputs, results[o.Name])
	}
	return outputs, nil
}

// equal reports whether two tensors have the same shape and nearly the same elements.
func equal(a, b *array.Array) bool {
	if a.DType() != b.DType() || !slices.Equal(a.Shape(), b.Shape()) {
		return false
	}
	for i := range a.Len() {
		x, y := a.Float(i), b.Float(i)
		if x != y && !(math.IsNaN(x) && math.IsNaN(y)) && !(math.Abs(x-y) <= 1e-5*math.Max(1, math.Abs(y))) {
			return false
		}
	}
	return true
}
