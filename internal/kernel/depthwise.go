package kernel

import "unsafe"

// A Tap is an element of a window: how far what it reads is from the first element of x and of w.
type Tap struct{ X, W int }

// Positions are those of a window: lines with some of them. In dst and in x, positions and lines are so many elements
// apart.
type Positions struct {
	Lines, Each                    int
	DstLine, DstStep, XLine, XStep int
}

// Depthwise sets each position of dst to the sums over a window of a product for each channel:
//
//	dst[line·DstLine + p·DstStep + c] = Σ_taps x[line·XLine + p·XStep + tap.X + c] · w[tap.W + c]
//
// A sum is a chain of fused multiply-adds in the order of the taps, which begins with zero. Then the bias is added, if there is one, and negative numbers become zero, if relu says so. dst must not
// overlap what is read.
func Depthwise(dst, x, w []float32, taps []Tap, p Positions, channels int, bias []float32, relu bool) {
	if p.Lines <= 0 || p.Each <= 0 || channels <= 0 {
		return
	}
	p.check(len(dst), len(x), taps, channels)
	for _, t := range taps {
		if t.W < 0 || t.W > len(w) || channels > len(w)-t.W {
			panic(errShape)
		}
	}
	if bias != nil {
		bias = bias[:channels]
	}
	if bestSet.assembly() && channels >= 8 && len(taps) > 0 {
		depthBlocks(depthRows{dst, x, w, bias, relu, false}, taps, p, channels)
		return
	}
	p.each(func(to, from int) {
		for c := range channels {
			sum := float32(0)
			for _, t := range taps {
				sum = fma32(x[from+t.X+c], w[t.W+c], sum)
			}
			if bias != nil {
				sum += bias[c]
			}
			if relu && sum < 0 {
				sum = 0
			}
			dst[to+c] = sum
		}
	})
}

// Sums is Depthwise with ones for weights.
func Sums(dst, x []float32, taps []Tap, p Positions, channels int) {
	if p.Lines <= 0 || p.Each <= 0 || channels <= 0 {
		return
	}
	p.check(len(dst), len(x), taps, channels)
	if bestSet.assembly() && channels >= 8 && len(taps) > 0 {
		depthBlocks(depthRows{dst: dst, x: x}, taps, p, channels)
		return
	}
	p.each(func(to, from int) {
		for c := range channels {
			sum := float32(0)
			for _, t := range taps {
				sum += x[from+t.X+c]
			}
			dst[to+c] = sum
		}
	})
}

// Largest sets each position of dst to the largest element of a window for each channel: of
// x[line·XLine + p·XStep + tap.X + c] over the taps, of which there must be one. It is NaN if
// one is, and of two zeros the first. Weights are ignored. dst must not overlap x.
func Largest(dst, x []float32, taps []Tap, p Positions, channels int) {
	if p.Lines <= 0 || p.Each <= 0 || channels <= 0 {
		return
	}
	if len(taps) == 0 {
		panic(errShape)
	}
	p.check(len(dst), len(x), taps, channels)
	if bestSet.assembly() && channels >= 8 {
		depthBlocks(depthRows{dst: dst, x: x, largest: true}, taps, p, channels)
		return
	}
	p.each(func(to, from int) {
		for c := range channels {
			most := x[from+taps[0].X+c]
			for _, t := range taps[1:] {
				most = larger(most, x[from+t.X+c])
			}
			dst[to+c] = most
		}
	})
}

// each calls f with where each position is in dst and in x.
func (p *Positions) each(f func(to, from int)) {
	for i := range p.Lines {
		for k := range p.Each {
			f(i*p.DstLine+k*p.DstStep, i*p.XLine+k*p.XStep)
		}
	}
}

// check panics unless all elements of dst and x are there.
func (p *Positions) check(dst, x int, taps []Tap, channels int) {
	left := func(n, line, step int) int { // behind where the last position begins
		if line < 0 || step < 0 || !reaches(p.Lines-1, line, n) || !reaches(p.Each-1, step, n-(p.Lines-1)*line) {
			panic(errShape)
		}
		return n - (p.Lines-1)*line - (p.Each-1)*step
	}
	if left(dst, p.DstLine, p.DstStep) < channels {
		panic(errShape)
	}
	last := left(x, p.XLine, p.XStep)
	for _, t := range taps {
		if t.X < 0 || last < t.X || last-t.X < channels {
			panic(errShape)
		}
	}
}

// depthRows are the operands of depthBlocks: without w, those of Sums or of Largest.
type depthRows struct {
	dst, x, w, bias []float32
	relu, largest   bool
}

// depthTile is the argument of the assembly. Distances are in bytes.
type depthTile struct {
	dst, x, w      *float32
	taps           *byteTap
	numTaps        int
	blocks         int
	fours, ones    int // positions that are computed together, and the others
	xStep, dstStep uintptr
	groups         int      // of slidingPositions
	wNext          uintptr  // between elements of a line of the window
	bias           *float32 // is added to sums, or nil
	relu           uintptr  // 1 if negative sums become zero
}

// byteTap is a Tap in bytes.
type byteTap struct{ x, w uintptr }

// maxTaps is how many elements of a window the assembly takes at a time: it continues no sums.
const maxTaps = 64

// run16 and run8 call the assembly for blocks of so many channels.
func (r *depthRows) run16(t *depthTile) {
	switch {
	case r.w != nil:
		depth16Blocks(t)
	case r.largest:
		pool16Blocks(t)
	default:
		sum16Blocks(t)
	}
}

func (r *depthRows) run8(t *depthTile) {
	switch {
	case r.w != nil:
		depth8Blocks(t)
	case r.largest:
		pool8Blocks(t)
	default:
		sum8Blocks(t)
	}
}

// slidingPositions is how many positions the assembly computes together that read elements of a line once.
const slidingPositions = 8

// sliding returns the width of a window whose taps are whole lines of elements side by side, as far apart as positions,
// if there is assembly for it, or 0.
func sliding(taps []Tap, p *Positions) int {
	if p.Each < slidingPositions || len(taps) < 3 {
		return 0
	}
	first, w := taps[0], taps[1].W-taps[0].W
	width := 1
	for width < len(taps) && taps[width] == (Tap{first.X + width*p.XStep, first.W + width*w}) {
		width++
	}
	if width != 3 && width != 5 || len(taps)%width > 0 || w < 0 {
		return 0
	}
	for i, t := range taps {
		if first := taps[i-i%width]; t != (Tap{first.X + i%width*p.XStep, first.W + i%width*w}) {
			return 0
		}
	}
	return width
}

// slideBlocks computes some positions of each line for a width that sliding returned, and returns how many: all but at most half of
// slidingPositions, the last ones.
func (t depthTile) slideBlocks(r *depthRows, taps []Tap, p *Positions, channels, width int) int {
	var buf [maxTaps / 3]byteTap
	lines := buf[:0]
	for i := 0; i < len(taps); i += width {
		lines = append(lines, byteTap{4 * uintptr(taps[i].X), 4 * uintptr(taps[i].W)})
	}
	t.taps, t.numTaps = unsafe.SliceData(lines), len(lines)
	t.wNext = 4 * uintptr(taps[1].W-taps[0].W)
	whole, rest := p.Each/slidingPositions*slidingPositions, p.Each%slidingPositions
	for i := range p.Lines {
		dst, x := r.dst[i*p.DstLine:], r.x[i*p.XLine:]
		t.groups = whole / slidingPositions
		t.slideLine(dst, x, r, channels, width)
		if rest > slidingPositions/2 { // and some positions again
			t.groups = 1
			last := p.Each - slidingPositions
			t.slideLine(dst[last*p.DstStep:], x[last*p.XStep:], r, channels, width)
		}
	}
	if rest > slidingPositions/2 {
		return p.Each
	}
	return whole
}

// slideLine computes some positions of a line.
func (t *depthTile) slideLine(dst, x []float32, r *depthRows, channels, width int) {
	for c := 0; c < channels; c += 8 * t.blocks {
		if t.blocks = (channels - c) / 8; t.blocks == 0 { // the end of the channels, of which some sums are there already
			c, t.blocks = channels-8, 1
		}
		t.at(dst, x, r, c)
		if width == 5 {
			slide5Blocks(t)
		} else {
			slide3Blocks(t)
		}
	}
}

// depthBlocks is Depthwise in assembly, for at least 8 channels, or Sums, or Largest.
func depthBlocks(r depthRows, taps []Tap, p Positions, channels int) {
	var buf [maxTaps]byteTap
	list := buf[:0]
	for _, t := range taps {
		list = append(list, byteTap{4 * uintptr(t.X), 4 * uintptr(t.W)})
	}
	t := depthTile{taps: unsafe.SliceData(list), numTaps: len(list), xStep: 4 * uintptr(p.XStep), dstStep: 4 * uintptr(p.DstStep)}
	if r.relu {
		t.relu = 1
	}
	done := 0
	if r.w != nil {
		if width := sliding(taps, &p); width > 0 {
			if done = t.slideBlocks(&r, taps, &p, channels, width); done == p.Each {
				return
			}
		}
	}
	rest := (p.Each - done) % 4
	again := rest > 1 && p.Each > 4 // four positions take as long as two, one by one
	if t.fours, t.ones = (p.Each-done)/4, rest; again {
		t.ones = 0
	}
	for i := range p.Lines {
		dst, x := r.dst[i*p.DstLine:], r.x[i*p.XLine:]
		t.line(dst[done*p.DstStep:], x[done*p.XStep:], &r, channels)
		if again {
			last := t
			last.fours = 1
			last.line(dst[(p.Each-4)*p.DstStep:], x[(p.Each-4)*p.XStep:], &r, channels)
		}
	}
}

// at points at a channel.
func (t *depthTile) at(dst, x []float32, r *depthRows, c int) {
	if t.dst, t.x = &dst[c], &x[c]; r.w != nil {
		t.w = &r.w[c]
	}
	if r.bias != nil {
		t.bias = &r.bias[c]
	}
}

// line computes some positions of a line.
func (t *depthTile) line(dst, x []float32, r *depthRows, channels int) {
	at := func(c int) { t.at(dst, x, r, c) }
	whole, rest := channels/16, channels%16
	if t.blocks = whole; whole > 0 {
		at(0)
		r.run16(t)
	}
	// What is left is the end of the channels. Some of its sums may be there already: they are the
	// same.
	t.blocks = 1
	switch {
	case rest > 8 && channels >= 16:
		at(channels - 16)
		r.run16(t)
	case rest > 8: // 9 to 15 channels
		at(0)
		r.run8(t)
		at(channels - 8)
		r.run8(t)
	case rest > 0:
		at(channels - 8)
		r.run8(t)
	}
}
