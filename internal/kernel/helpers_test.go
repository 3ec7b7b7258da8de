package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

var (
	nan = float32(math.NaN())
	inf = float32(math.Inf(1))
)

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// random returns a matrix of normal numbers whose rows have gaps, full of NaN, between them if gap
// > 0.
func random(r *rand.Rand, rows, cols, gap int) Matrix {
	m := Matrix{Rows: rows, Cols: cols, Stride: cols + gap, Data: make([]float32, rows*(cols+gap))}
	for i := range m.Data {
		m.Data[i] = nan
	}
	for i := range rows {
		for j := range cols {
			m.Data[i*m.Stride+j] = float32(r.NormFloat64())
		}
	}
	return m
}

// gapsIntact fails unless the gaps between the rows of m are NaN.
func gapsIntact(t *testing.T, m Matrix) {
	t.Helper()
	for i := range m.Rows {
		for _, v := range m.Data[i*m.Stride+m.Cols : (i+1)*m.Stride] {
			if v == v {
				t.Fatalf("the gap after row %d was written to", i)
			}
		}
	}
}

func sameBits(x, y float32) bool {
	return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
}

// sizes are shapes for tests of every kernel.
var sizes = []struct{ rows, cols, gap int }{
	{0, 5, 0}, {1, 1, 0}, {1, 7, 3}, {2, 16, 1}, {5, 33, 0}, {9, 64, 7},
}

// checkMap checks a function that maps elements to elements against want: with gaps, in place, with
// NaN and infinities.
func checkMap(t *testing.T, f func(dst, src Matrix), tolerance float64, want func(row []float64) []float64) {
	t.Helper()
	r := newRand()
	for _, s := range sizes {
		src := random(r, s.rows, s.cols, s.gap)
		dst := random(r, s.rows, s.cols, s.gap+2)
		f(dst, src)
		gapsIntact(t, dst)
		for i := range s.rows {
			x := make([]float64, s.cols)
			for j, v := range Row(src, i) {
				x[j] = float64(v)
			}
			for j, y := range want(x) {
				if got := float64(Row(dst, i)[j]); !(math.Abs(got-y) <= tolerance*(1+math.Abs(y))) {
					t.Fatalf("%d×%d: element (%d, %d) is %g, want %g", s.rows, s.cols, i, j, got, y)
				}
			}
		}
		f(src, src)
		for i := range s.rows {
			for j, v := range Row(src, i) {
				if !sameBits(v, Row(dst, i)[j]) {
					t.Fatalf("%d×%d: in place, element (%d, %d) is %g, not %g", s.rows, s.cols, i, j, v, Row(dst, i)[j])
				}
			}
		}
	}
	row := Matrix{Rows: 1, Cols: 3, Stride: 3, Data: []float32{1, nan, 2}}
	f(row, row)
	if row.Data[1] == row.Data[1] {
		t.Errorf("NaN became %g", row.Data[1])
	}
}

// each applies a function of elements to a row.
func each(f func(float64) float64) func([]float64) []float64 {
	return func(row []float64) []float64 {
		y := make([]float64, len(row))
		for j, v := range row {
			y[j] = f(v)
		}
		return y
	}
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s does not panic", what)
		}
	}()
	f()
}

// transposedWeights returns weights made of the transpose of W.
func transposedWeights(w Matrix) *Weights { return newWeights(currentSet(), w, true) }

// rows turns a function of vectors into one of matrices. rows2 does so for two arguments.
func rows(f func(dst, src []float32)) func(dst, src Matrix) {
	return func(dst, src Matrix) { MapRows(dst, src, f) }
}

func rows2(f func(dst, x, y []float32)) func(dst, x, y Matrix) {
	return func(dst, x, y Matrix) { mapRows2(dst, x, y, f) }
}

// softmax is SoftmaxVec for matrices, with a low floor.
var softmax = rows(func(dst, src []float32) { SoftmaxVec(dst, src, 1e-20) })
