package decodable_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/passtest"
)

// TestStreamsInIntegers: streams whose products are integers, and the error bounded by an estimate or as
// measured, have nearly the rows of those in float32.
func TestStreamsInIntegers(t *testing.T) {
	features := readMatrices(t, "ark:"+compute+"feats.ark")[0].rows
	for _, l := range loopedRuns() {
		ivectors := l.ivectorsOf(t)[0].rows
		rows := func(query string) kernel.Matrix {
			opts := l.opts
			opts.Optimizer = passtest.Optimizer(t, query)
			y, err := feed(t.Context(), streamer(t, l.model, opts).NewStream(), features, ivectors, l.period, 20, rand.New(rand.NewPCG(1, 2)))
			if err != nil {
				t.Fatalf("%s, %s: %v", l.name, query, err)
			}
			return y
		}
		want := rows("+fast_run")
		for _, query := range []string{"+fast_run +int8", "+fast_run +int16", "+fast_run +int8 -bound_quantization_error limit_quantization_error{error=0.05}"}[:longtest.Of(1, 3)] {
			if e := distance(rows(query), want); !(e > 0 && e < 0.15) {
				t.Errorf("%s, %s: rows differ by %.2g of the norm", l.name, query, e)
			}
		}
	}
}

// distance returns the norm of the difference of two matrices, relative to that of want.
func distance(got, want kernel.Matrix) float64 {
	if got.Rows != want.Rows || got.Cols != want.Cols {
		return math.Inf(1)
	}
	diff, norm := 0.0, 0.0
	for i := range want.Rows {
		g := kernel.Row(got, i)
		for j, v := range kernel.Row(want, i) {
			d := float64(g[j]) - float64(v)
			diff, norm = diff+float64(d*d), norm+float64(float64(v)*float64(v))
		}
	}
	return math.Sqrt(diff / norm)
}
