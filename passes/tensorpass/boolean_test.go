package tensorpass_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/interp"
)

var truthOps = []array.Opcode{
	array.And, array.Or, array.Xor, array.Eq, array.Neq, array.Lt, array.Le, array.Gt, array.Ge, array.Maximum, array.Minimum, array.Invert, array.Switch,
}

// drawTruths returns some of the bools that random ops compute of bools.
func drawTruths(rng *rand.Rand, inputs []*fgraph.Variable, n int) []*fgraph.Variable {
	all := append([]*fgraph.Variable{}, inputs...)
	for range n {
		op := truthOps[rng.IntN(len(truthOps))]
		args := make([]*fgraph.Variable, op.NumArgs())
		for i := range args {
			args[i] = all[rng.IntN(len(all))]
			if rng.IntN(12) == 0 {
				args[i] = tensor.Number(float64(rng.IntN(2)), inputs[0])
			}
		}
		all = append(all, tensor.Map(op, args...))
	}
	return all[len(all)-1-rng.IntN(3):]
}

// TestBooleanFunctions: what is computed of bools keeps its values. By the rule alone it needs no more ops, and under
// the whole database a function of three bools is one graph, whatever it was computed by.
func TestBooleanFunctions(t *testing.T) {
	rule, all := passtest.Optimizer(t, "+local_boolean_function"), passtest.Optimizer(t, "+fast_run -fusion -inplace")
	canonical := make(map[string]string)
	for seed := range uint64(longtest.Of(600, 40000)) {
		rng := rand.New(rand.NewPCG(seed, 1))
		inputs := make([]*fgraph.Variable, 3+rng.IntN(3))
		args := make([]*array.Array, len(inputs))
		for i := range inputs {
			inputs[i] = fgraph.NewInput(tensor.NewType(array.Bool, 1<<len(inputs)), fmt.Sprint("x", i))
			x := make([]bool, 1<<len(inputs))
			for k := range x {
				x[k] = k>>i&1 == 1
			}
			args[i] = array.Of(x, len(x))
		}
		out := drawTruths(rng, inputs, 1+rng.IntN(12))
		g, err := fgraph.New(inputs, out)
		if err != nil {
			t.Fatal(err)
		}
		before, ops, text := truths(t, inputs, out, args), g.NumApplies(), g.String()
		for _, opt := range []*optdb.Optimizer{rule, all} {
			if err := opt.Rewrite(t.Context(), g, nil); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, text, err)
			}
			after := truths(t, g.Inputs(), g.Outputs(), args)
			if after != before || opt == rule && g.NumApplies() > ops {
				t.Fatalf("seed %d: %s became %s: %s, want %s", seed, text, g, after, before)
			}
		}
		if len(inputs) == 3 && len(out) == 1 {
			if is := canonical[before]; is == "" {
				canonical[before] = g.String()
			} else if is != g.String() {
				t.Errorf("seed %d: %s became %s, and something equal %s", seed, text, g, is)
			}
		}
	}
	if len(canonical) < 20 {
		t.Errorf("%d functions of three bools were drawn", len(canonical))
	}
}

// truths computes bools.
func truths(t *testing.T, inputs, outputs []*fgraph.Variable, args []*array.Array) string {
	t.Helper()
	in := interp.New(t.Context())
	for i, v := range inputs {
		in.Set(v, args[i])
	}
	values, err := in.Values(outputs)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(values)
}
