package kernel

import "unsafe"

// A product multiplies a block of W, which fits in the second-level cache, with one tile of rows
// after the other. The first tile would wait for the block. So tiles fetch the next one meanwhile,
// a line every few steps: of the same product or, with Epilogue.Next, of the product that follows.

const (
	// lineBytes is the size of a cache line.
	lineBytes = 4 * cacheLine
)

// minTiles is the least number of tiles that fetch ahead. A single tile fetches for itself: see fetchOwn.
// Two tiles of AVX-512 were not measured.
func (s kernelSet) minTiles() int {
	if s == avx512Set {
		return manyToFetch
	}
	return 2
}

// fetches returns how many lines a kernel fetches in some steps of a panel: a line of each, which with
// AVX2 is a step of a panel. With a line of four steps, products of 12 rows and weights in memory took
// 1.2 times as long. Rows that are made of runs have no register for the distance of fetches, and with
// a line of each step convolutions took 1.02 to 1.09 times as long (Zen 4, 2026-11-30).
func (s kernelSet) fetches(steps int, runs bool) int {
	switch {
	case s == avx2Set && runs:
		return steps / 4
	case s == avx2Set || s == avx512Set:
		return steps
	}
	return 0
}

// stretch is some columns of the weights of some parts, from column j up to column end.
type stretch struct {
	parts  []part // of which the weights and the steps count
	j, end int
}

// ahead is a stretch that is being fetched.
type ahead struct {
	set kernelSet
	stretch
	part, col int // where the next piece begins
	at, left  uintptr
	bytes     int // what is left of all pieces
	fetches   int // that will be made
}

// begin begins to fetch a stretch with at most the given number of fetches.
func (a *ahead) begin(set kernelSet, s stretch, fetches int) {
	*a = ahead{set: set, stretch: s, col: s.j, fetches: fetches}
	if fetches == 0 {
		return
	}
	for i := range s.parts {
		// What lanes read is not fetched: their parts have no steps.
		a.bytes += 4 * s.parts[i].steps * set.padded(s.end-s.j)
	}
}

// reach returns how many of n tiles reach what they fetch in equal steps: a piece.
func (a *ahead) reach(n int) int {
	if a.bytes > 0 && (a.left > 0 || a.piece()) && int(a.left) < a.bytes {
		n = max(1, n*int(a.left)/a.bytes)
	}
	return n
}

// during lets some tiles fetch their share of what is left. Fetches are less than a line apart, or a
// line.
func (a *ahead) during(t *tile) {
	t.ahead, t.aheadStep, t.aheadTile = uintptr(unsafe.Pointer(t)), 0, 0
	each := t.panels * a.set.fetches(t.k, t.runs != nil)
	n := each * max(t.tiles, 1)
	if n == 0 || a.bytes <= 0 || a.left == 0 && !a.piece() {
		return
	}
	// Every tile gets a share in proportion to its fetches, of what is left and not of all: so
	// rounding, and pieces that end within a tile, do not add up. The last tile gets the rest.
	share := uintptr(a.bytes)
	if n < a.fetches {
		share = uintptr(uint64(a.bytes) * uint64(n) / uint64(a.fetches))
	}
	// A kernel fetches addresses at equal distances, and a piece ends where memory has something
	// else. What a tile can't fetch for that reason is left to the next one.
	share = min(share, a.left)
	t.ahead = a.at
	// Steps below a line fetch some lines twice. Steps above one would leave lines out.
	t.aheadStep = min((share+uintptr(n)-1)/uintptr(n), lineBytes)
	t.aheadTile = uintptr(each) * t.aheadStep
	share = min(t.aheadStep*uintptr(n), a.left)
	a.at, a.left = a.at+share, a.left-share
	a.bytes -= int(share)
	a.fetches -= n
}

// piece moves to the next piece of the stretch, which has no gaps. It reports false if there is
// none.
func (a *ahead) piece() bool {
	for ; a.part < len(a.parts); a.part, a.col = a.part+1, a.j {
		p := &a.parts[a.part]
		w := p.w
		if p.steps == 0 || w.inPlace || a.col >= a.end {
			continue
		}
		_, k := w.shape()
		// A part of a panel lies between its other parts, so every panel is a piece. Whole panels
		// follow each other, and so are one piece.
		width := a.set.padded(a.end - a.col)
		if p.steps < k {
			width = min(width, a.set.panelCols())
		}
		first := a.col * k
		if p.k0 > 0 {
			first += p.k0 * width
		}
		a.at, a.left = uintptr(unsafe.Pointer(&w.panels[first])), 4*uintptr(width*p.steps)
		a.col += width
		return true
	}
	a.bytes = 0
	return false
}

// fetchAfterGroup begins to fetch what is read after the n columns from column j on of a product
// that is not divided.
func (p *product) fetchAfterGroup(j, n int) {
	next := p.next
	if j += n; j < p.end {
		next = stretch{p.parts, j, min(j+p.cols, p.end)}
	}
	p.fetch(next, p.parts, n, p.last-p.first)
}

// fetchAfterPart begins to fetch what is read after part s of the n columns from column j on, for a
// number of tiles, which may be the last ones.
func (p *product) fetchAfterPart(s, j, n, tiles int, last bool) {
	next := p.next
	switch {
	case s+1 < len(p.parts):
		next = stretch{p.parts[s+1 : s+2], j, j + n}
	case !last:
		next = stretch{p.parts[:1], j, j + n}
	case j+n < p.end:
		next = stretch{p.parts[:1], j + n, min(j+n+p.cols, p.end)}
	}
	p.fetch(next, p.parts[s:s+1], n, tiles)
}

// fetch begins to fetch a stretch during n columns of some parts, for a number of tiles.
func (p *product) fetch(s stretch, during []part, n, tiles int) {
	fetches := 0
	if tiles >= p.set.minTiles() {
		panels := (n + p.set.panelCols() - 1) / p.set.panelCols()
		for i := range during {
			fetches += tiles * panels * p.set.fetches(during[i].steps, p.patches != nil)
		}
	}
	p.ahead.begin(p.set, s, fetches)
}

// nextProduct is the shape of the next product: its columns and the length of its sums.
type nextProduct struct{ cols, steps int }

// planNext plans the first stretch of the next product.
func (p *product) planNext(ws *workspace) {
	p.next, p.after = stretch{}, nextProduct{}
	// The next product may never come: what is fetched in vain costs time, but changes nothing.
	if len(p.ep.Next) == 0 || p.set.fetches(4, false) == 0 || p.tiles < p.set.minTiles() {
		return
	}
	n, _ := p.ep.Next[0].shape()
	k := 0
	for _, w := range p.ep.Next {
		cols, steps := w.shape()
		// Weights that were packed for other kernels, or do not fit each other, have no panels to
		// fetch.
		if w.set != p.set || cols != n {
			return
		}
		k += steps
	}
	// The next product reads first what it plans now: the first group of its columns, of all
	// segments or of the first part.
	cols, steps := blocking(p.set, p.tiles, n, k)
	ws.next = ws.next[:0]
	for _, w := range p.ep.Next {
		_, k := w.shape()
		switch {
		case w.isNarrow():
			k = 0 // what is read in lanes is not fetched
		case steps > 0:
			k = min(k, steps)
		}
		ws.next = append(ws.next, part{w: w, steps: k})
		if steps > 0 {
			break // it begins with a part of one segment
		}
	}
	p.next, p.after = stretch{ws.next, 0, min(cols, n)}, nextProduct{n, k}
}

// canWait reports whether the stretch can be fetched later, with a quarter of the fetches or more
// left for each line. It counts those of a tile as made.
func (a *ahead) canWait(t *tile) bool {
	if a.bytes > 0 {
		left := a.fetches - t.panels*a.set.fetches(t.k, t.runs != nil)
		if left <= 4*a.bytes/lineBytes {
			return false
		}
		a.fetches = left
	}
	return true
}

// fetchResult lets a tile fetch the memory of the results of the next one, whose rows follow its own
// without gaps: a processor reads a line before it writes to it, and many lines at once, at the end of
// a tile, delay W. A 3×3 convolution of 224² positions and 3 channels took 0.87 times as long, others
// with results larger than a cache 0.97 to 0.98 times (Sapphire Rapids, 2026-11-26).
func (t *tile) fetchResult(set kernelSet) {
	t.ahead, t.aheadStep, t.aheadTile = uintptr(unsafe.Pointer(t)), 0, 0
	if n := uintptr(t.panels * set.fetches(t.k, t.runs != nil)); n > 0 {
		bytes := uintptr(t.rows) * t.yRow
		t.ahead, t.aheadStep, t.aheadTile = uintptr(unsafe.Pointer(t.y))+bytes, min((bytes+n-1)/n, lineBytes), bytes
	}
}

// ownAhead is how many steps ahead a tile of AVX-512 or AVX2 fetches W for itself.
func (s kernelSet) ownAhead() uintptr {
	if s == avx512Set {
		return 10
	}
	return 128
}

// fetchOwn lets a tile that meets W alone fetch W itself: a line of each step, the first one, since the
// processor then finds the others. With AVX2 that is all of the step: products of 2 to 6 rows and weights
// in memory took 1.3 to 1.5 times as long without, and 1.2 times with half the distance, but those of one
// row take 1.03 times as long with it (Zen 4, 2026-11-30).
func (t *tile) fetchOwn(set kernelSet) {
	t.ahead, t.aheadStep, t.aheadTile = uintptr(unsafe.Pointer(t.w))+set.ownAhead()*t.wStep, t.wStep, 0
}
