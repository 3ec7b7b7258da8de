package view

import "math"

// A Sampler is a type of constants, or an op with parameters, that can show its numbers.
type Sampler interface {
	// Sample returns at most so many numbers, evenly spaced, and how many there are. data is that of
	// the constant; an op gets nil.
	Sample(data any, most int) (numbers []float64, of int)
}

// Limits of histograms.
const (
	fewWeights  = 32 // that are shown as they are
	mostWeights = 1 << 14
	weightBins  = 24
)

// A histogram counts the numbers of a constant, or the parameters of an op. Where there are
// many, it is that of some of them, evenly spaced.
type histogram struct {
	Count   int     `json:"count"`
	Sampled int     `json:"sampled,omitempty"` // if not all were looked at
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	Mean    float64 `json:"mean"`
	Zeros   int     `json:"zeros,omitempty"`
	Others  int     `json:"others,omitempty"` // NaN or infinite
	Bins    []int   `json:"bins"`             // of equal width, from Min to Max
}

// weightsOf returns the histogram of what a type or an op shows, or nil.
func weightsOf(of, data any) *histogram {
	s, ok := of.(Sampler)
	if !ok {
		return nil
	}
	numbers, count := s.Sample(data, mostWeights)
	if count < fewWeights || len(numbers) == 0 {
		return nil
	}
	w := &histogram{Count: count, Min: math.Inf(1), Max: math.Inf(-1), Bins: make([]int, weightBins)}
	if len(numbers) < count {
		w.Sampled = len(numbers)
	}
	sum, n := 0.0, 0
	for _, v := range numbers {
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			w.Others++
			continue
		case v == 0:
			w.Zeros++
		}
		w.Min, w.Max = min(w.Min, v), max(w.Max, v)
		sum += v
		n++
	}
	if n == 0 {
		return nil
	}
	w.Mean = sum / float64(n)
	width := w.Max - w.Min
	if math.IsInf(width, 0) || math.IsInf(w.Mean, 0) { // numbers at the ends of the range
		return nil
	}
	for _, v := range numbers {
		if v >= w.Min && v <= w.Max {
			i := 0
			if width > 0 {
				i = min(int((v-w.Min)/width*weightBins), weightBins-1)
			}
			w.Bins[i]++
		}
	}
	return w
}
