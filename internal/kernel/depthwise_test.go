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
		xStep := 2*channels + 1
		line := func(width, x, w int) (taps []Tap) {
			for e := range width {
				taps = append(taps, Tap{x + e*xStep, w + e*channels})
			}
			return taps
		}
		windows := [][]Tap{nil, {{0, 0}}, {{3, 0}, {0, channels}, {channels, 2 * channels}}}
		for _, width := range []int{2, 3, 4, 5} { // of lines that are or are not like each other
			windows = append(windows, line(width, 1, 0), append(line(width, 0, 0), line(width, 3, 5*channels)...), append(line(width, 0, 0), line(width, 3, 5*channels)[1:]...))
		}
		for _, taps := range windows {
			positions, dstStep := 1+channels%23, channels+2
			places := Positions{Lines: 1 + channels%3, Each: positions, DstLine: positions*dstStep + 1, DstStep: dstStep, XLine: xStep + channels%2, XStep: xStep}
			x := guarded(t, r, 1, (places.Lines-1)*places.XLine+(positions+3)*xStep+2*channels+3, 0, false).Data
			w := guarded(t, r, 1, 10*channels, 0, false).Data
			var bias []float32
			if channels%4 > 0 {
				bias = guarded(t, r, 1, channels, 0, false).Data
			}
			relu := channels%5 > 1
			want := make([]float32, (places.Lines-1)*places.DstLine+(positions-1)*dstStep+channels)
			unused := make([]bool, len(want))
			for i := range unused {
				unused[i] = true
			}
			places.each(func(to, from int) {
				for c := range channels {
					for _, tap := range taps {
						want[to+c] = fma32(x[from+tap.X+c], w[tap.W+c], want[to+c])
					}
					if bias != nil {
						want[to+c] += bias[c]
					}
					if relu {
						want[to+c] = max(want[to+c], 0)
					}
					unused[to+c] = false
				}
			})
			for _, set := range ownSets() {
				bestSet = set
				got := guarded(t, r, 1, max(len(want), 0), 0, false).Data
				for i, gap := range unused { // the gaps stay
					if gap {
						got[i] = 0
					}
				}
				Depthwise(got, x, w, taps, places, channels, bias, relu)
				for i := range want {
					if !sameBits(want[i], got[i]) {
						t.Fatalf("%v, %d channels, %d taps: element %d is %v, want %v", set, channels, len(taps), i, got[i], want[i])
					}
				}
			}
		}
	}
}

// TestSums compares the sets of kernels with Depthwise with ones, on zeros of both signs.
func TestSums(t *testing.T) {
	defer func(old kernelSet) { bestSet = old }(bestSet)
	r := rand.New(rand.NewPCG(5, 6))
	for channels := 1; channels < 70; channels++ {
		for _, taps := range [][]Tap{nil, {{X: 0}}, {{X: 3}, {X: 0}, {X: channels}}} {
			p := Positions{Lines: 1 + channels%3, Each: 1 + channels%11, DstLine: 11 * channels, DstStep: channels, XLine: 5, XStep: channels + 1}
			x := guarded(t, r, 1, 2*p.XLine+(p.Each-1)*p.XStep+2*channels+3, 0, false).Data
			for i := range x {
				if r.IntN(4) == 0 {
					x[i] = float32(math.Copysign(0, -1))
				}
			}
			ones := make([]float32, channels)
			for c := range ones {
				ones[c] = 1
			}
			size := (p.Lines-1)*p.DstLine + p.Each*channels
			bestSet = goSet
			want := make([]float32, size)
			Depthwise(want, x, ones, taps, p, channels, nil, false)
			for _, set := range ownSets() {
				bestSet = set
				got := guarded(t, r, 1, size, 0, false).Data
				clear(got)
				Sums(got, x, taps, p, channels)
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
				Largest(got, x, taps, Positions{Lines: 1, Each: positions, DstStep: dstStep, XStep: xStep}, channels)
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
					Depthwise(dst, x, w, taps, Positions{Lines: 1, Each: n, DstStep: channels, XStep: channels}, channels, nil, false)
				}
				b.ReportMetric(float64(2*n*channels*size*size)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
