package array_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/tensor/array"
)

// TestWinogradErrors compares what tiles and the direct form are off from sums of float64s, on inputs that
// are hard for sums, or for differences of neighbours: the largest error, which is that of one sum and depends
// on what is drawn, and the norm of all.
func TestWinogradErrors(t *testing.T) {
	var r *rand.Rand
	normal := func(int, int, int) float64 { return r.NormFloat64() }
	size := func(c int) float64 { return math.Exp(float64(c%7) - 3) }
	const side, out = 20, 16
	const n = side - 2
	for name, k := range map[string]struct {
		x func(y, x, c int) float64
		w func(y, x, c int) float64
	}{
		"normal":       {normal, normal},
		"half zeros":   {func(_, _, _ int) float64 { return max(0, r.NormFloat64()) }, normal},
		"positive":     {func(_, _, _ int) float64 { return r.Float64() }, func(_, _, _ int) float64 { return r.Float64() }},
		"far mean":     {func(_, _, _ int) float64 { return 100 + r.NormFloat64() }, normal},
		"alternating":  {func(y, x, _ int) float64 { return float64(1-2*((x+y)&1)) * (1 + r.NormFloat64()/10) }, normal},
		"edges":        {func(y, x, _ int) float64 { return float64(100*((x/3+y/3)&1)) + r.NormFloat64() }, func(y, x, _ int) float64 { return []float64{-1, 8}[(y%2)*(x%2)] }},
		"a few large":  {func(_, _, _ int) float64 { return math.Pow(1000, float64(1-min(r.IntN(50), 1))) * r.NormFloat64() }, normal},
		"unequal size": {func(_, _, c int) float64 { return size(c) * r.NormFloat64() }, func(_, _, c int) float64 { return r.NormFloat64() / size(c) }},
	} {
		for _, in := range []int{16, 32, 64, 256} {
			r = rand.New(rand.NewPCG(1, uint64(in)))
			w := array.Window{Dims: 2, Size: [array.MaxSpatial]int{3, 3}, Stride: [array.MaxSpatial]int{1, 1}, Dilation: [array.MaxSpatial]int{1, 1}}
			x, weights, y := array.New(array.Float32, 1, side, side, in), array.New(array.Float32, 3, 3, in, out), array.New(array.Float32, 1, n, n, out)
			xs, ws := array.Slice[float32](x), array.Slice[float32](weights)
			for i := range xs {
				xs[i] = float32(k.x(i/in/side, i/in%side, i%in))
			}
			for i := range ws {
				ws[i] = float32(k.w(i/out/in/3, i/out/in%3, i/out%in))
			}
			want := make([]float64, n*n*out)
			for i := range n * n * 9 * in {
				p, tap, c := i/in/9, i/in%9, i%in
				v := float64(xs[((p/n+tap/3)*side+p%n+tap%3)*in+c])
				for o := range out {
					want[p*out+o] += v * float64(ws[(tap*in+c)*out+o])
				}
			}
			off := func(err error) (largest, norm float64) {
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range array.Slice[float32](y) {
					d := math.Abs(float64(v) - want[i])
					largest, norm = max(largest, d), norm+d*d
				}
				return largest, math.Sqrt(norm)
			}
			var s array.Workspace
			largest, norm := off(s.ConvLast(y, x, weights, nil, w, 1, nil, nil))
			for tile, most := range map[int]float64{2: 1.5, 4: 4} {
				l, m := off(s.Winograd(y, x, weights, nil, w, tile, nil, nil))
				if l > 2*most*largest || m > most*norm {
					t.Errorf("%s, %d channels, tiles of %d: errors are %.2f and %.2f times as large", name, in, tile, l/largest, m/norm)
				}
			}
		}
	}
}
