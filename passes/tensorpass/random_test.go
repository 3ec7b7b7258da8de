package tensorpass_test

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/passes/tensortest"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

var (
	randomRuns  = flag.Int("expressions", 40000, "how many random expressions are tried")
	randomStart = flag.Int("expressions.from", 0, "the first seed of the random expressions, also of those that are saturated")
)

// TestRandomExpressions: random expressions of all ops, shapes and types, of the expressions that
// rules are for, and of what the patterns of rules match, keep their values when they are
// optimized. Forty thousand of them use every rule.
func TestRandomExpressions(t *testing.T) {
	runs := *randomRuns
	if !longtest.Enabled() {
		runs = min(runs, 200)
	}
	_, cases, _ := readRules(t, "rules.txt")
	_, more, _ := readRules(t, "passes.txt")
	var motifs []tensortest.Motif
	for _, c := range append(cases, more...) {
		if c.want != "!" {
			motifs = append(motifs, tensortest.Motif(c.expr))
		}
	}
	patterns := rulePatterns()
	workers := runtime.GOMAXPROCS(0)
	used := make([]map[string]int, workers)
	t.Run("workers", func(t *testing.T) {
		for w := range workers {
			used[w] = make(map[string]int)
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				opts := randomOptimizers(t)
				for seed := *randomStart + w; seed < *randomStart+runs && !t.Failed(); seed += workers {
					g := tensortest.NewGenerator(uint64(seed))
					if seed%4 == 3 {
						g = tensortest.NewGeneratorOf(uint64(seed), tensortest.SmallVars)
					}
					g.Motifs, g.Patterns, g.Vocabulary = motifs, patterns, tensorpass.Vocabulary()
					g.Grow(2 + seed%15)
					randomCase(t, seed, g, opts[seed%len(opts)], used[w])
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	all := make(map[string]int)
	for _, u := range used {
		for name, n := range u {
			all[name] += n
		}
	}
	var unused []string
	for _, l := range tensorpass.Rules() {
		if l.Groups != tensorpass.Saturate && all[rewrite.Describe(l.Rule).Name] == 0 && !slices.Contains(unused, rewrite.Describe(l.Rule).Name) {
			unused = append(unused, rewrite.Describe(l.Rule).Name)
		}
	}
	if len(unused) > 0 && runs >= 40000 {
		t.Errorf("rules that were never used: %v", unused)
	}
	t.Logf("%d rules used", len(all))
}

// randomOptimizers returns the optimizers that take turns.
func randomOptimizers(t *testing.T) []*optdb.Optimizer {
	t.Helper()
	var opts []*optdb.Optimizer
	for _, q := range []string{"+fast_run", "+fast_run -fusion -inplace", "+fast_run -unsafe_nan", "+fast_compile", "+fast_run -canonicalize"} {
		opts = append(opts, passtest.Optimizer(t, q))
	}
	return opts
}

// rulePatterns returns the patterns of the rules that are text.
func rulePatterns() []pattern.Expr {
	var patterns []pattern.Expr
	for _, l := range tensorpass.Rules() {
		if s, ok := rewrite.Undescribed(l.Rule).(*pattern.Substitution); ok && l.Groups != tensorpass.Saturate {
			for _, c := range s.Rule().Cases {
				patterns = append(patterns, c.In.Expr)
			}
		}
	}
	return patterns
}

// randomCase compares the values of expressions before and after optimization. It returns the expressions
// and the optimized function, or nil.
func randomCase(t *testing.T, seed int, g *tensortest.Generator, opt *optdb.Optimizer, used map[string]int) (out []*fgraph.Variable, f *exec.Function) {
	inputs, args := g.Inputs()
	out = g.Outputs(1 + seed%3)
	plain, err := exec.NewFunction(t.Context(), inputs, out, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := plain.Call(t.Context(), args...)
	if err != nil {
		t.Fatalf("seed %d: %v: %v", seed, plain, err)
	}
	f, err = exec.NewFunction(t.Context(), inputs, out, exec.FunctionOptions{Optimizer: opt, Profile: true})
	if err != nil {
		t.Errorf("seed %d, %v: %v: %v", seed, opt.Query(), plain, err)
		return out, nil
	}
	if err := f.Graph().Check(); err != nil {
		t.Errorf("seed %d, %v: %v", seed, opt.Query(), err)
	}
	count(f.NewRunner().Profile().Optimizer, used)
	got, err := f.Call(t.Context(), args...)
	if err != nil {
		t.Errorf("seed %d, %v: %v\nbecame %v: %v", seed, opt.Query(), plain, f, err)
		return out, nil
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
	return out, f
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
