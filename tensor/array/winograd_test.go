package array_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/tensor/array"
)

// TestWinograd: a convolution by tiles is the convolution but for rounding, for all sizes and pads,
// dilations, several items, prepared weights or not, and with an epilogue, and does not depend on what is computed
// with it.
func TestWinograd(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for trial := range 200 {
		tile, in, out := 2+2*r.IntN(2), []int{1, 16, 17, 40}[r.IntN(4)], []int{3, 16, 33}[r.IntN(3)]
		w := array.Window{Dims: 2, Size: [array.MaxSpatial]int{3, 3}, Stride: [array.MaxSpatial]int{1, 1}, Dilation: [array.MaxSpatial]int{1, 1}}
		x, y := []int{1 + r.IntN(3), 1 + r.IntN(20), 1 + r.IntN(20), in}, []int{0, 0, 0, out}
		if trial%50 == 0 { // many rows of tiles
			x[1] = 60
		}
		y[0] = x[0]
		for d := range w.Dims {
			if trial%3 == 0 {
				w.Dilation[d] = 1 + r.IntN(4)
			}
			w.Before[d], w.After[d] = r.IntN(2*w.Dilation[d]+1), r.IntN(2*w.Dilation[d]+1)
			y[d+1] = w.OutputSize(d, x[d+1], false)
		}
		var ws array.Workspace
		ax, aw := randomArray(r, array.Float32, x...), randomArray(r, array.Float32, 3, 3, in, out)
		if trial%7 == 0 {
			ax = randomArray(r, array.Float32, x[0], x[1], in, x[2]).Transpose(0, 1, 3, 2)
		}
		want, got := array.New(array.Float32, y...), array.New(array.Float32, y...)
		p, args, kinds := randomEpilogue(r, array.Float32, y)
		if err := ws.ConvLast(want, ax, aw, nil, w, 1, array.NewEpilogue(p, kinds), args); err != nil {
			t.Fatal(err)
		}
		prepared := array.NewWinogradWeights(aw, tile, nil)
		if trial%2 == 0 {
			prepared = nil
		}
		if err := ws.Winograd(got, ax, aw, prepared, w, tile, array.NewEpilogue(p, kinds), args); err != nil {
			t.Fatal(err)
		}
		for i := range want.Len() {
			if d := math.Abs(got.Float(i) - want.Float(i)); d > 2e-4*(1+math.Abs(want.Float(i))) {
				t.Fatalf("%d: x %v, y %v, tiles of %d, %+v: element %d is %v, want %v", trial, x, y, tile, w, i, got.Float(i), want.Float(i))
			}
		}
		if x[0] == 1 || want.Len() == 0 {
			continue
		}
		// The last item alone.
		if err := ws.Winograd(got, ax, aw, prepared, w, tile, nil, nil); err != nil {
			t.Fatal(err)
		}
		item := got.Len() / y[0]
		alone := array.New(array.Float32, 1, y[1], y[2], out)
		last := array.New(array.Float32, 1, x[1], x[2], in)
		copy(array.Slice[float32](last), array.Slice[float32](ax.Clone())[ax.Len()-last.Len():])
		if err := ws.Winograd(alone, last, aw, prepared, w, tile, nil, nil); err != nil {
			t.Fatal(err)
		}
		for i, v := range array.Slice[float32](alone) {
			if v != array.Slice[float32](got)[got.Len()-item+i] {
				t.Fatalf("%d: x %v, y %v: element %d of an item depends on the items before", trial, x, y, i)
			}
		}
	}
}
