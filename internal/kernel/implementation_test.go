package kernel

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"
)

func TestBLAS(t *testing.T) {
	r := newRand()
	for _, s := range []struct{ m, n, k int }{{0, 2, 3}, {2, 0, 3}, {2, 3, 0}, {1, 1, 1}, {7, 70, 5}, {70, 3, 600}, {13, 14, 15}} {
		for _, tA := range []blas.Transpose{blas.NoTrans, blas.Trans} {
			for _, tB := range []blas.Transpose{blas.NoTrans, blas.Trans} {
				for _, f := range []struct{ alpha, beta float32 }{{1, 0}, {0, 2}, {-0.5, 1}, {2, -3}} {
					a, b, c := random(r, s.m, s.k, 1), random(r, s.k, s.n, 2), random(r, s.m, s.n, 3)
					if tA == blas.Trans {
						a = random(r, s.k, s.m, 1)
					}
					if tB == blas.Trans {
						b = random(r, s.n, s.k, 2)
					}
					want := Matrix{Rows: c.Rows, Cols: c.Cols, Stride: c.Stride, Data: append([]float32(nil), c.Data...)}
					gemm := func(impl blas.Float32, c Matrix) {
						impl.Sgemm(tA, tB, s.m, s.n, s.k, f.alpha, a.Data, a.Stride, b.Data, b.Stride, f.beta, c.Data, c.Stride)
					}
					gemm(BLAS{}, c)
					gemm(gonum.Implementation{}, want)
					gapsIntact(t, c)
					for i := range s.m {
						for j, w := range Row(want, i) {
							if v := Row(c, i)[j]; !(math.Abs(float64(v-w)) <= 1e-4*(1+math.Abs(float64(w)))) {
								t.Fatalf("%+v %c%c %+v: element (%d, %d) is %v, want %v", s, tA, tB, f, i, j, v, w)
							}
						}
					}
				}
			}
		}
	}
	mustPanic(t, "a stride that is too short", func() {
		BLAS{}.Sgemm(blas.NoTrans, blas.NoTrans, 2, 2, 2, 1, make([]float32, 4), 1, make([]float32, 4), 2, 0, make([]float32, 4), 2)
	})
	mustPanic(t, "data that is too short", func() {
		BLAS{}.Sgemm(blas.NoTrans, blas.NoTrans, 2, 2, 2, 1, make([]float32, 4), 2, make([]float32, 3), 2, 0, make([]float32, 4), 2)
	})
	mustPanic(t, "an unknown transpose", func() {
		BLAS{}.Sgemm(blas.NoTrans, 'x', 1, 1, 1, 1, make([]float32, 1), 1, make([]float32, 1), 1, 0, make([]float32, 1), 1)
	})
}

// counted is a BLAS that counts its products.
type counted struct {
	gonum.Implementation
	calls *int
}

func (c counted) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, y []float32, ldy int) {
	*c.calls++
	c.Implementation.Sgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, y, ldy)
}

// Products use the BLAS of the user, also with weights that were packed before, and with the same
// epilogue.
func TestUse(t *testing.T) {
	defer blas32.Use(blas32.Implementation())
	r := newRand()
	const m, n, k = 9, 21, 30
	x, w, old := random(r, m, k, 1), random(r, n, k, 0), random(r, m, n, 0)
	xt, wt := random(r, k, m, 0), random(r, k, n, 3)
	bias, scale, offset := random(r, 1, n, 0).Data, random(r, 1, n, 0).Data, random(r, 1, n, 0).Data
	broadcast := Matrix{Rows: m, Cols: k, Stride: 0, Data: random(r, 1, k, 0).Data}
	before, tall := NewWeights(w), transposedWeights(wt)
	products := map[string]func(y Matrix){
		"MulNT": func(y Matrix) { (*Threads)(nil).MulNT(1, x, w, 1, y) },
		"MulNN": func(y Matrix) { MulNN(1, x, wt, 0, y) },
		"MulTN": func(y Matrix) { (*Threads)(nil).MulTN(1, xt, wt, 0, y) },
		"Mul":   func(y Matrix) { Mul(x, w, Epilogue{ReLU: true, Bias: bias}, y) },
	}
	for bits := range 32 {
		ep := Epilogue{Accumulate: bits&1 != 0, BiasFirst: bits&2 != 0, ReLU: bits&4 != 0, Bias: bias, Scale: scale, Offset: offset}
		products[fmt.Sprintf("segments %05b", bits)] = func(y Matrix) {
			if bits&8 != 0 {
				ep.Alpha, ep.Residual = 0.66, y
			}
			MulSegments([]Segment{{X: x, W: before, Continue: bits&16 != 0}, {X: broadcast, W: before}, {X: x, W: tall}}, ep, y)
		}
	}
	var calls int
	others := counted{calls: &calls}
	for name, f := range products {
		blas32.Use(BLAS{})
		want := Clone(old)
		f(want)
		if calls != 0 {
			t.Fatalf("%s: the other BLAS is called", name)
		}
		blas32.Use(others)
		y := Clone(old)
		f(y)
		if calls == 0 {
			t.Errorf("%s does not use the user's BLAS", name)
		}
		calls = 0
		for i, v := range y.Data {
			if math.Abs(float64(v-want.Data[i])) > 1e-4*(1+math.Abs(float64(v))) {
				t.Fatalf("%s: element %d is %v, with our BLAS %v", name, i, v, want.Data[i])
			}
		}
	}
	during := NewWeights(w)
	blas32.Use(gonum.Implementation{})
	y, want := New(m, n), New(m, n)
	during.Mul(x, Epilogue{}, y)
	NewWeights(w).Mul(x, Epilogue{}, want)
	equalBits(t, "weights prepared under another BLAS", y, want)
	if tall.w.Rows != k {
		t.Error("transposed weights have forgotten their matrix")
	}
}
