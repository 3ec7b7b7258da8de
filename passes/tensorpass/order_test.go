package tensorpass_test

import (
	"fmt"
	"hash/fnv"
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

// TestOrderFunctions: what is computed of two integers of 8 bits, and of two bools, keeps its values for all of them,
// also the least one, which is its own opposite. By the rule alone it needs no more ops, and what one op computes is one
// graph under the whole database, however it was written.
func TestOrderFunctions(t *testing.T) {
	rule, all := passtest.Optimizer(t, "+local_order_function"), passtest.Optimizer(t, "+fast_run -fusion -inplace")
	args := orderArgs()
	fired := 0
	canonical := make(map[string]string)
	for seed := range uint64(longtest.Of(80, 4000)) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var inputs []*fgraph.Variable
		for i, a := range args {
			inputs = append(inputs, fgraph.NewInput(tensor.NewType(a.DType(), a.Len()), "klpq"[i:i+1]))
		}
		out := drawOrders(rng, inputs, 1+rng.IntN(7))
		g, err := fgraph.New(inputs, out)
		if err != nil {
			t.Fatal(err)
		}
		before, ops, text := sums(t, inputs, out, args), g.NumApplies(), g.String()
		for _, opt := range []*optdb.Optimizer{rule, all} {
			if err := opt.Rewrite(t.Context(), g, nil); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, text, err)
			}
			if after := sums(t, g.Inputs(), g.Outputs(), args); after != before || opt == rule && g.NumApplies() > ops {
				t.Fatalf("seed %d: %s became %s", seed, text, g)
			}
			if opt == rule && g.String() != text {
				fired++
			}
		}
		if len(out) == 1 && g.NumApplies() <= 1 {
			if is := canonical[before]; is == "" {
				canonical[before] = g.String()
			} else if is != g.String() {
				t.Errorf("seed %d: %s became %s, and something equal %s", seed, text, g, is)
			}
		}
	}
	if fired < 50 || len(canonical) < 10 {
		t.Errorf("it fired on %d graphs, and %d functions of one op were drawn", fired, len(canonical))
	}
}

// orderArgs returns two integers and two bools with all their values.
func orderArgs() []*array.Array {
	const n = 1 << 18
	k, l, p, q := make([]int8, n), make([]int8, n), make([]bool, n), make([]bool, n)
	for i := range n {
		k[i], l[i], p[i], q[i] = int8(i), int8(i>>8), i>>16&1 == 1, i>>17&1 == 1
	}
	return []*array.Array{array.Of(k, n), array.Of(l, n), array.Of(p, n), array.Of(q, n)}
}

// sums computes variables, and returns check sums of all their elements.
func sums(t *testing.T, inputs, outputs []*fgraph.Variable, args []*array.Array) string {
	t.Helper()
	in := interp.New(t.Context())
	for i, v := range inputs {
		in.Set(v, args[i])
	}
	values, err := in.Values(outputs)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, a := range values {
		h := fnv.New64a()
		if a.DType() == array.Bool {
			a = a.Cast(array.Int8)
			h.Write([]byte("bool"))
		}
		for _, x := range array.Slice[int8](a.Clone()) {
			h.Write([]byte{byte(x)})
		}
		text += fmt.Sprintf("%x %v ", h.Sum64(), a.Shape())
	}
	return text
}

// drawOrders returns some of what random ops compute.
func drawOrders(rng *rand.Rand, inputs []*fgraph.Variable, n int) []*fgraph.Variable {
	ops := []array.Opcode{
		array.Maximum, array.Minimum, array.Abs, array.Sgn, array.Neg, array.Switch, array.Eq, array.Neq, array.Lt, array.Le, array.Gt, array.Ge,
		array.And, array.Or, array.Xor, array.Invert, array.Mul, array.Add, array.Sub,
	}
	all := append([]*fgraph.Variable{}, inputs...)
	for tries := 0; n > 0 && tries < 100; tries++ {
		op := ops[rng.IntN(len(ops))]
		args := make([]*fgraph.Variable, max(op.NumArgs(), 1+(2+op.NumArgs())/2))
		for i := range args {
			args[i] = all[rng.IntN(len(all))]
			if rng.IntN(5) == 0 {
				args[i] = tensor.Number(float64(rng.IntN(3)-1), inputs[0])
			}
		}
		v, err := tensor.Try(func() *fgraph.Variable { return tensor.Map(op, args...) })
		if err == nil && v.Owner() != nil && (tensor.TypeOf(v).DType() == array.Int8 || tensor.TypeOf(v).DType() == array.Bool) && !tensor.TypeOf(v).AllOnes() {
			all, n = append(all, v), n-1
		}
	}
	return all[len(all)-1-rng.IntN(2):]
}
