package kernel

import (
	"fmt"
	"math"
	"testing"
)

// TestQuantizable: what can be quantized is known without doing it.
func TestQuantizable(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, p := range []Precision{Int8, Int16} {
		for _, c := range []struct {
			k     int
			value float32 // of one element of the third column; others are 0.5
			want  [2]bool // int8, int16
		}{
			{40, 0, [2]bool{true, true}},
			{40, -0.5, [2]bool{true, true}},
			{40, nan, [2]bool{}},
			{40, -inf, [2]bool{}},
			{40, 1 << 63, [2]bool{}},
			{3000, 0.5, [2]bool{true, false}},
			{90000, 0.5, [2]bool{}},
			{0, 0, [2]bool{true, true}},
		} {
			t.Run(fmt.Sprint(p, " ", c.k, " ", c.value), func(t *testing.T) {
				const n = 5
				w := Matrix{Rows: n, Cols: c.k, Stride: c.k, Data: make([]float32, n*c.k)}
				turned := Matrix{Rows: c.k, Cols: n, Stride: n, Data: make([]float32, n*c.k)}
				for i := range n {
					for l := range c.k {
						x := float32(0.5)
						if i == 2 && l == c.k-1 {
							x = c.value
						}
						Row(w, i)[l], Row(turned, l)[i] = x, x
					}
				}
				_, ok := NewQuantizedWeights(p, w)
				if got := Quantizable(p, turned); got != ok || got != c.want[p-Int8] {
					t.Errorf("it is %t, and %t of the transpose, and should be %t", ok, got, c.want[p-Int8])
				}
			})
		}
	}
}
