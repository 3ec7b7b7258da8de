package kernel

import (
	"time"
	"unsafe"
)

// BlockWeights are the factor W of products y = x·Wᵀ as codes of 2, 4 or 8 bits. Each block of a row of W has a
// scale and a zero: a code means (code - zero)·scale, rounded twice. They take the memory of their codes, which
// are unpacked in registers, and products have the bits of those with Weights of what codes mean, if these are
// not narrow. Any number of goroutines may use them.
type BlockWeights struct {
	n, k        int
	bits, block int
	ints        bool // rows of x are rounded to integers
	blocks      int  // of a row
	set         kernelSet
	codes       []float32 // words of codes, packed as Weights are, but with a last panel as wide as the others
	scales      []float32 // by panel, by block
	zeros       []float32 // the same, or those of one block for all
	tile        codeTile  // what all tiles have in common
}

// A BlockCoding says how W is encoded. Codes of a row follow each other, the first one in the lowest bits of a
// byte, and fill blocks; a last block that W does not fill has any codes behind its end. Scales and Zeros
// are those of the blocks of the first row, then of the second one; a single zero holds for all.
type BlockCoding struct {
	Rows, Cols    int  // of W
	Bits, Block   int  // Block is a power of two from LeastBlock to LargestBlock
	Ints          bool // rows of x may be rounded to integers of 8 bits, and are for codes of 2 or 4 bits
	Codes         []byte
	Scales, Zeros []float32
}

// codeTile is the argument of the functions of weights that are codes, for a panel.
type codeTile struct {
	codes           *float32
	scales          *float32
	zeros           *float32
	zeroStep        uintptr // in bytes, from the zeros of a block to those of the next
	at              *float32
	sums            *float32
	blocks          int
	words           int      // of a block
	params          *float32 // of rows of integers: by block and row, the scale and the sum
	mask            uint32
	bytesMask, ones uint32      // the mask in each byte, and 1 in each word
	table           [16]float32 // what codes are by their last four bits
}

// floatsOfCodes is how many bytes of floats codes are unpacked to at a time: with the rows of x that they meet
// they stay in a second-level cache.
const floatsOfCodes = 64 << 10

// codeRates are how many codes a core unpacks in a nanosecond, roughly.
var codeRates = [...]float64{blasSet: 0.3, goSet: 0.3, neonSet: 6, avx2Set: 12, avx512Set: 30}

// LeastBlock and LargestBlock bound the blocks of codes, whose sizes are powers of two.
const (
	LeastBlock   = 16
	LargestBlock = 1024
)

// NewBlockWeights packs codes, and keeps nothing of c. Threads, which may be nil, share the work.
func NewBlockWeights(t *Threads, c *BlockCoding) *BlockWeights {
	set := bestSet
	if set == blasSet {
		set = goSet
	}
	return newBlockWeights(set, t, c)
}

func newBlockWeights(set kernelSet, t *Threads, c *BlockCoding) *BlockWeights {
	w := &BlockWeights{n: c.Rows, k: c.Cols, bits: c.Bits, block: c.Block, ints: c.Ints && c.Bits <= 4, set: set}
	if w.ints {
		w.set = intsSet(set)
		set = w.set
	}
	if c.Block < LeastBlock || c.Block > LargestBlock || c.Block&(c.Block-1) != 0 || c.Bits != 2 && c.Bits != 4 && c.Bits != 8 {
		panic(errShape)
	}
	w.blocks = (w.k + w.block - 1) / w.block
	if len(c.Codes) != w.n*w.blocks*w.block*w.bits/8 || len(c.Scales) != w.n*w.blocks || len(c.Zeros) != 1 && len(c.Zeros) != w.n*w.blocks {
		panic(errShape)
	}
	words := w.block * w.bits / 32
	width := set.panelCols()
	w.tile = codeTile{words: words, mask: 1<<w.bits - 1, bytesMask: (1<<w.bits - 1) * 0x01010101, ones: 0x00010001}
	for i := range w.tile.table {
		w.tile.table[i] = float32(uint32(i) & w.tile.mask)
	}
	columns := (w.n + width - 1) / width * width
	w.codes, w.scales = alignedFloats(columns*w.blocks*words), alignedFloats(columns*w.blocks)
	if len(c.Zeros) == 1 {
		w.zeros = alignedFloats(width)
		for i := range w.zeros {
			w.zeros[i] = c.Zeros[0]
		}
	} else {
		w.tile.zeroStep = uintptr(width) * 4
		w.zeros = alignedFloats(columns * w.blocks)
	}
	p := &blockPacking{w: w, c: c, parts: min(t.Parts(time.Duration(len(c.Codes)/4*moved/1000)), max(columns/width, 1))}
	t.Do(p.parts, p)
	return w
}

// blockPacking packs some panels in each part.
type blockPacking struct {
	w     *BlockWeights
	c     *BlockCoding
	parts int
}

// Part packs a part of the panels.
func (p *blockPacking) Part(part int) {
	w, width := p.w, p.w.set.panelCols()
	words := w.blocks * w.tile.words
	// Rows of a panel are copied first: codes in a file begin at any byte, and a last panel is padded.
	rows := Matrix{Rows: width, Cols: words, Stride: words, Data: alignedFloats(width * words)}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(rows.Data))), 4*len(rows.Data))
	numbers := Matrix{Rows: width, Cols: w.blocks, Stride: w.blocks, Data: alignedFloats(width * w.blocks)}
	first, next := span(part, p.parts, w.n, width)
	for j := first; j < next; j += width {
		n := min(width, w.n-j)
		clear(bytes[copy(bytes, p.c.Codes[4*j*words:4*(j+n)*words]):])
		transpose(w.set, w.codes[j*words:], width, rows)
		from := func(list []float32) Matrix {
			clear(numbers.Data[copy(numbers.Data, list[j*w.blocks:(j+n)*w.blocks]):])
			return numbers
		}
		transpose(w.set, w.scales[j*w.blocks:], width, from(p.c.Scales))
		if w.tile.zeroStep > 0 {
			transpose(w.set, w.zeros[j*w.blocks:], width, from(p.c.Zeros))
		}
	}
}

// Shape returns the number of columns of y, and the length of the sums.
func (w *BlockWeights) Shape() (n, k int) { return w.n, w.k }

// Mul computes y = ep(x·Wᵀ).
func (w *BlockWeights) Mul(x Matrix, ep Epilogue, y Matrix) {
	checkApart(&y)
	if x.Rows != y.Rows || x.Cols != w.k || y.Cols != w.n || ep.Accumulate {
		panic(errShape)
	}
	checkData(&x)
	checkEpilogue(&ep, &y)
	if y.Rows == 0 || y.Cols == 0 {
		return
	}
	ws := getWorkspace()
	defer ws.put()
	p := &ws.blocks
	*p = blockProduct{w: w, x: x, y: y, ep: ep}
	if w.ints {
		p.roundRows(ws)
	}
	panels := (w.n + w.set.panelCols() - 1) / w.set.panelCols()
	p.parts = min(ep.Threads.Parts(w.duration(y.Rows)), panels)
	if p.parts > 1 {
		ep.Threads.Do(p.parts, p)
		return
	}
	p.panels(ws, 0, w.n)
}

// duration is about how long a product with some rows takes.
func (w *BlockWeights) duration(rows int) time.Duration {
	codes := float64(w.n) * float64(w.k)
	takes := float64(codes / codeRates[w.set])
	switch {
	case w.ints:
		takes = max(takes/2, float64(codes*float64(rows)/(2*rates[w.set])))
	case rows > 1:
		takes += float64(codes * float64(rows) / rates[w.set])
	}
	return time.Duration(takes)
}

// blockProduct is a product with BlockWeights in progress.
type blockProduct struct {
	w      *BlockWeights
	x, y   Matrix
	ep     Epilogue
	parts  int
	ints   []float32 // of rows of x that are rounded, see roundRows, and their scales and sums
	params []float32
	floats []float32 // what some codes of a panel mean
	sums   []float32 // unfinished ones, by row, as wide as a panel
	codes  codeTile
	t      tile
}

// Part computes some panels, with memory of its own.
func (p *blockProduct) Part(part int) {
	ws := getWorkspace()
	defer ws.put()
	q := &ws.blocks
	*q = *p
	first, next := span(part, p.parts, p.w.n, p.w.set.panelCols())
	q.panels(ws, first, next)
}

// panels computes columns [first, next).
func (p *blockProduct) panels(ws *workspace, first, next int) {
	width := p.w.set.panelCols()
	p.sums = ws.floats(p.y.Rows * width)
	if !p.w.ints {
		p.floats = ws.floats(max(floatsOfCodes/4/width, p.w.block) * width)
	}
	p.codes = p.w.tile
	p.codes.sums = &p.sums[0]
	for j := first; j < next; j += width {
		p.t.span(p.w.set, 1, min(width, next-j))
		p.panel(j)
	}
}

// panel computes a panel: the columns from column j on.
func (p *blockProduct) panel(j int) {
	w, width := p.w, p.w.set.panelCols()
	if w.ints {
		p.intSums(j)
		p.tiles(j, w.k, 0, -1, w.k)
		return
	}
	// Chains of a long sum are computed one after the other, as those of other products are.
	for begin := 0; begin == 0 || begin < w.k; begin += maxTerms {
		end := min(w.k, begin+maxTerms)
		l := begin
		// One row reads whole blocks where they are. Then a tile without steps stores the sums.
		if blocks := (end - l) / w.block; p.y.Rows == 1 && blocks > 0 && w.set.assembly() {
			p.point(j, l, blocks)
			p.codes.at = &p.x.Data[l]
			w.set.blockDot(w.bits, &p.codes)
			l += blocks * w.block
		}
		for more := true; more; more = l < end {
			steps := min(end-l, len(p.floats)/width)
			if steps > 0 {
				p.point(j, l, (steps+w.block-1)/w.block)
				p.codes.at = &p.floats[0]
				w.set.blockFloats(w.bits, &p.codes)
			}
			p.tiles(j, l, steps, begin, end)
			l += steps
		}
	}
}

// point points at some blocks of the codes of a panel, from step l on.
func (p *blockProduct) point(j, l, blocks int) {
	w, c := p.w, &p.codes
	width, first := w.set.panelCols(), l/w.block
	c.codes = &w.codes[(j*w.blocks+first*width)*c.words]
	c.scales, c.zeros = &w.scales[j*w.blocks+first*width], &w.zeros[0]
	if c.zeroStep > 0 {
		c.zeros = &w.zeros[j*w.blocks+first*width]
	}
	c.blocks = blocks
}

// tiles multiplies some steps of all rows, from step l on, with what their codes mean: steps of the chain that
// begins and ends at others.
func (p *blockProduct) tiles(j, l, steps, begin, end int) {
	t, width := &p.t, p.w.set.panelCols()
	t.k, t.mul, t.xStep, t.xRow = steps, 1, 4, uintptr(p.x.Stride)*4
	t.w, t.wStep, t.wSkip = nil, uintptr(width)*4, 0
	all := (p.y.Rows + maxTileRows - 1) / maxTileRows
	for i := range all {
		first, next := i*p.y.Rows/all, (i+1)*p.y.Rows/all
		t.rows, t.flags, t.p = next-first, 0, nil
		if steps > 0 {
			t.x, t.w = &p.x.Data[first*p.x.Stride+l], &p.floats[0]
		}
		if l > begin {
			t.p, t.pRow = &p.sums[first*width], uintptr(width)*4
		}
		t.y, t.yRow = &p.sums[first*width], uintptr(width)*4
		if l+steps == end {
			t.y, t.yRow = &p.y.Data[first*p.y.Stride+j], uintptr(p.y.Stride)*4
			if begin > 0 { // the chains before are in y
				t.flags, t.q, t.qRow = tileAdd, t.y, t.yRow
			}
		}
		if l+steps == p.w.k {
			t.flags |= p.ep.lastFlags()
			if p.ep.Bias != nil {
				t.flags |= tileBias
			}
			t.pointAt(&p.ep, j)
			t.pointAtResidual(&p.ep, first, j)
		}
		new(ahead).during(t) // fetches nothing
		p.w.set.tile(t)
	}
}

// blockDot multiplies one row with some blocks of a panel.
func (s kernelSet) blockDot(bits int, t *codeTile) {
	switch {
	case s == avx512Set && bits == 2:
		blockDot2AVX512(t)
	case s == avx512Set && bits == 4:
		blockDot4AVX512(t)
	case s == avx512Set:
		blockDot8AVX512(t)
	case s == avx2Set && bits == 2:
		blockDot2AVX2(t)
	case s == avx2Set && bits == 4:
		blockDot4AVX2(t)
	case s == avx2Set:
		blockDot8AVX2(t)
	case bits == 2:
		blockDot2NEON(t)
	case bits == 4:
		blockDot4NEON(t)
	default:
		blockDot8NEON(t)
	}
}

// blockFloats stores what some blocks of a panel mean.
func (s kernelSet) blockFloats(bits int, t *codeTile) {
	switch {
	case !s.assembly():
		t.floatsGo(bits, s.panelCols())
	case s == avx512Set && bits == 2:
		blockFloats2AVX512(t)
	case s == avx512Set && bits == 4:
		blockFloats4AVX512(t)
	case s == avx512Set:
		blockFloats8AVX512(t)
	case s == avx2Set && bits == 2:
		blockFloats2AVX2(t)
	case s == avx2Set && bits == 4:
		blockFloats4AVX2(t)
	case s == avx2Set:
		blockFloats8AVX2(t)
	case bits == 2:
		blockFloats2NEON(t)
	case bits == 4:
		blockFloats4NEON(t)
	default:
		blockFloats8NEON(t)
	}
}

// floatsGo is blockFloats in Go.
func (t *codeTile) floatsGo(bits, width int) {
	at := 0
	for b := range t.blocks {
		scales := unsafe.Slice(elem(t.scales, uintptr(4*b*width)), width)
		zeros := unsafe.Slice(elem(t.zeros, uintptr(b)*t.zeroStep), width)
		for word := range t.words {
			codes := unsafe.Slice((*uint32)(unsafe.Pointer(elem(t.codes, uintptr(4*(b*t.words+word)*width)))), width)
			for s := 0; s < 32; s += bits {
				to := unsafe.Slice(elem(t.at, uintptr(4*at)), width)
				for i, c := range codes {
					to[i] = float32((float32(c>>s&t.mask) - zeros[i]) * scales[i])
				}
				at += width
			}
		}
	}
}
