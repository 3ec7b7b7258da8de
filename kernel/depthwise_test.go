package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestDepthwise compares the sets of kernels with each other and with sums of their own, for all
// numbers of channels up to 70, next to unmapped memory.
func TestDepthwise(t *testing.T) {
	defer func(old kernelSet) { bestSet = old }(bestSet)
	r := rand.New(rand.NewPCG(1, 2))
	for channels := range 70 {
		for _, taps := range [][]Tap{nil, {{0, 0}}, {{3, 0}, {0, channels}, {channels, 2 * channels}}} {
			positions := 1 + channels%11
			xStep, dstStep := 2*channels+1, channels+2
			x := guarded(t, r, 1, (positions-1)*xStep+2*channels+3, 0, false).Data
			w := guarded(t, r, 1, 3*channels, 0, false).Data
			want := make([]float32, (positions-1)*dstStep+channels)
			for p := range positions {
				for c := range channels {
					for _, tap := range taps {
						want[p*dstStep+c] += float32(x[p*xStep+tap.X+c] * w[tap.W+c])
					}
				}
			}
			for _, set := range ownSets() {
				bestSet = set
				got := guarded(t, r, 1, max(len(want), 0), 0, false).Data
				for p := range positions { // the gaps stay
					for c := channels; c < dstStep && p*dstStep+c < len(got); c++ {
						got[p*dstStep+c] = 0
					}
				}
				Depthwise(got, dstStep, x, xStep, w, taps, positions, channels)
				for i := range want {
					if !sameBits(want[i], got[i]) {
						t.Fatalf("%v, %d channels, %d taps: element %d is %v, want %v", set, channels, len(taps), i, got[i], want[i])
					}
				}
			}
		}
	}
}

// TestLargest does the same for maxima, also of NaN and zeros.
func TestLargest(t *testing.T) {
	defer func(old kernelSet) { bestSet = old }(bestSet)
	r := rand.New(rand.NewPCG(3, 4))
	for channels := range 70 {
		for _, taps := range [][]Tap{{{0, 0}}, {{3, 0}, {0, 0}, {channels, 0}}} {
			positions := 1 + channels%11
			xStep, dstStep := 2*channels+1, channels+2
			x := guarded(t, r, 1, (positions-1)*xStep+2*channels+3, 0, false).Data
			for i := range x {
				if special := []float32{0, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(math.Inf(-1)), float32(math.Inf(1))}; r.IntN(4) == 0 {
					x[i] = special[r.IntN(len(special))]
				}
			}
			for _, set := range ownSets() {
				bestSet = set
				got := guarded(t, r, 1, max((positions-1)*dstStep+channels, 0), 0, false).Data
				Largest(got, dstStep, x, xStep, taps, positions, channels)
				for p := range positions {
					for c := range channels {
						want := float32(math.Inf(-1))
						for _, tap := range taps {
							want = larger(want, x[p*xStep+tap.X+c])
						}
						if v := got[p*dstStep+c]; !sameBits(want, v) {
							t.Fatalf("%v, %d channels, %d taps: channel %d of position %d is %v, want %v", set, channels, len(taps), c, p, v, want)
						}
					}
				}
			}
		}
	}
}

func BenchmarkDepthwise(b *testing.B) {
	for _, channels := range []int{8, 24, 96, 384} {
		for _, size := range []int{3, 5} {
			b.Run(fmt.Sprintf("channels=%d/size=%d", channels, size), func(b *testing.B) {
				const width = 40
				var taps []Tap
				for i := range size {
					for j := range size {
						taps = append(taps, Tap{(i*width + j) * channels, (i*size + j) * channels})
					}
				}
				x, w, dst := make([]float32, size*width*channels), make([]float32, size*size*channels), make([]float32, width*channels)
				n := width - size + 1
				b.SetBytes(int64(4 * 2 * n * channels))
				for b.Loop() {
					Depthwise(dst, channels, x, channels, w, taps, n, channels)
				}
				b.ReportMetric(float64(2*n*channels*size*size)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
