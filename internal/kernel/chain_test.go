package kernel

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/blas/blas32"

	"github.com/nnopt/nnopt/internal/longtest"
)

// Long sums don't outgrow their terms: NumPy's errors for these vectors are 5e-4 and 7.5e-3.
func TestLongSumsAreAccurate(t *testing.T) {
	for _, k := range []int{1e6, 1e7}[:longtest.Of(1, 2)] {
		x := New(1, k)
		Fill(x, 0.1)
		column, y := Matrix{Rows: k, Cols: 1, Stride: 1, Data: x.Data}, New(1, 1)
		for name, product := range map[string]func() float32{
			"MulNT":   func() float32 { (*Threads)(nil).MulNT(1, x, x, 0, y); return y.Data[0] },
			"MulNN":   func() float32 { MulNN(1, x, column, 0, y); return y.Data[0] },
			"MulTN":   func() float32 { (*Threads)(nil).MulTN(1, column, column, 0, y); return y.Data[0] },
			"Weights": func() float32 { NewWeights(x).Mul(x, Epilogue{}, y); return y.Data[0] },
			"tall":    func() float32 { transposedWeights(column).Mul(x, Epilogue{}, y); return y.Data[0] },
			"Dot":     func() float32 { return Dot(x.Data, x.Data) },
			"Sum":     func() float32 { return Sum(x.Data) / 10 },
		} {
			want := float64(k) * 0.01
			if e := math.Abs(float64(product())/want - 1); !(e < 5e-4) {
				t.Errorf("%s of %d terms: relative error %.2g", name, k, e)
			}
		}
	}
}

// A long sum has the same bits with all kernels, alone and in a batch, and with factors of all
// layouts. Its chains are those of products that are added one after the other.
func TestLongSums(t *testing.T) {
	defer func(old kernelSet) { bestSet = old }(bestSet)
	r := newRand()
	const m = 7
	for _, k := range []int{maxTerms + 3, maxTerms, maxTerms + 40, 2*maxTerms + 777}[:longtest.Of(1, 4)] {
		for _, n := range []int{1, 20, 21, 70} {
			x, w := random(r, m, k, 1), random(r, n, k, 2)
			xt, wt := transposed(x), transposed(w)
			bestSet = ownSets()[0]
			want, chains := New(m, n), New(m, n)
			NewWeights(w).Mul(x, Epilogue{}, want)
			for l := 0; l < k; l += maxTerms {
				s := min(maxTerms, k-l)
				NewWeights(Cols(w, l, s)).Mul(Cols(x, l, s), Epilogue{Accumulate: l > 0}, chains)
			}
			equalBits(t, fmt.Sprintf("chains of %d terms, %d columns", k, n), chains, want)
			for _, bestSet = range ownSets() {
				for name, product := range map[string]func(y Matrix){
					"Weights": func(y Matrix) { NewWeights(w).Mul(x, Epilogue{}, y) },
					"Mul":     func(y Matrix) { Mul(x, w, Epilogue{}, y) },
					"MulNT":   func(y Matrix) { (*Threads)(nil).MulNT(1, x, w, 0, y) },
					"rows": func(y Matrix) {
						for i := range m {
							(*Threads)(nil).MulNT(1, Rows(x, i, 1), w, 0, Rows(y, i, 1))
						}
					},
					"segments": func(y Matrix) {
						MulSegments([]Segment{{X: Cols(x, 0, 5), W: NewWeights(Cols(w, 0, 5))}, {X: x, W: NewWeights(w)}, {X: x, W: NewWeights(w)}}, Epilogue{}, y)
						once := New(m, n)
						MulSegments([]Segment{{X: Cols(x, 0, 5), W: NewWeights(Cols(w, 0, 5))}}, Epilogue{}, once)
						for range 2 {
							for l := 0; l < k; l += maxTerms {
								s := min(maxTerms, k-l)
								NewWeights(Cols(w, l, s)).Mul(Cols(x, l, s), Epilogue{Accumulate: true}, once)
							}
						}
						equalBits(t, "segments with long sums", y, once)
						Copy(y, want)
					},
				} {
					y := New(m, n)
					product(y)
					equalBits(t, fmt.Sprintf("%s, %s of %d terms, %d columns", bestSet, name, k, n), y, want)
				}
				// A tall right-hand factor has no lanes: its sums are chains.
				tall := New(m, n)
				transposedWeights(wt).Mul(x, Epilogue{}, tall)
				for name, product := range map[string]func(y Matrix){
					"MulNN": func(y Matrix) { MulNN(1, x, wt, 0, y) },
					"MulTN": func(y Matrix) { (*Threads)(nil).MulTN(1, xt, wt, 0, y) },
				} {
					y := New(m, n)
					product(y)
					equalBits(t, fmt.Sprintf("%s, %s of %d terms, %d columns", bestSet, name, k, n), y, tall)
				}
			}
		}
	}
}

// A foreign BLAS gets long products whole.
func TestLongProductsOfForeignBLAS(t *testing.T) {
	defer blas32.Use(blas32.Implementation())
	var calls int
	blas32.Use(counted{calls: &calls})
	x, y := New(2, 3*maxTerms), New(2, 2)
	Fill(x, 1)
	(*Threads)(nil).MulNT(1, x, x, 0, y)
	if calls != 1 || y.Data[3] != 3*maxTerms {
		t.Errorf("%d calls, a sum of %v", calls, y.Data[3])
	}
}

// A padded tail of lanes doesn't meet the elements of W that follow.
func TestLongLanesKeepInfinitiesApart(t *testing.T) {
	x, w, y := New(1, maxTerms+40), New(1, maxTerms+40), New(1, 1)
	Fill(x, 1)
	Fill(w, 1)
	w.Data[maxTerms] = float32(math.Inf(1))
	NewWeights(w).Mul(x, Epilogue{}, y)
	if !math.IsInf(float64(y.Data[0]), 1) {
		t.Errorf("the sum is %v", y.Data[0])
	}
}
