package array_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/tensor/array"
)

// randomLayout returns an array with random elements, whose memory has its dimensions in another
// order, possibly reversed or with gaps.
func randomLayout(rng *rand.Rand, dtype array.DType, shape ...int) *array.Array {
	order := rng.Perm(len(shape))
	back := make([]int, len(shape))
	memory := make([]int, len(shape))
	ranges := make([]array.Range, len(shape))
	for i, d := range order {
		n := shape[d]
		back[d] = i
		step := 1 + rng.IntN(2)
		memory[i] = n * step
		ranges[i] = array.Range{Start: 0, Step: step, Count: n}
		if rng.IntN(3) == 0 {
			ranges[i] = array.Range{Start: max(0, n*step-1), Step: -step, Count: n}
		}
	}
	a := array.New(dtype, memory...)
	for i := range a.Len() {
		a.SetFloat(i, math.Round(float64(20*rng.Float64()))-10+rng.Float64())
	}
	v := new(array.Array)
	a.RangeTo(v, ranges...)
	return v.Transpose(back...)
}

// TestBatchMatMul compares each product with that of MatMul, bit for bit, for all types, layouts
// and ways of broadcasting.
func TestBatchMatMul(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var ws array.Workspace
	for _, dtype := range []array.DType{array.Int64, array.Float32, array.Float64} {
		for try := range 300 {
			m, k, n := rng.IntN(6), rng.IntN(40), rng.IntN(30)
			batch := []int{1 + rng.IntN(3), 1 + rng.IntN(3)}[:1+try%2]
			broadcast := func() []int {
				shape := append([]int{}, batch...)
				for d := range shape {
					if rng.IntN(3) == 0 {
						shape[d] = 1
					}
				}
				return shape
			}
			shapeA, shapeB := broadcast(), broadcast()
			for d := range batch {
				batch[d] = max(shapeA[d], shapeB[d])
			}
			a, b := randomLayout(rng, dtype, append(shapeA, m, k)...), randomLayout(rng, dtype, append(shapeB, k, n)...)
			if try%4 == 0 {
				a = a.Clone()
			}
			c := array.Full(dtype, math.NaN(), append(batch, m, n)...)
			if err := ws.BatchMatMul(c, a, b, nil, nil, nil); err != nil {
				t.Fatal(err)
			}
			fullA, err := a.BroadcastTo(append(batch, m, k)...)
			if err != nil {
				t.Fatal(err)
			}
			fullB, err := b.BroadcastTo(append(batch, k, n)...)
			if err != nil {
				t.Fatal(err)
			}
			items := c.Len() / max(1, m*n)
			for item := range items {
				ranges := make([]array.Range, len(batch))
				for d, at := len(batch)-1, item; d >= 0; d-- {
					ranges[d] = array.Range{Start: at % batch[d], Drop: true}
					at /= batch[d]
				}
				part := func(x *array.Array, rows, cols int) *array.Array {
					v := new(array.Array)
					x.RangeTo(v, append(ranges[:len(batch):len(batch)], array.Range{0, 1, rows, false}, array.Range{0, 1, cols, false})...)
					return v
				}
				want := array.New(dtype, m, n)
				if err := ws.MatMul(want, part(fullA, m, k), part(fullB, k, n)); err != nil {
					t.Fatal(err)
				}
				if !array.Equal(part(c, m, n).Clone(), want) {
					t.Fatalf("%v %v·%v, item %d: %v, want %v", dtype, a.Shape(), b.Shape(), item, part(c, m, n), want)
				}
			}
		}
	}
}

// TestBatchMatMulAllocates: what a product allocates does not depend on the number of items.
func TestBatchMatMulAllocates(t *testing.T) {
	if raceDetector {
		t.Skip("under the race detector, pools drop values at random")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var ws array.Workspace
	for _, dtype := range []array.DType{array.Float32, array.Float64} {
		for range 8 {
			c, a, b := array.New(dtype, 500, 4, 5), randomLayout(rng, dtype, 500, 4, 6), randomLayout(rng, dtype, 500, 6, 5)
			f := func() {
				if err := ws.BatchMatMul(c, a, b, nil, nil, nil); err != nil {
					t.Fatal(err)
				}
			}
			f()
			if n := alloctest.Least(4000, f); n > 4000 {
				t.Errorf("%v: %d bytes for 500 products; contiguous factors: %t, %t", dtype, n, a.Contiguous(), b.Contiguous())
			}
		}
	}
}
