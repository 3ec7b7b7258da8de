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
// Every product and every sum is rounded by itself, and sums have the order of the taps, which begins
// with zero. Then the bias is added, if there is one, and negative numbers become zero, if relu says so. dst must not
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
		depthBlocks(depthRows{dst, x, w, bias, relu}, taps, p, channels)
		return
	}
	p.each(func(to, from int) {
		for c := range channels {
			sum := float32(0)
			for _, t := range taps {
				sum += float32(x[from+t.X+c] * w[t.W+c])
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
		depthBlocks(depthRows{dst: dst, x: x}, taps, p, channels)
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

// depthRows are the operands of depthBlocks. Without w, the largest elements are found.
type depthRows struct {
	dst, x, w, bias []float32
	relu            bool
}

// depthTile is the argument of the assembly. Distances are in bytes.
type depthTile struct {
	dst, x, w      *float32 // without w, the largest elements are found
	taps           *byteTap
	numTaps        int
	blocks         int
	fours, ones    int // positions that are computed together, and the others
	xStep, dstStep uintptr
	bias           *float32 // is added to sums, or nil
	relu           uintptr  // 1 if negative sums become zero
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

// depthBlocks is Depthwise in assembly, for at least 8 channels, or Largest.
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
	rest := p.Each % 4
	again := rest > 1 && p.Each > 4 // four positions take as long as two, one by one
	if t.fours, t.ones = p.Each/4, rest; again {
		t.ones = 0
	}
	for i := range p.Lines {
		dst, x := r.dst[i*p.DstLine:], r.x[i*p.XLine:]
		t.line(dst, x, &r, channels)
		if again {
			last := t
			last.fours = 1
			last.line(dst[(p.Each-4)*p.DstStep:], x[(p.Each-4)*p.XStep:], &r, channels)
		}
	}
}

// line computes some positions of a line.
func (t *depthTile) line(dst, x []float32, r *depthRows, channels int) {
	at := func(c int) {
		if t.dst, t.x = &dst[c], &x[c]; r.w != nil {
			t.w = &r.w[c]
		}
		if r.bias != nil {
			t.bias = &r.bias[c]
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
