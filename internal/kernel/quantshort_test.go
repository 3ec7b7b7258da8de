package kernel

import (
	"math/rand/v2"
	"testing"
)

// Sums of two or four products as words are exact, with codes and weights at the bounds and beyond.
func TestShortProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for trial := range 200 {
		rows, n, k := 1+r.IntN(20), 49+r.IntN(40), 32+r.IntN(100)
		// The least of 255 in every third row has tiles of both kinds.
		spread := []int{0, 1, 64, 128, 170, 255}[r.IntN(6)]
		codes, w := make([]byte, rows*k), make([]int16, n*k)
		for i := range codes {
			codes[i] = byte(200 - spread + spread*r.IntN(2))
			if spread > 200 || trial%3 == 0 && i/k%9 == 0 {
				codes[i] = byte(255 * r.IntN(2))
			}
		}
		// Four products of 32 are a word with any codes, and two of 64. With 128 and -128 in few places a
		// kernel finds all three kinds of terms in a strip.
		most := []int{32, 33, 48, 64, 65, 100, 128}[r.IntN(7)]
		for i := range w {
			w[i] = int16([]int{-most, most - 1, most / 2}[r.IntN(3)])
			if i%k < 8 && trial%2 == 0 {
				w[i] = int16([]int{-128, 127}[r.IntN(2)])
			}
		}
		zero := r.IntN(256)
		for _, set := range quantSets {
			weights := newIntegerWeights(set, w, n, k)
			var q QuantizedRows
			q.setCodes(set, codes, false, zero, rows, k)
			y := make([]int32, rows*n)
			MulIntegers(y, &q, weights, New(rows, n), nil)
			for i := range rows {
				for j := range n {
					want := int32(0)
					for l := range k {
						want += (int32(codes[i*k+l]) - int32(zero)) * int32(w[j*k+l])
					}
					if got := y[i*n+j]; got != want {
						t.Fatalf("%v: %d×%d×%d, trial %d: element %d,%d is %d, want %d", set, rows, n, k, trial, i, j, got, want)
					}
				}
			}
		}
	}
}
