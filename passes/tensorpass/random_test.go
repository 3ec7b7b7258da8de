package tensorpass_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/tensortest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// randomRuns is the number of expressions that TestRandomExpressions tries. From 10,000 on, every
// rule has to be used.
var randomRuns = flag.Int("expressions", 1500, "how many random expressions are tried")

// TestRandomExpressions: random expressions of all ops, shapes and types, and of the expressions
// that rules are for, keep their values when they are optimized. Ten thousand of them use every
// rule.
func TestRandomExpressions(t *testing.T) {
	runs := *randomRuns
	if testing.Short() {
		runs = min(runs, 300)
	}
	_, cases, _ := readRules(t, "rules.txt")
	_, more, _ := readRules(t, "passes.txt")
	var motifs []tensortest.Motif
	for _, c := range append(cases, more...) {
		if c.want != "!" {
			motifs = append(motifs, tensortest.Motif(c.expr))
		}
	}
	var opts []*optdb.Optimizer
	for _, q := range []string{"+fast_run", "+fast_run -fusion -inplace", "+fast_run -unsafe_nan", "+fast_compile", "+fast_run -canonicalize"} {
		query, err := optdb.ParseQuery(q)
		if err != nil {
			t.Fatal(err)
		}
		opt, err := passes.Default().Build(query)
		if err != nil {
			t.Fatal(err)
		}
		opts = append(opts, opt)
	}
	used := make(map[string]int)
	for seed := range runs {
		g := tensortest.NewGenerator(uint64(seed))
		g.Motifs = motifs
		g.Grow(2 + seed%15)
		randomCase(t, seed, g, opts[seed%len(opts)], used)
		if t.Failed() {
			return
		}
	}
	var unused []string
	for _, l := range tensorpass.Rules() {
		if used[rewrite.Describe(l.Rule).Name] == 0 && !slices.Contains(unused, rewrite.Describe(l.Rule).Name) {
			unused = append(unused, rewrite.Describe(l.Rule).Name)
		}
	}
	if len(unused) > 0 && runs >= 10000 {
		t.Errorf("rules that were never used: %v", unused)
	}
	t.Logf("%d rules used", len(used))
}

// randomCase compares the values of expressions before and after optimization.
func randomCase(t *testing.T, seed int, g *tensortest.Generator, opt *optdb.Optimizer, used map[string]int) {
	inputs, args := g.Inputs()
	out := g.Outputs(1 + seed%3)
	plain, err := exec.NewFunction(t.Context(), inputs, out, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := plain.Call(t.Context(), args...)
	if err != nil {
		t.Fatalf("seed %d: %v: %v", seed, plain, err)
	}
	f, err := exec.NewFunction(t.Context(), inputs, out, exec.FunctionOptions{Optimizer: opt, Profile: true})
	if err != nil {
		t.Errorf("seed %d, %v: %v: %v", seed, opt.Query(), plain, err)
		return
	}
	if err := f.Graph().Check(); err != nil {
		t.Errorf("seed %d, %v: %v", seed, opt.Query(), err)
	}
	count(f.NewRunner().Profile().Optimizer, used)
	got, err := f.Call(t.Context(), args...)
	if err != nil {
		t.Errorf("seed %d, %v: %v\nbecame %v: %v", seed, opt.Query(), plain, f, err)
		return
	}
	for i := range got {
		tol := 1e-8
		if single(out[i]) {
			tol = 2e-3
		}
		if diff := array.MaxRelDiff(got[i], want[i]); !(diff <= tol) || got[i].DType() != want[i].DType() {
			t.Errorf("seed %d, %v: output %d differs by %v:\n%v is\n%v\nand not %v\n%v", seed, opt.Query(), i, diff, f, got[i], want[i], plain)
		}
	}
}

// single reports whether a variable is computed from a float32.
func single(v *fgraph.Variable) bool {
	todo, seen := []*fgraph.Variable{v}, map[*fgraph.Variable]bool{}
	for len(todo) > 0 {
		w := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[w] {
			continue
		}
		seen[w] = true
		if tensor.TypeOf(w).DType() == array.Float32 {
			return true
		}
		if w.Owner() != nil {
			todo = append(todo, w.Owner().Inputs()...)
		}
	}
	return false
}

// count adds up how often each rule was used.
func count(r *profile.Record, used map[string]int) {
	for _, rule := range r.Rules {
		if rule.Applied > 0 {
			used[rule.Name] += rule.Applied
		}
	}
	for _, c := range r.Children {
		count(c, used)
	}
}
