package tensorpass_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A chain is a product of matrices, of which the first and the last may be vectors.
type chain struct {
	vars  []*fgraph.Variable
	types []tensor.Type
}

// randomChain returns a chain of n factors of random sizes.
func randomChain(rng *rand.Rand, n int) chain {
	var c chain
	dtype := []array.DType{array.Float64, array.Float64, array.Float32, array.Int64}[rng.IntN(4)]
	sizes := make([]int, n+1)
	for i := range sizes {
		sizes[i] = 1 + int(math.Exp(rng.Float64()*7)) // 1 would let sums and scalars be cheaper still
		if rng.IntN(12) == 0 {
			sizes[i] = tensor.Unknown
		}
	}
	for i := range n {
		shape := sizes[i : i+2]
		switch {
		case i == 0 && rng.IntN(4) == 0:
			shape = sizes[1:2]
		case i == n-1 && rng.IntN(2) == 0:
			shape = sizes[i : i+1]
		}
		t := tensor.NewType(dtype, shape...)
		c.types = append(c.types, t)
		c.vars = append(c.vars, fgraph.NewInput(t, fmt.Sprintf("x%d", i)))
	}
	return c
}

// cheapest returns the least cost of the products, found by dynamic programming over parts of the chain.
func (c chain) cheapest(t testing.TB) float64 {
	n := len(c.types)
	type part struct {
		cost float64
		typ  tensor.Type
	}
	best := make([][]part, n)
	for i := range best {
		best[i] = make([]part, n)
		best[i][i] = part{0, c.types[i]}
	}
	for length := 2; length <= n; length++ {
		for i := 0; i+length <= n; i++ {
			j := i + length - 1
			best[i][j].cost = math.Inf(1)
			for k := i; k < j; k++ {
				l, r := best[i][k], best[k+1][j]
				v, err := tensor.Try(func() *fgraph.Variable {
					return tensor.Dot(fgraph.NewInput(l.typ, ""), fgraph.NewInput(r.typ, ""))
				})
				if err != nil {
					t.Fatal(err)
				}
				if cost := l.cost + r.cost + tensor.Cost(v.Owner()); cost < best[i][j].cost {
					best[i][j] = part{cost, tensor.TypeOf(v)}
				}
			}
		}
	}
	return best[0][n-1].cost
}

// multiplied returns the product in a random order.
func (c chain) multiplied(rng *rand.Rand) *fgraph.Variable {
	list := append([]*fgraph.Variable(nil), c.vars...)
	for len(list) > 1 {
		i := rng.IntN(len(list) - 1)
		list[i] = tensor.Dot(list[i], list[i+1])
		list = append(list[:i+1], list[i+2:]...)
	}
	return list[0]
}

// TestSaturateChains: a chain of 3 to 8 factors is multiplied in the cheapest order, whatever the order was.
func TestSaturateChains(t *testing.T) {
	opt := passtest.Optimizer(t, "none +saturate")
	runs := 600
	if !longtest.Enabled() {
		runs = 24
	}
	for seed := range runs {
		rng := rand.New(rand.NewPCG(uint64(seed), 16))
		c := randomChain(rng, 3+seed%6)
		g, err := tensor.NewGraph(c.vars, []*fgraph.Variable{c.multiplied(rng)})
		if err != nil {
			t.Fatal(err)
		}
		before := g.String()
		if err := opt.Rewrite(t.Context(), g, nil); err != nil {
			t.Fatal(err)
		}
		if got, want := costOf(g), c.cheapest(t); got != want {
			t.Fatalf("seed %d: %s of %v costs %g, not %g; it was %s", seed, g, c.types, got, want, before)
		}
	}
}
