package passes_test

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/refcase"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensortest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// shuffled returns an optimizer whose passes and rules run in a random order, of those that the
// table allows.
func shuffled(t *testing.T, seed uint64, query string) *optdb.Optimizer {
	t.Helper()
	db, err := passes.Shuffled(seed)
	if err != nil {
		t.Fatal(err)
	}
	q, err := optdb.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	opt, err := db.Build(q)
	if err != nil {
		t.Fatal(err)
	}
	return opt
}

// TestShuffledNetworks: where no order is declared, none matters to the results of the reference
// recipes.
func TestShuffledNetworks(t *testing.T) {
	orders := uint64(20)
	if !longtest.Enabled() {
		orders = 1
	}
	dirs, err := filepath.Glob("../nnet3/testdata/recipes/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no recipes", err)
	}
	for seed := range orders {
		opt := shuffled(t, seed, "+fast_run") // which makes its rules once
		for _, dir := range dirs {
			c, err := refcase.LoadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			if r := c.Run(t.Context(), "", opt); r.Err != nil {
				t.Errorf("%s, order %d: %v\n%v", filepath.Base(dir), seed, r.Err, opt)
			}
		}
	}
}

// TestShuffledExpressions: where no order is declared, none matters to the values of random
// expressions.
func TestShuffledExpressions(t *testing.T) {
	expressions := 3000
	if !longtest.Enabled() {
		expressions = 120
	}
	motifs := readMotifs(t, "tensorpass/testdata/rules.txt", "tensorpass/testdata/passes.txt")
	var opt *optdb.Optimizer
	for seed := range expressions {
		if seed%20 == 0 {
			opt = shuffled(t, uint64(seed), []string{"+fast_run", "+fast_run -unsafe_nan", "+fast_compile"}[seed/20%3])
		}
		g := tensortest.NewGenerator(uint64(seed))
		g.Motifs = motifs
		g.Grow(2 + seed%15)
		compareValues(t, seed, g, opt)
	}
}

// readMotifs reads the expressions that the cases of rules and passes are about.
func readMotifs(t *testing.T, names ...string) (motifs []tensortest.Motif) {
	t.Helper()
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for s := bufio.NewScanner(file); s.Scan(); {
			_, expr, _ := strings.Cut(s.Text(), " | ")
			if k := strings.LastIndex(expr, " | ["); k > 0 && !strings.HasPrefix(s.Text(), "#") {
				motifs = append(motifs, tensortest.Motif(expr[:k]))
			}
		}
	}
	if len(motifs) == 0 {
		t.Fatal("no motifs")
	}
	return motifs
}

// compareValues checks that an expression has the same values with and without the optimizer.
func compareValues(t *testing.T, seed int, g *tensortest.Generator, opt *optdb.Optimizer) {
	t.Helper()
	inputs, args := g.Inputs()
	out := g.Outputs(1 + seed%3)
	values := func(opts exec.FunctionOptions) (*exec.Function, []*array.Array) {
		f, err := exec.NewFunction(t.Context(), inputs, out, opts)
		if err != nil {
			t.Fatalf("expression %d: %v\n%v", seed, err, opt)
		}
		values, err := f.Call(t.Context(), args...)
		if err != nil {
			t.Fatalf("expression %d, %v: %v\n%v", seed, f, err, opt)
		}
		return f, values
	}
	plain, want := values(exec.FunctionOptions{})
	f, got := values(exec.FunctionOptions{Optimizer: opt})
	for i := range got {
		tolerance := 1e-8
		if hasSingle(plain.Graph()) {
			tolerance = 2e-3
		}
		if diff := array.MaxRelDiff(got[i], want[i]); !(diff <= tolerance) || got[i].DType() != want[i].DType() {
			t.Errorf("expression %d, output %d differs by %v: %v became %v\n%v", seed, i, diff, plain, f, opt)
		}
	}
}

// hasSingle reports whether something in a graph is computed with float32s.
func hasSingle(g *fgraph.FunctionGraph) bool {
	single := func(v *fgraph.Variable) bool { return tensor.TypeOf(v).DType() == array.Float32 }
	for a := range g.Applies() {
		if slices.ContainsFunc(a.Inputs(), single) || slices.ContainsFunc(a.Outputs(), single) {
			return true
		}
	}
	return false
}
