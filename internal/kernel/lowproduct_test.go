package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestLowProducts: products without a plan have the bits of those with one.
func TestLowProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(rows, cols int) Matrix {
		m := Matrix{Rows: rows, Cols: cols, Stride: cols + r.IntN(3)}
		m.Data = make([]float32, rows*m.Stride)
		for i := range m.Data {
			m.Data[i] = float32(r.NormFloat64())
		}
		return m
	}
	low := 0
	for range 400 {
		rows, cols, steps := 1+r.IntN(maxTileRows+1), 1+r.IntN(130), 1+r.IntN(200)
		w := NewWeights(draw(cols, steps))
		if r.IntN(2) == 0 {
			(*Threads)(nil).SetTransposed(w, draw(steps, cols))
		}
		x, y := draw(rows, steps), draw(rows, cols)
		ep := Epilogue{ReLU: r.IntN(2) == 0, LastReLU: r.IntN(2) == 0, BiasFirst: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			ep.Bias = draw(1, cols).Data[:cols]
		}
		if r.IntN(2) == 0 {
			ep.Scale, ep.Offset = draw(1, cols).Data[:cols], draw(1, cols).Data[:cols]
		}
		if r.IntN(2) == 0 {
			ep.Alpha, ep.Residual = 0.5, draw(rows, cols)
		}
		z := Matrix{Rows: rows, Cols: cols, Stride: y.Stride, Data: append([]float32(nil), y.Data...)}
		if w.mulLow(&x, &ep, &y) {
			low++
			MulSegments([]Segment{{X: x, W: w}}, ep, z)
		}
		for i := range y.Data {
			if math.Float32bits(y.Data[i]) != math.Float32bits(z.Data[i]) {
				t.Fatalf("%d×%d, %d steps, element %d: %v, want %v", rows, cols, steps, i, y.Data[i], z.Data[i])
			}
		}
	}
	if currentSet() != blasSet && low < 200 {
		t.Errorf("%d of 400 products are low", low)
	}
}

// TestLowFactors: products of a few rows and factors that are read where they are have the bits of those with
// packed ones.
func TestLowFactors(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	draw := func(rows, cols int) Matrix {
		m := Matrix{Rows: rows, Cols: cols, Stride: cols + r.IntN(3)}
		m.Data = make([]float32, rows*m.Stride)
		for i := range m.Data {
			m.Data[i] = float32(r.NormFloat64())
		}
		return m
	}
	for range 400 {
		rows, cols, steps := 1+r.IntN(3), 1+r.IntN(200), 1+r.IntN(200)
		if r.IntN(2) == 0 {
			rows, steps = 1, 16*(1+r.IntN(9))
		}
		a, b, c := draw(rows, steps), draw(cols, steps), draw(rows, cols)
		tall := r.IntN(2) == 0
		if tall {
			b = draw(steps, cols)
			MulNN(1, a, b, 0, c)
		} else {
			(*Threads)(nil).MulNT(1, a, b, 0, c)
		}
		if currentSet() == blasSet {
			continue
		}
		// With a second tile of rows there are plans and packed factors.
		many, d := draw(maxTileRows+1, steps), draw(maxTileRows+1, cols)
		for i := range rows {
			copy(Row(many, i), Row(a, i))
		}
		mulSegments(getWorkspace(), []Segment{{X: many, W: newWeights(currentSet(), b, tall)}}, &Epilogue{}, d)
		for i := range rows {
			for j, v := range Row(c, i) {
				if want := Row(d, i)[j]; math.Float32bits(v) != math.Float32bits(want) {
					t.Fatalf("%d×%d, %d steps, tall %v: element %d, %d is %v, want %v", rows, cols, steps, tall, i, j, v, want)
				}
			}
		}
	}
}
