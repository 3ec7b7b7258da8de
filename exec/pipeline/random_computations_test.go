package pipeline_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/computation/computationtest"
	"github.com/nnopt/nnopt/passes"
)

// TestComputations optimizes random computations, with views and components that no compiler makes,
// under random queries. The results are sound and compute the same.
func TestComputations(t *testing.T) {
	db := passes.Default()
	entries := names(build(t, db, fastRun))
	for i := range manyCases() {
		seed := *firstSeed + i
		r := rand.New(rand.NewPCG(seed, 2))
		text := computationtest.Random(r.IntN)
		c, net := computationtest.MustParse(t, text)
		for range *randomQueries {
			opt := build(t, db, randomQuery(r, entries))
			got, err := passes.Optimize(t.Context(), c, net, opt, nil)
			if err == nil {
				err = computation.Check(got, net.Info(), computation.CheckOptions{AllowUnused: true})
			}
			if err == nil {
				err = computationtest.Same(net, c, got)
			}
			if err != nil {
				t.Errorf("seed %d, %s: %v\n%s", seed, opt.Query(), err, text)
			}
		}
	}
}
