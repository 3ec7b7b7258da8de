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
	terms  [][2]uint16 // by strip and eight terms of k: of four products that become one word, and of two
	most   []uint16    // by strip: of two products, but of few terms
}

// placeBounds makes room for bounds, if there is a kernel that needs them.
func (q *QuantizedWeights) placeBounds() {
	if !q.set.halves(q.precision) || q.k < shortTerms || q.set.strips(q.n) < shortStrips {
		return
	}
	strips := q.set.strips(q.n)
	q.short = &shortBounds{totals: make([]int32, len(q.scale)), terms: make([][2]uint16, strips*q.quads), most: make([]uint16, strips)}
}

// bound adds a column, of strip s, whose codes add up to sum.
func (q *QuantizedWeights) bound(s, j int, codes []int32, sum int64) {
	b := q.short
	if b == nil {
		return
	}
	b.totals[j] = int32(sum)
	terms := b.terms[s*q.quads:][:q.quads]
	for i := range terms {
		// Of eight terms, the first two of each half become one word, and so do the others.
		var c [8]int32
		copy(c[:], codes[8*i:])
		for l := 0; l < 4; l += 2 {
			two, other := signedSums(c[l], c[l+1]), signedSums(c[l+4], c[l+5])
			four := signed{two.positive + other.positive, two.negative + other.negative}
			terms[i] = [2]uint16{max(terms[i][0], four.largest()), max(terms[i][1], two.largest(), other.largest())}
		}
	}
}

// boundStrip bounds strip s, of which all columns are known.
func (q *QuantizedWeights) boundStrip(s int) {
	if q.short == nil {
		return
	}
	// Where two products may be more than a word, the short kernel multiplies words, more slowly than the one that halves
	// multiplications. A product of 300×384×384 took 0.70 of the time of that one without such terms, 0.87 with an
	// eighth of them, 0.98 with a quarter and 1.12 with half (Zen 4, 2026-11-30).
	two := make([]uint16, 0, q.quads)
	for _, bounds := range q.short.terms[s*q.quads:][:q.quads] {
		two = append(two, bounds[1])
	}
	slices.Sort(two)
	q.short.most[s] = two[len(two)-1-len(two)/8]
}

// signed are the sums of what is positive, and of what is negative, of some numbers.
type signed struct{ positive, negative int32 }

func signedSums(a, b int32) signed { return signed{max(a, 0) + max(b, 0), -min(a, 0) - min(b, 0)} }

func (s signed) largest() uint16 { return uint16(max(s.positive, s.negative)) }

// shortRows are the rows of a block as bytes, for the short kernel.
type shortRows struct {
	x         *byte // nil if that kernel is not used
	stride    uintptr
	low, high []int32 // by row: the least and the greatest code
	limits    []int32 // by the first row of a tile: what bounds may be
}

// Products of less than this don't pay for making bytes.
const (
	shortTerms  = 32 // also what a vector needs
	shortStrips = 4
)

// place makes room for rows of the first term.
func (n *shortRows) place(ws *workspace, s *QuantizedSegment, rows, strips int) {
	*n = shortRows{}
	if s.W.short == nil || s.Step != 1 || strips < shortStrips {
		return
	}
	n.stride = uintptr(s.W.quads) * 8
	n.x = (*byte)(unsafe.Pointer(&ws.floats(rows*int(n.stride)/4 + codeSlack)[0]))
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
	for done := 0; done < rows; {
		height, tiles := nextTiles(rows-done, p.set.tileRows(s.W.precision))
		for range tiles {
			widest := int32(1)
			for i := done; i < done+height; i++ {
				widest = max(widest, n.high[i]-n.low[i])
			}
			n.limits[done] = maxWord / widest
			done += height
		}
	}
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
		t.begin, t.rowBegin = &b.totals[panel*p.set.lanes()], &n.low[0]
		t.bounds, t.limits = &b.terms[s*p.segs[0].W.quads], &n.limits[0]
		quantShortAVX2(t)
		t.x, t.xRow, t.begin, t.rowBegin = words.x, words.xRow, words.begin, words.rowBegin
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
