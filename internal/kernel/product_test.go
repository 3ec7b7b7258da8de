package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
)

// reference computes alpha·op(a)·op(b) + beta·c in double precision, and the sum of the absolute
// values of the terms.
func reference(alpha float32, a, b Matrix, ta, tb bool, beta float32, c Matrix) (want, scale []float64) {
	at := func(m Matrix, t bool, i, j int) float64 {
		if t {
			i, j = j, i
		}
		return float64(m.Data[i*m.Stride+j])
	}
	k := a.Cols
	if ta {
		k = a.Rows
	}
	for i := range c.Rows {
		for j := range c.Cols {
			sum, abs := 0.0, 1e-30
			if beta != 0 {
				sum = float64(beta) * float64(Row(c, i)[j])
				abs = math.Abs(sum)
			}
			for l := range k {
				p := float64(alpha) * at(a, ta, i, l) * at(b, tb, l, j)
				sum += p
				abs += math.Abs(p)
			}
			want, scale = append(want, sum), append(scale, abs)
		}
	}
	return want, scale
}

func TestProducts(t *testing.T) {
	r := newRand()
	products := []struct {
		name   string
		f      func(alpha float32, a, b Matrix, beta float32, c Matrix)
		ta, tb bool
	}{{"NT", (*Threads)(nil).MulNT, false, true}, {"NN", MulNN, false, false}, {"TN", (*Threads)(nil).MulTN, true, false}}
	for _, p := range products {
		for _, s := range []struct{ m, n, k int }{
			{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {1, 1, 1}, {5, 7, 3}, {64, 65, 10}, {70, 200, 33}, {9, 12, 700}, {130, 5, 65},
		} {
			for _, f := range []struct{ alpha, beta float32 }{{1, 0}, {1, 1}, {-0.5, 2}} {
				t.Run(fmt.Sprintf("%s/%dx%dx%d/%g,%g", p.name, s.m, s.n, s.k, f.alpha, f.beta), func(t *testing.T) {
					a, b := random(r, s.m, s.k, 3), random(r, s.k, s.n, 1)
					if p.ta {
						a = random(r, s.k, s.m, 3)
					}
					if p.tb {
						b = random(r, s.n, s.k, 1)
					}
					c := random(r, s.m, s.n, 2)
					if f.beta == 0 {
						Fill(c, nan) // old contents must not matter
					}
					want, scale := reference(f.alpha, a, b, p.ta, p.tb, f.beta, c)
					p.f(f.alpha, a, b, f.beta, c)
					gapsIntact(t, c)
					for i := range s.m {
						for j, v := range Row(c, i) {
							k := i*s.n + j
							if d := math.Abs(float64(v) - want[k]); !(d <= 1e-5*scale[k]) {
								t.Fatalf("element (%d, %d) is %g, want %g", i, j, v, want[k])
							}
						}
					}
				})
			}
		}
	}
	mustPanic(t, "a product of matrices that do not fit", func() { (*Threads)(nil).MulNT(1, New(2, 3), New(4, 5), 0, New(2, 4)) })
	mustPanic(t, "a product of matrices that do not fit", func() { MulNN(1, New(2, 3), New(4, 5), 0, New(2, 5)) })
	mustPanic(t, "a product of matrices that do not fit", func() { (*Threads)(nil).MulTN(1, New(2, 3), New(4, 5), 0, New(3, 5)) })
}

// NaN and infinities propagate, also if the other factor is zero.
func TestProductsKeepNaN(t *testing.T) {
	for _, bad := range []float32{nan, inf} {
		for _, rows := range []int{1, 20} {
			a, b, c := New(rows, 3), New(3, 10), New(rows, 10)
			Row(b, 1)[4] = bad
			MulNN(1, a, b, 0, c)
			if v := Row(c, rows-1)[4]; v == v {
				t.Errorf("NN with %d rows: 0·%g = %g", rows, bad, v)
			}
			bt, d := New(10, 3), New(rows, 10)
			Row(bt, 4)[1] = bad
			(*Threads)(nil).MulNT(1, a, bt, 0, d)
			if v := Row(d, rows-1)[4]; v == v {
				t.Errorf("NT with %d rows: 0·%g = %g", rows, bad, v)
			}
			at, e := New(3, rows), New(rows, 10)
			(*Threads)(nil).MulTN(1, at, b, 0, e)
			if v := Row(e, rows-1)[4]; v == v {
				t.Errorf("TN with %d rows: 0·%g = %g", rows, bad, v)
			}
		}
	}
}

// The result of a row doesn't depend on the number of rows.
func TestProductsRowByRow(t *testing.T) {
	r := newRand()
	for _, s := range []struct{ m, n, k int }{{150, 300, 200}, {65, 64, 64}, {8, 500, 1000}} {
		a, w := random(r, s.m, s.k, 0), random(r, s.n, s.k, 0)
		all := New(s.m, s.n)
		(*Threads)(nil).MulNT(1, a, w, 0, all)
		for _, part := range [][2]int{{0, 1}, {s.m - 1, 1}, {3, 5}} {
			c := New(part[1], s.n)
			(*Threads)(nil).MulNT(1, Rows(a, part[0], part[1]), w, 0, c)
			if !slices.Equal(c.Data, Rows(all, part[0], part[1]).Data) {
				t.Errorf("%d×%d×%d: rows %v alone give other bits", s.m, s.n, s.k, part)
			}
		}
	}
}

func TestMulEpilogue(t *testing.T) {
	r := newRand()
	const m, n, k = 6, 9, 5
	x, w := random(r, m, k, 2), random(r, n, k, 0)
	old, residual := random(r, m, n, 1), random(r, m, n, 3)
	bias, scale, offset := random(r, 1, n, 0).Data, random(r, 1, n, 0).Data, random(r, 1, n, 0).Data
	for bits := range 32 {
		var ep Epilogue
		ep.Accumulate, ep.ReLU = bits&1 != 0, bits&2 != 0
		if bits&4 != 0 {
			ep.Bias = bias
		}
		if bits&8 != 0 {
			ep.Scale, ep.Offset = scale, offset
		}
		if bits&16 != 0 {
			ep.Alpha, ep.Residual = 0.66, residual
		}
		for name, mul := range map[string]func(y Matrix){
			"Mul":         func(y Matrix) { Mul(x, w, ep, y) },
			"Weights.Mul": func(y Matrix) { NewWeights(w).Mul(x, ep, y) },
		} {
			y := Clone(old)
			mul(y)
			for i := range m {
				for j := range n {
					v := float64(0)
					for l := range k {
						v += float64(Row(x, i)[l]) * float64(Row(w, j)[l])
					}
					if ep.Accumulate {
						v += float64(Row(old, i)[j])
					}
					if ep.Bias != nil {
						v += float64(bias[j])
					}
					if ep.ReLU {
						v = max(v, 0)
					}
					if ep.Scale != nil {
						v = v*float64(scale[j]) + float64(offset[j])
					}
					if ep.Alpha != 0 {
						v += float64(ep.Alpha) * float64(Row(residual, i)[j])
					}
					if got := float64(Row(y, i)[j]); math.Abs(got-v) > 1e-5*(1+math.Abs(v)) {
						t.Fatalf("%s %+v: element (%d, %d) is %g, want %g", name, ep, i, j, got, v)
					}
				}
			}
		}
	}
	if got := NewWeights(w).w; !Same(got, w) {
		t.Error("the weights have forgotten their matrix")
	}
}

func BenchmarkMulNT(b *testing.B) {
	r := newRand()
	for _, s := range []struct{ m, n, k int }{{1, 512, 512}, {150, 160, 1536}, {150, 1536, 160}} {
		b.Run(fmt.Sprintf("%dx%dx%d", s.m, s.n, s.k), func(b *testing.B) {
			x, w, y := random(r, s.m, s.k, 0), random(r, s.n, s.k, 0), New(s.m, s.n)
			for b.Loop() {
				(*Threads)(nil).MulNT(1, x, w, 0, y)
			}
			b.ReportMetric(2*float64(s.m)*float64(s.n)*float64(s.k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

// Products of tall factors are chains, whichever factor is transposed, read in place or packed.
// They access no other memory.
func TestTallFactors(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, s := range []struct{ m, n, k int }{
		{13, 79, 40}, {64, 65, 70}, {5, 200, 1030}, {200, 5, 130}, {130, 5, 65}, {7, 128, 1024}, {48, 7, 1025}, {6, 512, 66}, {3, 1029, 66},
		{130, 1024, 66}, {300, 900, 220},
	}[:longtest.Of(9, 11)] {
		a, b, sums := guarded(t, r, s.k, s.m, s.n%3, false), guarded(t, r, s.k, s.n, s.m%2, false), New(s.m, s.n)
		for i := range s.m {
			for j := range s.n {
				sum := float32(0)
				for l := range s.k {
					sum = fma32(Row(a, l)[i], Row(b, l)[j], sum)
				}
				Row(sums, i)[j] = sum
			}
		}
		for _, f := range []struct{ alpha, beta float32 }{{1, 0}, {1, 1}, {-0.3, 1}, {1, 0.7}} {
			for _, set := range ownSets() {
				c := guarded(t, r, s.m, s.n, 1, false)
				want := Clone(c)
				for i := range s.m {
					for j, v := range Row(want, i) {
						sum := float32(f.alpha * Row(sums, i)[j])
						if f.beta != 0 {
							sum += float32(f.beta * v)
						}
						Row(want, i)[j] = sum
					}
				}
				(&factors{a: a, b: b, aTall: true, bTall: true}).mul(set, f.alpha, f.beta, c)
				equalBits(t, fmt.Sprintf("%v, %v, %v", set, s, f), c, want)
			}
		}
	}
}
