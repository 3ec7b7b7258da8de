package repro_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec/refcase"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/networks"
	"github.com/nnopt/nnopt/tool/repro"
	"github.com/nnopt/nnopt/tool/tensors"
)

// damaging returns a rule that panics, fails, or replaces an op by an operand.
func damaging(op fgraph.Op, kind int) rewrite.Rule {
	return rewrite.Rule{Name: "harm", Doc: "Does harm.", Fn: func(_ *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
		if !fgraph.OpsEqual(a.Op(), op) || len(a.Outputs()) != 1 {
			return rewrite.Result{}, nil
		}
		switch t, ok := a.Out().Type().(tensor.Type); {
		case kind == 0:
			panic("harm")
		case kind == 1:
			return rewrite.Result{}, errors.ErrUnsupported
		case ok && !t.DType().IsFloat():
			return rewrite.Result{}, nil // it may be an index
		}
		for _, v := range a.Inputs() {
			if a.Out().Type().Accepts(v.Type()) {
				return rewrite.Replace(v), nil
			}
		}
		return rewrite.Result{}, nil
	}}
}

// testReduced tests that a case that fails is reduced to at most five applies, which fail in the
// same way when they are read from a file. It returns false if the case does not fail.
func testReduced(t *testing.T, name string, c *repro.Case) bool {
	t.Helper()
	var err error
	if c.Failure, err = repro.Check(t.Context(), c); err != nil || c.Failure.Kind == repro.None {
		return false
	}
	small, err := repro.Reduce(t.Context(), c, repro.ReduceOptions{})
	if err != nil {
		t.Errorf("%s: %v: %v", name, c.Failure, err)
		return true
	}
	again := reread(t, small)
	if f, err := repro.Check(t.Context(), again); err != nil || !f.Same(c.Failure) || again.Graph.NumApplies() > 5 {
		t.Errorf("%s: %v became %v, %v: %v", name, c.Failure, f, err, again.Graph)
	}
	return true
}

// TestRandomFaults: rules that do harm to any op, anywhere between the passes, in random graphs.
func TestRandomFaults(t *testing.T) {
	graphs := 40
	if !longtest.Enabled() {
		graphs = 3
	}
	failed := 0
	for seed := range graphs {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		g := large(t, uint64(seed), 200)
		positions := []float64{0.5, 1.2, 1.7, 2.5, 40, 48.5, 49.2, 60, 76}
		position, kind := positions[r.IntN(len(positions))], r.IntN(3)
		db := passes.Default()
		opt, err := db.Build(optdb.Include("fast_run").Cutoff(position))
		check(t, err)
		optimized, _ := g.Clone()
		check(t, opt.Rewrite(t.Context(), optimized, nil))
		var ops []fgraph.Op
		for a := range optimized.Applies() {
			ops = append(ops, a.Op())
		}
		op := ops[r.IntN(len(ops))]
		check(t, db.Register("planted", rewrite.In2Out("planted", damaging(op, kind)), position, "fast_run"))
		c := &repro.Case{World: tensors.World(expr.Default().Dialect()), Build: db.Build, Graph: g, Query: optdb.Include("fast_run"), Seed: 1}
		if testReduced(t, fmt.Sprintf("seed %d, %v at %g", seed, op, position), c) {
			failed++
		}
	}
	if failed < graphs/2 {
		t.Errorf("only %d of %d graphs fail", failed, graphs)
	}
}

// TestRecipeFaults: rules that do harm to networks of all kinds.
func TestRecipeFaults(t *testing.T) {
	const recipes = "../../nnet3/testdata/recipes"
	dirs, err := refcase.Find(os.DirFS(recipes), ".")
	check(t, err)
	failed := 0
	for i, dir := range dirs {
		if !longtest.Enabled() && i%4 != 0 {
			continue
		}
		c, err := refcase.Load(os.DirFS(recipes+"/"+dir), dir)
		check(t, err)
		compiled, err := compile.CompileContext(t.Context(), c.Net, c.Request, compile.Options{})
		check(t, err)
		chain, err := lower.LowerChain(compiled, c.Net)
		check(t, err)
		for kind := range 3 {
			db := passes.Default()
			position := []float64{0.5, 1.7, 48.5}[(i+kind)%3]
			plantPass(t, db, position, rewrite.Rule{Name: "harm", Doc: "Does harm.", Fn: func(_ *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
				switch op := a.Op().(type) {
				case *lower.Assemble:
					if kind == 0 && len(op.Terms) > 1 {
						return rewrite.Replace(lower.NewAssemble(op.Rows, op.Cols, slices.Clone(op.Terms[1:]), a.Inputs())), nil
					}
				case lower.Propagate:
					if kind == 1 && len(a.Inputs()) == 1 && len(a.Outputs()) == 1 && a.Inputs()[0].Type() == a.Out().Type() {
						return rewrite.Replace(a.Inputs()[0]), nil
					}
				case lower.Backprop:
					if kind == 2 && len(a.Outputs()) == 2 {
						panic("harm")
					}
				}
				return rewrite.Result{}, nil
			}})
			one := &repro.Case{World: networks.World(c.Net, lower.Dialect{Network: c.Net}), Build: db.Build, Graph: chain.Programs[0].Graph, Query: optdb.Include("fast_run")}
			if testReduced(t, fmt.Sprintf("%s, kind %d", dir, kind), one) {
				failed++
			}
		}
	}
	if failed < 3 {
		t.Errorf("only %d cases fail", failed)
	}
}
