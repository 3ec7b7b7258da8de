package view_test

import (
	"testing"

	"github.com/nnopt/nnopt/tool/view"
)

// TestWeights: a constant of many numbers has a histogram, one of few has none.
func TestWeights(t *testing.T) {
	r := record(t, "+fast_run", "x: vector", "tanh(x)*arange(40) + 3").Recording
	found := map[string]*view.Weights{}
	for _, v := range r.Values {
		if v.Constant != "" {
			found[v.Constant] = v.Weights
		}
	}
	n := 0
	for text, w := range found {
		if w == nil {
			continue
		}
		n++
		sum := 0
		for _, b := range w.Bins {
			sum += b
		}
		if w.Count != 40 || w.Min != 0 || w.Max != 39 || w.Mean != 19.5 || w.Zeros != 1 || sum != 40 {
			t.Errorf("%s: %+v", text, w)
		}
	}
	if n == 0 {
		t.Errorf("%d histograms of %d constants", n, len(found))
	}
}
