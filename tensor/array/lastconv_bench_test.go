package array_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nnopt/nnopt/tensor/array"
)

// BenchmarkConvLast measures convolutions, as BenchmarkMul of package kernel does products.
func BenchmarkConvLast(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ size, in, out, window, stride, tile int }{
		{56, 64, 64, 3, 1, 0}, {28, 128, 128, 3, 1, 0}, {14, 256, 256, 3, 1, 0}, {56, 128, 128, 3, 2, 0}, {28, 256, 256, 3, 2, 0}, {112, 64, 64, 3, 2, 0},
		{56, 64, 256, 1, 1, 0}, {56, 256, 64, 1, 1, 0}, {28, 128, 128, 1, 1, 0}, {14, 256, 256, 1, 1, 0}, {56, 256, 128, 1, 2, 0}, {28, 256, 256, 1, 2, 0},
		{28, 512, 512, 3, 1, 0}, {224, 64, 64, 3, 1, 0}, {224, 3, 64, 7, 2, 0}, {224, 3, 64, 3, 2, 0}, {160, 96, 24, 3, 1, 0}, {160, 3, 16, 3, 2, 0},
		{224, 64, 64, 3, 1, 4}, {56, 64, 64, 3, 1, 4}, {56, 256, 256, 3, 1, 4}, {28, 128, 128, 3, 1, 4}, {28, 512, 512, 3, 1, 4}, {14, 256, 256, 3, 1, 2}, {14, 256, 256, 3, 1, 4}, {14, 512, 512, 3, 1, 2},
	} {
		name := fmt.Sprintf("%d×%d/%d-%d/%d×%d,%d", c.size, c.size, c.in, c.out, c.window, c.window, c.stride)
		if c.tile > 0 {
			name += fmt.Sprintf("/winograd%d", c.tile)
		}
		b.Run(name, func(b *testing.B) {
			w := array.Window{Dims: 2, Size: [array.MaxSpatial]int{c.window, c.window}, Stride: [array.MaxSpatial]int{c.stride, c.stride}, Dilation: [array.MaxSpatial]int{1, 1}}
			for d := range w.Dims {
				w.Before[d], w.After[d] = c.window/2, c.window/2
			}
			n := w.OutputSize(0, c.size, false)
			x, weights, y := randomArray(r, array.Float32, 1, c.size, c.size, c.in), randomArray(r, array.Float32, c.window, c.window, c.in, c.out), array.New(array.Float32, 1, n, n, c.out)
			ws := &array.Workspace{}
			var run func() error
			if c.tile > 0 {
				prepared := array.NewWinogradWeights(weights, c.tile, nil)
				run = func() error { return ws.Winograd(y, x, weights, prepared, w, c.tile, nil, nil) }
			} else {
				prepared := array.NewLastWeights(weights, 1, nil)
				run = func() error { return ws.ConvLast(y, x, weights, prepared, w, 1, nil, nil) }
			}
			b.ReportAllocs()
			best := time.Hour
			for b.Loop() {
				start := time.Now()
				if err := run(); err != nil {
					b.Fatal(err)
				}
				best = min(best, time.Since(start))
			}
			// Those that a convolution has, whether they are done or not.
			flop := 2 * float64(n*n*c.out) * float64(c.window*c.window*c.in)
			b.ReportMetric(flop*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
			b.ReportMetric(flop/float64(best.Nanoseconds()), "best-GFLOP/s")
		})
	}
}
