package kernel

import "unsafe"

// A Tap is an element of a window: how far what it reads is from the first element of x and of w.
type Tap struct{ X, W int }

// Depthwise sets each of some positions of dst, dstStep elements apart, to the sums over a window of
// a product for each channel:
//
//	dst[p·dstStep + c] = Σ_taps x[p·xStep + tap.X + c] · w[tap.W + c]
//
// Every product and every sum is rounded by itself, and sums have the order of the taps, which begins
// with zero. dst must overlap neither x nor w.
func Depthwise(dst []float32, dstStep int, x []float32, xStep int, w []float32, taps []Tap, positions, channels int) {
	if positions <= 0 || channels <= 0 {
		return
	}
	checkDepthwise(len(dst), dstStep, len(x), xStep, len(w), taps, positions, channels)
	if len(taps) == 0 {
		for p := range positions {
			clear(dst[p*dstStep:][:channels])
		}
		return
	}
	done := 0
	if bestSet.assembly() && channels >= 8 {
		depthBlocks(dst, dstStep, x, xStep, w, taps, positions, channels)
		done = channels
	}
	for p := range positions {
		for c := done; c < channels; c++ {
			sum := float32(0)
			for _, t := range taps {
				sum += float32(x[p*xStep+t.X+c] * w[t.W+c])
			}
			dst[p*dstStep+c] = sum
		}
	}
}

// Largest sets each of some positions of dst, dstStep elements apart, to the largest element of a window
// for each channel: of x[p·xStep + tap.X + c] over the taps, of which there must be one. It is NaN if
// one is, and of two zeros the first. Weights are ignored. dst must not overlap x.
func Largest(dst []float32, dstStep int, x []float32, xStep int, taps []Tap, positions, channels int) {
	if positions <= 0 || channels <= 0 {
		return
	}
	if len(taps) == 0 {
		panic(errShape)
	}
	for _, t := range taps {
		if t.X < 0 || t.X > len(x) || xStep < 0 || !holds(len(x)-t.X, positions, channels, xStep) {
			panic(errShape)
		}
	}
	if !holds(len(dst), positions, channels, dstStep) {
		panic(errShape)
	}
	if bestSet.assembly() && channels >= 8 {
		depthBlocks(dst, dstStep, x, xStep, nil, taps, positions, channels)
		return
	}
	for p := range positions {
		for c := range channels {
			most := x[p*xStep+taps[0].X+c]
			for _, t := range taps[1:] {
				most = larger(most, x[p*xStep+t.X+c])
			}
			dst[p*dstStep+c] = most
		}
	}
}

// checkDepthwise panics unless all elements are there.
func checkDepthwise(dst, dstStep, x, xStep, w int, taps []Tap, positions, channels int) {
	if !holds(dst, positions, channels, dstStep) || xStep < 0 {
		panic(errShape)
	}
	for _, t := range taps {
		if t.X < 0 || t.W < 0 || t.W > w || channels > w-t.W || t.X > x || !holds(x-t.X, positions, channels, xStep) {
			panic(errShape)
		}
	}
}

// depthTile is the argument of the assembly. Distances are in bytes.
type depthTile struct {
	dst, x, w      *float32 // without w, the largest elements are found
	taps           *byteTap
	numTaps        int
	blocks         int
	fours, ones    int // positions that are computed together, and the others
	xStep, dstStep uintptr
}

// byteTap is a Tap in bytes.
type byteTap struct{ x, w uintptr }

// maxTaps is how many elements of a window the assembly takes at a time: it continues no sums.
const maxTaps = 64

// run16 and run8 call the assembly for blocks of so many channels.
func (t *depthTile) run16() {
	if t.w == nil {
		pool16Blocks(t)
	} else {
		depth16Blocks(t)
	}
}

func (t *depthTile) run8() {
	if t.w == nil {
		pool8Blocks(t)
	} else {
		depth8Blocks(t)
	}
}

// depthBlocks is Depthwise in assembly, for at least 8 channels, or Largest if w is nil.
func depthBlocks(dst []float32, dstStep int, x []float32, xStep int, w []float32, taps []Tap, positions, channels int) {
	if rest := positions % 4; rest > 1 && positions > 4 { // four positions take as long as two, one by one
		depthBlocks(dst, dstStep, x, xStep, w, taps, positions-rest, channels)
		depthBlocks(dst[(positions-4)*dstStep:], dstStep, x[(positions-4)*xStep:], xStep, w, taps, 4, channels)
		return
	}
	var buf [maxTaps]byteTap
	list := buf[:0]
	for _, t := range taps {
		list = append(list, byteTap{4 * uintptr(t.X), 4 * uintptr(t.W)})
	}
	t := depthTile{taps: unsafe.SliceData(list), numTaps: len(list), fours: positions / 4, ones: positions % 4, xStep: 4 * uintptr(xStep), dstStep: 4 * uintptr(dstStep)}
	at := func(c int) {
		if t.dst, t.x = &dst[c], &x[c]; w != nil {
			t.w = &w[c]
		}
	}
	whole, rest := channels/16, channels%16
	if t.blocks = whole; whole > 0 {
		at(0)
		t.run16()
	}
	// What is left is the end of the channels. Some of its sums may be there already: they are the
	// same.
	t.blocks = 1
	switch {
	case rest > 8 && channels >= 16:
		at(channels - 16)
		t.run16()
	case rest > 8: // 9 to 15 channels
		at(0)
		t.run8()
		at(channels - 8)
		t.run8()
	case rest > 0:
		at(channels - 8)
		t.run8()
	}
}
