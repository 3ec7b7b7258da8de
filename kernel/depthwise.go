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
	dst, x, w      *float32
	taps           *byteTap
	numTaps        int
	blocks         int
	positions      int
	xStep, dstStep uintptr
}

// byteTap is a Tap in bytes.
type byteTap struct{ x, w uintptr }

// maxTaps is how many elements of a window the assembly takes at a time: it continues no sums.
const maxTaps = 64

// depthBlocks is Depthwise in assembly, for at least 8 channels.
func depthBlocks(dst []float32, dstStep int, x []float32, xStep int, w []float32, taps []Tap, positions, channels int) {
	var buf [maxTaps]byteTap
	list := buf[:0]
	for _, t := range taps {
		list = append(list, byteTap{4 * uintptr(t.X), 4 * uintptr(t.W)})
	}
	t := depthTile{taps: unsafe.SliceData(list), numTaps: len(list), positions: positions, xStep: 4 * uintptr(xStep), dstStep: 4 * uintptr(dstStep)}
	at := func(c int) { t.dst, t.x, t.w = &dst[c], &x[c], &w[c] }
	whole, rest := channels/16, channels%16
	if t.blocks = whole; whole > 0 {
		at(0)
		depth16Blocks(&t)
	}
	// What is left is the end of the channels. Some of its sums may be there already: they are the
	// same.
	t.blocks = 1
	switch {
	case rest > 8 && channels >= 16:
		at(channels - 16)
		depth16Blocks(&t)
	case rest > 8: // 9 to 15 channels
		at(0)
		depth8Blocks(&t)
		at(channels - 8)
		depth8Blocks(&t)
	case rest > 0:
		at(channels - 8)
		depth8Blocks(&t)
	}
}
