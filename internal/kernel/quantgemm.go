package kernel

import "unsafe"

// A quantized product is computed in integers, whose sums are exact, and completed in float32s. For
// columns j of W and rows i of x it starts with
//
//	v = float32(Σ codes of x · codes of W)·scale[j]·scale[i] + offset[i]·(Σ codes of W·scale[j])
//
// in this order, every product and every sum rounded by itself, and continues with the epilogue of
// other products. So all kernels give the same bits.
//
// W is packed in strips of one to three panels; a panel is as many columns as a vector has lanes. A
// strip holds a step of each of its columns, then the next one, and so on, padded with zeros.

// stepBytes is how much of a row of x a kernel multiplies at a time, and of a column unless its bytes
// become words in registers only. Rows and columns are padded to multiples of four such steps.
const stepBytes = 4

// quantTile is the argument of a kernel, which computes tiles of equal height one below the other.
// Its steps of k are counted in fours.
type quantTile struct {
	tile
	tiles       int // to be computed; kernels count down
	done        int // rows above the current tile; kernels count up
	rowScale    *float32
	rowScaleRow uintptr
	colScale    *float32 // of whole vectors, like colSum
	colSum      *float32
	begin       *int32 // what sums begin with, by column and by row, if the set needs it
	rowBegin    *int32
	bounds      *[2]uint16 // of products, by steps, and what they may be, by row, for the short kernel
	limits      *int32
	ahead       *byte // weights that are needed next, and their end; kernels fetch and count up
	aheadEnd    *byte
}

// A QuantizedSegment is a term x·Wᵀ of a sum of products. Row i of x is columns [Col, Col+k) of row
// First + i·Step of Rows, in one group.
type QuantizedSegment struct {
	Rows        *QuantizedRows
	First, Step int
	Col         int
	W           *QuantizedWeights
}

// MulQuantized computes y = ep(Σ_s x_s·W_sᵀ). The terms are added in order, then what ep says. All
// have the same precision. In rows that are marked in a term, sums are NaN.
func MulQuantized(segs []QuantizedSegment, ep Epilogue, y Matrix) {
	checkQuantized(segs, &ep, y)
	if y.Rows == 0 || y.Cols == 0 {
		return
	}
	ws := getWorkspace()
	defer ws.put()
	p := &ws.quantized
	*p = quantProduct{set: segs[0].W.set, segs: segs, ep: ep, y: y}
	p.compute(ws)
}

// checkQuantized panics unless everything fits.
func checkQuantized(segs []QuantizedSegment, ep *Epilogue, y Matrix) {
	if len(segs) == 0 {
		panic(errShape)
	}
	checkApart(&y)
	for i := range segs {
		s := &segs[i]
		if s.Rows == nil || s.W == nil || s.W.n != y.Cols || s.W.set != segs[0].W.set || s.W.precision != segs[0].W.precision ||
			s.Rows.set != s.W.set || s.Rows.precision != s.W.precision || s.Col < 0 || s.W.k > s.Rows.cols || s.Col > s.Rows.cols-s.W.k ||
			s.W.k > 0 && s.Col/s.Rows.group != (s.Col+s.W.k-1)/s.Rows.group {
			panic(errShape)
		}
		if y.Rows > 0 && (s.First < 0 || s.Step < 0 || s.First >= s.Rows.rows || !reaches(y.Rows-1, s.Step, s.Rows.rows-1-s.First)) {
			panic(errShape)
		}
	}
	checkEpilogue(ep, &y)
}

// quantBlock is how many bytes of x are multiplied with all strips before the next rows. They
// should stay in the second-level cache (Zen 5, November 2026).
const quantBlock = 256 << 10

// quantProduct is a quantized product in progress.
type quantProduct struct {
	set   quantSet
	segs  []QuantizedSegment
	ep    Epilogue
	y     Matrix
	grid  grid      // the shares of several threads
	sums  []float32 // of the terms before, in the rows of a block and the columns of a strip
	pitch int
	wide  wideRows
	short shortRows
	t     quantTile
}

// compute computes y.
func (p *quantProduct) compute(ws *workspace) {
	if p.grid = p.shares(); p.grid.count() > 1 {
		p.ep.Threads.Do(p.grid.count(), p)
		return
	}
	p.rectangle(ws, 0, p.y.Rows, 0, p.set.strips(p.y.Cols))
}

// shares returns the shares of the product, made of strips and of tiles.
func (p *quantProduct) shares() grid {
	t := p.ep.Threads
	if t == nil {
		return grid{1, 1}
	}
	w := p.segs[0].W
	steps, bytes := 0, 0
	for i := range p.segs {
		steps += p.segs[i].W.k
		bytes += len(p.segs[i].W.panels)
	}
	parts := t.Parts(p.set.duration(w.precision, p.y.Rows, p.y.Cols, steps))
	if parts == 1 {
		return grid{1, 1}
	}
	height := p.set.tileRows(w.precision)
	return bestGrid(&work{
		threads: t.Size(), parts: parts, panels: p.set.strips(p.y.Cols), full: 1,
		tiles: (p.y.Rows + height - 1) / height, rows: p.y.Rows, unit: height,
		takes: float64(p.set.duration(w.precision, p.y.Rows, p.y.Cols, steps)),
		w:     float64(bytes),
	})
}

// Part computes a share, with memory of its own.
func (p *quantProduct) Part(i int) {
	ws := getWorkspace()
	defer ws.put()
	q := &ws.quantized
	*q = *p
	c, r := i%p.grid.cols, i/p.grid.cols
	strips, height := p.set.strips(p.y.Cols), p.set.tileRows(p.segs[0].W.precision)
	first, next := span(r, p.grid.rows, p.y.Rows, height)
	q.rectangle(ws, first, next, c*strips/p.grid.cols, (c+1)*strips/p.grid.cols)
}

// rectangle computes rows [top, bottom) of some strips.
func (p *quantProduct) rectangle(ws *workspace, top, bottom, strip, end int) {
	bytes := 0
	for i := range p.segs {
		bytes += p.segs[i].W.quads * 4 * stepBytes
	}
	precision := p.segs[0].W.precision
	// A block of rows is as large as the second-level cache allows, and whole tiles high. Blocks of
	// about the same height, and not a low one at the end, whose tiles would read all of W for few
	// rows.
	height := p.set.tileRows(precision)
	rows := max(quantBlock/max(bytes, 1)/height, 1) * height
	all := bottom - top
	blocks := (all + rows - 1) / rows
	rows = (all+blocks-1)/blocks + 1 // of a block at most
	p.pitch = p.set.stripPanels() * p.set.lanes()
	// A strip of a block is computed term by term, so only its sums need room.
	if len(p.segs) > 1 {
		p.sums = ws.floats(rows * p.pitch)
	}
	if p.set.halves(precision) {
		p.wide.place(ws, p.segs, rows)
		p.short.place(ws, &p.segs[0], rows, end-strip)
	}
	for b := range blocks {
		first, next := top+b*all/blocks, top+(b+1)*all/blocks
		p.wide.done = false
		p.narrow(first, next)
		for s := strip; s < end; s++ {
			p.strip(first, next, s)
		}
	}
}

// strip computes strip s of rows [first, next).
func (p *quantProduct) strip(first, next, s int) {
	lanes := p.set.lanes()
	panel, end := p.set.strip(p.y.Cols, s)
	j := panel * lanes
	t := &p.t
	t.vecs = end - panel
	t.tail = min(p.y.Cols-j, t.vecs*lanes) - (t.vecs-1)*lanes
	t.mask = 1<<t.tail - 1
	precision := p.segs[0].W.precision
	for i := range p.segs {
		p.segment(i, first, j)
		p.fetchAfter(i, j)
		t.done = 0
		for left := next - first; left > 0; {
			height, tiles := nextTiles(left, p.set.tileRows(precision))
			left -= height * tiles
			t.rows, t.tiles = height, tiles
			if i == 0 && p.short.x != nil && t.vecs == 2 && height != 2 {
				p.shortTiles(first, next, s)
			} else {
				p.tiles(first, next, i)
			}
		}
	}
}

// nextTiles returns the height of the next tiles of some rows, at most that of the highest tile,
// and their number. Heights differ by one at most, except that none is 7: see
// internal/gen/quant.go.
func nextTiles(rows, highest int) (height, tiles int) {
	all := (rows + highest - 1) / highest
	height, tiles = rows/all, all
	if high := rows % all; high > 0 {
		height, tiles = height+1, high
	}
	switch left := rows - height*tiles; {
	case rows == 7:
		return 4, 1 // and 3
	case height == 7:
		return 8, max(tiles/2, 1) // and 6 in place of two of 7, or 5 in place of 7 and 6
	case left == 7 && tiles > 1:
		return height, tiles - 1
	case left == 7: // after 8, 4 and 3 would follow, of which 3 takes as long as 4
		return 5, 3
	}
	return height, tiles
}

// fetchAfter has the kernel fetch the weights that come after those of term i from column j on.
func (p *quantProduct) fetchAfter(i, j int) {
	t := &p.t
	// What comes next is the same strip of the next term, or the next strip of the first one.
	if i++; i == len(p.segs) {
		i, j = 0, j+t.vecs*p.set.lanes()
	}
	w := p.segs[i].W
	from := j * w.column
	// Behind the last strip there is nothing to fetch. The kernel fetches in any case, so it gets
	// an address where nothing is lost.
	if from >= len(w.panels) {
		t.ahead, t.aheadEnd = (*byte)(unsafe.Pointer(t.w)), (*byte)(unsafe.Pointer(t.w))
		return
	}
	n := t.vecs * p.set.lanes() * w.column
	t.ahead, t.aheadEnd = &w.panels[from], &w.panels[min(from+n, len(w.panels))-1]
}

// tiles computes tiles of term i, of a block of rows [first, next).
func (p *quantProduct) tiles(first, next, i int) {
	if precision := p.segs[i].W.precision; !p.set.halves(precision) {
		p.set.tiles(&p.t, precision)
		return
	}
	p.widen(first, next)
	t, w := &p.t, &p.wide
	codes, row := t.x, t.xRow
	t.x, t.xRow, t.rowBegin = (*float32)(unsafe.Pointer(&w.words[w.at[i]])), uintptr(w.stride), &w.begin[i*w.rows]
	p.set.tiles(t, Int8)
	t.x, t.xRow = codes, row
}

// segment prepares the tile for term i, from row first and column j on.
func (p *quantProduct) segment(i, first, j int) {
	t, s := &p.t, &p.segs[i]
	w, x := s.W, s.Rows
	row := s.First + first*s.Step
	t.k = w.quads
	t.xRow = uintptr(s.Step * x.stride)
	// Without codes there is nothing to point at. The kernel then only does the epilogue of zeros.
	t.x, t.w = nil, nil
	if t.k > 0 {
		t.x = (*float32)(unsafe.Pointer(&x.codes[row*x.stride+s.Col*x.set.codeSize(x.precision)]))
		t.w = (*float32)(unsafe.Pointer(&w.panels[j*w.column]))
	}
	groups := x.groups()
	// A term reads columns of one group, whose scale and offset are the ones that count. Parameters
	// are pairs, by row and by group.
	param := 2 * row * groups
	if w.k > 0 {
		param += 2 * (s.Col / x.group)
	}
	t.rowScale, t.rowScaleRow = &x.params[param], uintptr(s.Step*groups)*8
	t.colScale, t.colSum = &w.scale[j], &w.sum[j]
	if w.begin != nil {
		t.begin = &w.begin[j]
	}
	t.flags = 0
	y, yRow := &p.y.Data[first*p.y.Stride+j], uintptr(p.y.Stride)*4
	// The sum of the terms before is in sums, and before the first term what is accumulated is in
	// y. The rest of the epilogue belongs to the last term.
	if i > 0 {
		t.flags, t.q, t.qRow = tileAdd, &p.sums[0], uintptr(p.pitch)*4
	} else if p.ep.Accumulate {
		t.flags, t.q, t.qRow = tileAdd, y, yRow
	}
	if i+1 < len(p.segs) {
		t.y, t.yRow = &p.sums[0], uintptr(p.pitch)*4
		return
	}
	t.y, t.yRow = y, yRow
	t.flags |= p.ep.lastFlags()
	if p.ep.Bias != nil {
		t.flags |= tileBias
	}
	t.pointAt(&p.ep, j)
	t.pointAtResidual(&p.ep, first, j)
}

// tilesGo computes tiles in Go. Numbers are words, and panels have eight columns.
func (t *quantTile) tilesGo() {
	const lanes = 8
	cols := t.vecs * lanes
	for ; t.tiles > 0; t.tiles-- {
		for range t.rows {
			i := uintptr(t.done)
			scale := unsafe.Slice(elem(t.rowScale, i*t.rowScaleRow), 2)
			var sums [2 * lanes]int32
			for l := range uintptr(t.k * 4) { // steps of two words
				x := (*[2]int16)(unsafe.Add(unsafe.Pointer(t.x), i*t.xRow+l*stepBytes))
				// Sums of integers are exact, so the order, which differs from that of assembly,
				// does not matter.
				x0, x1 := int32(x[0]), int32(x[1])
				w := unsafe.Slice((*[2]int16)(unsafe.Add(unsafe.Pointer(t.w), l*uintptr(cols)*stepBytes)), cols)
				for j := range w {
					sums[j] += x0*int32(w[j][0]) + x1*int32(w[j][1])
				}
			}
			for j := range uintptr(cols - lanes + t.tail) {
				v := float32(float32(float32(sums[j])**elem(t.colScale, j*4)) * scale[0])
				v += float32(scale[1] * *elem(t.colSum, j*4))
				*elem(t.y, i*t.yRow+j*4) = t.finish(v, i, j*4)
			}
			t.done++
		}
	}
}
