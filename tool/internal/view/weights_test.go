package view_test

import "testing"

// TestWeights: a constant of many numbers has a histogram, one of few has none.
func TestWeights(t *testing.T) {
	r := record(t, "+fast_run", "x: vector", "tanh(x)*arange(40) + 3").Recording
	n, constants := 0, 0
	for _, v := range r.Values {
		if v.Constant != "" {
			constants++
		}
		w := v.Weights
		if w == nil {
			continue
		}
		n++
		sum := 0
		for _, b := range w.Bins {
			sum += b
		}
		if w.Count != 40 || w.Min != 0 || w.Max != 39 || w.Mean != 19.5 || w.Zeros != 1 || sum != 40 {
			t.Errorf("%s: %+v", v.Constant, w)
		}
	}
	if n == 0 {
		t.Errorf("%d histograms of %d constants", n, constants)
	}
}
