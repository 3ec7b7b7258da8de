package kernel

import (
	"slices"
	"unsafe"
)

// AVX2 multiplies bytes without a sign by bytes with one and adds two products as a word, with saturation. Where two
// products are known to be a word, the result is exact, and takes fewer instructions than words do; fewer still where
// four are, which are added as words before they become integers of 32 bits. With bytes of x from 0 to r that is so if
// r times the sum of the positive weights is a word, and r times that of the negative ones.
//
// Sums of weights are known when they are packed. Rows lose their least code, which makes r smaller where rows share the
// scale of a tensor: of the codes of 1500 normal rows of 384 elements, a row spans 162 on average. All sums are exact,
// whichever kernel computes them.

// maxWord is the largest word.
const maxWord = 1<<15 - 1

// shortBounds bounds the products of a column of W with bytes of 0 or 1.
type shortBounds struct {
	totals []int32     // by column: the sums of codes
	terms  [][3]uint16 // by strip and step of sixteen terms: of eight products that become one word, of four, and of two
	most   []uint16    // by strip: of two products, but of few steps
}

// placeBounds makes room for bounds, if there is a kernel that needs them.
func (q *QuantizedWeights) placeBounds() {
	if !q.set.halves(q.precision) || q.k < shortTerms || q.set.strips(q.n) < shortStrips {
		return
	}
	strips := q.set.strips(q.n)
	q.short = &shortBounds{totals: make([]int32, len(q.scale)), terms: make([][3]uint16, strips*q.quads/2), most: make([]uint16, strips)}
}

// bound adds a column, of strip s, whose codes add up to sum.
func (q *QuantizedWeights) bound(s, j int, codes []int32, sum int64) {
	b := q.short
	if b == nil {
		return
	}
	b.totals[j] = int32(sum)
	terms := q.stripBounds(s)
	for i := range terms {
		var c [16]int32
		copy(c[:], codes[16*i:])
		most := &terms[i]
		// Of each quarter of a step, the first two products become one word, and so do the others.
		for l := 0; l < 4; l += 2 {
			var eight signed
			for half := l; half < 16; half += 8 {
				two, other := signedSums(c[half], c[half+1]), signedSums(c[half+4], c[half+5])
				four := two.plus(other)
				eight = eight.plus(four)
				most[1], most[2] = max(most[1], four.largest()), max(most[2], two.largest(), other.largest())
			}
			most[0] = max(most[0], eight.largest())
		}
	}
}

// stripBounds returns the bounds of the steps of strip s.
func (q *QuantizedWeights) stripBounds(s int) [][3]uint16 {
	steps := q.quads / 2
	return q.short.terms[s*steps:][:steps]
}

// boundStrip bounds strip s, of which all columns are known.
func (q *QuantizedWeights) boundStrip(s int) {
	if q.short == nil {
		return
	}
	// Where two products may be more than a word, the short kernel multiplies words, more slowly than the one that halves
	// multiplications. A product of 300×384×384 took 0.70 of the time of that one without such terms, 0.87 with an
	// eighth of them, 0.98 with a quarter and 1.12 with half (Zen 4, 2026-11-30).
	two := make([]uint16, 0, q.quads/2)
	for _, bounds := range q.stripBounds(s) {
		two = append(two, bounds[2])
	}
	slices.Sort(two)
	q.short.most[s] = two[len(two)-1-len(two)/8]
}

// signed are the sums of what is positive, and of what is negative, of some numbers.
type signed struct{ positive, negative int32 }

func signedSums(a, b int32) signed { return signed{max(a, 0) + max(b, 0), -min(a, 0) - min(b, 0)} }

func (s signed) plus(t signed) signed {
	return signed{s.positive + t.positive, s.negative + t.negative}
}

func (s signed) largest() uint16 { return uint16(max(s.positive, s.negative)) }

// shortRows are the rows of a block as bytes, for the short kernel.
type shortRows struct {
	x         *byte // nil if that kernel is not used
	stride    uintptr
	low, high []int32 // by row: the least and the greatest code
	limits    []int32 // by the first row of a tile: what bounds may be
	most      int32   // of limits
	strip     *byte   // the terms of a strip, interleaved
}

const (
	// Products of less than this don't pay for making bytes.
	shortTerms  = 32 // also what a vector needs
	shortStrips = 4
	// shortHeight is that of the highest tile of the short kernel.
	shortHeight = 3
)

// place makes room for rows of the first term.
func (n *shortRows) place(ws *workspace, s *QuantizedSegment, rows, strips int) {
	*n = shortRows{}
	if s.W.short == nil || s.Step != 1 || strips < shortStrips {
		return
	}
	bytes := func(n int) *byte { return (*byte)(unsafe.Pointer(&ws.floats((n + 3) / 4)[0])) }
	n.stride = uintptr(s.W.quads) * 8
	n.x, n.strip = bytes(rows*int(n.stride)+codeSlack), bytes(s.W.quads*4*stepBytes*s.W.set.lanes())
	n.low, n.high, n.limits = ws.int32s(rows), ws.int32s(rows), ws.int32s(rows)
}

// narrow makes bytes of rows [first, next) of the first term.
func (p *quantProduct) narrow(first, next int) {
	n, s := &p.short, &p.segs[0]
	if n.x == nil {
		return
	}
	x, rows := s.Rows, next-first
	codes := &x.codes[(s.First+first)*x.stride+s.Col]
	quantNarrowAVX2(n.x, n.stride, codes, uintptr(x.stride), s.W.k, rows, &n.low[0], &n.high[0])
	n.most = 0
	for done := 0; done < rows; {
		height, tiles := nextTiles(rows-done, shortHeight)
		for range tiles {
			widest := int32(1)
			for i := done; i < done+height; i++ {
				widest = max(widest, n.high[i]-n.low[i])
			}
			n.limits[done] = maxWord / widest
			n.most = max(n.most, n.limits[done])
			done += height
		}
	}
}

// shortens reports whether the short kernel computes some tiles of strip s of the first term, of a block of rows, and
// interleaves the terms of the strip if tiles of several rows need that.
func (p *quantProduct) shortens(s, rows int) bool {
	n, w, lanes := &p.short, p.segs[0].W, p.set.lanes()
	// Two rows alone don't pay for interleaving.
	if n.x == nil || p.t.vecs != 2 || rows == 2 || n.most < int32(w.short.most[s]) {
		return false
	}
	if rows > 1 {
		panel, _ := p.set.strip(p.y.Cols, s)
		quantInterleaveAVX2(n.strip, &w.panels[panel*lanes*w.column], w.quads)
	}
	return true
}

// shortTiles computes tiles of strip s of the first term, of a block of rows [first, next): those that have few terms for
// words with the short kernel, the others without.
func (p *quantProduct) shortTiles(first, next, s int) {
	t, n, b := &p.t, &p.short, p.segs[0].W.short
	fits := func(tile int) bool { return n.limits[t.done+tile*t.rows] >= int32(b.most[s]) }
	words := *t
	for left := t.tiles; left > 0; left -= words.tiles {
		words.tiles, words.done, words.ahead = 1, t.done, t.ahead
		short := fits(0)
		for words.tiles < left && fits(words.tiles) == short {
			words.tiles++
		}
		t.tiles = words.tiles
		if !short {
			p.tiles(first, next, 0)
			continue
		}
		panel, _ := p.set.strip(p.y.Cols, s)
		t.x, t.xRow = (*float32)(unsafe.Pointer(n.x)), n.stride
		if next-first > 1 {
			t.w = (*float32)(unsafe.Pointer(n.strip))
		}
		t.begin, t.rowBegin = &b.totals[panel*p.set.lanes()], &n.low[0]
		t.bounds, t.limits = &p.segs[0].W.stripBounds(s)[0], &n.limits[0]
		quantShortAVX2(t)
		t.x, t.xRow, t.w, t.begin, t.rowBegin = words.x, words.xRow, words.w, words.begin, words.rowBegin
	}
}

// wideRows are the rows of a block as words, for the kernel that halves multiplications.
type wideRows struct {
	words  []byte
	stride int
	at     []int32 // by term: where its words begin in a row
	begin  []int32 // by term and row: what sums begin with
	rows   int
	done   bool // for the current block
}

// place makes room for rows of all terms.
func (w *wideRows) place(ws *workspace, segs []QuantizedSegment, rows int) {
	*w = wideRows{at: ws.int32s(len(segs)), begin: ws.int32s(rows * len(segs)), rows: rows}
	for i := range segs {
		w.at[i] = int32(w.stride)
		w.stride += wideBlocks(&segs[i]) * 64
	}
	words := ws.floats((rows*w.stride + codeSlack) / 4)
	w.words = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 4*len(words))
}

// wideBlocks is how many times 32 bytes of a row become words. What is beyond a row meets weights of zero.
func wideBlocks(s *QuantizedSegment) int { return (s.W.k + 31) / 32 }

// widen makes words of rows [first, next), unless that is done.
func (p *quantProduct) widen(first, next int) {
	w, rows := &p.wide, next-first
	if w.done {
		return
	}
	w.done = true
	for i := range p.segs {
		s, begin := &p.segs[i], w.begin[i*w.rows:][:rows]
		if s.W.k == 0 {
			clear(begin)
			continue
		}
		x, to := s.Rows, &w.words[w.at[i]]
		quantWidenAVX2(to, uintptr(w.stride), &x.codes[(s.First+first*s.Step)*x.stride+s.Col], uintptr(s.Step*x.stride), wideBlocks(s), rows)
		quantRowProductsAVX2(to, uintptr(w.stride), rows, s.W.quads, &begin[0])
	}
}
