package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Products of integers are exact on all sets, also with the largest ones in sums of many terms.
func TestMulIntegers(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for trial := range 60 {
		rows, n, k := r.IntN(6), 1+r.IntN(40), r.IntN(80)
		if trial%10 == 0 {
			k = 1500 // several parts
		}
		signed, zeros := trial%2 == 0, make([]int, n)
		for j := range zeros {
			if zeros[j] = 128; trial%3 == 0 {
				zeros[j] = r.IntN(256)
			}
		}
		codes, w := make([]byte, rows*k), make([]int16, n*k)
		for i := range codes {
			codes[i] = byte(r.IntN(256))
			if trial%20 == 0 {
				codes[i] = 255
			}
		}
		for i := range w {
			w[i] = int16(r.IntN(256) - zeros[i/k])
			if trial%20 == 0 {
				w[i] = int16(-zeros[i/k])
			}
		}
		zero := r.IntN(256)
		value := func(c byte) int64 { return int64(c) - int64(zero) }
		if signed {
			zero -= 128
			value = func(c byte) int64 { return int64(int8(c)) - int64(zero) }
		}
		for _, set := range quantSets {
			weights := newIntegerWeights(set, w, n, k)
			var q QuantizedRows
			q.setCodes(set, codes, signed, zero, rows, k)
			y := make([]int32, rows*n)
			MulIntegers(y, &q, weights, New(rows, n), nil)
			want64 := make([]int64, rows*n)
			for i := range rows {
				for j := range n {
					want := int64(0)
					for l := range k {
						want += value(codes[i*k+l]) * int64(w[j*k+l])
					}
					if got := y[i*n+j]; got != int32(want) {
						t.Fatalf("%v: %d×%d×%d, trial %d: element %d,%d is %d, want %d", set, rows, n, k, trial, i, j, got, want)
					}
					want64[i*n+j] = want
				}
			}
			checkExact(t, &q, weights, want64)
		}
	}
}

// checkExact checks the product as float32s, with a scale and an offset for each column.
func checkExact(t *testing.T, q *QuantizedRows, w *IntegerWeights, want []int64) {
	t.Helper()
	n, k := w.Shape()
	if !w.Exact() {
		if k < 500 {
			t.Fatalf("%d terms are not exact", k)
		}
		return
	}
	ep := Epilogue{Scale: make([]float32, n), Offset: make([]float32, n)}
	for j := range n {
		ep.Scale[j], ep.Offset[j] = 1/float32(j+3), float32(j)-0.3
	}
	for _, bias := range []float32{0, 0.3} {
		if bias != 0 {
			ep.Bias = slices.Repeat([]float32{bias}, n)
		}
		y := New(q.Rows(), n)
		MulExact(q, w, ep, y)
		for i, v := range y.Data {
			if want := float32((float32(want[i])+bias)*ep.Scale[i%n]) + ep.Offset[i%n]; v != want {
				t.Fatalf("%v: %d×%d×%d, bias %v: element %d is %v, want %v", q.set, q.Rows(), n, k, bias, i, v, want)
			}
		}
	}
}

// Patches of codes have codes for zero.
func TestPatchesOfCodes(t *testing.T) {
	for _, set := range quantSets {
		for _, signed := range []bool{false, true} {
			w := newIntegerWeights(set, []int16{3, -5, 7, 1}, 1, 4)
			var q, p QuantizedRows
			q.setCodes(set, []byte{1, 2, 3, 4, 5}, signed, 2, 1, 5)
			p.SetPatches(&q, 1, 4)
			p.SetZeros(0, 0, 1)
			p.SetRun(0, 1, &q, 0, 2, 3)
			var y [1]int32
			MulIntegers(y[:], &p, w, New(1, 1), nil)
			if want := int32(1*-5 + 2*7 + 3*1); y[0] != want {
				t.Errorf("%v: %d, want %d", set, y[0], want)
			}
		}
	}
}
