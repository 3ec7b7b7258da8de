package kernel

// A product y = epilogue(x·Wᵀ) is made of tiles: up to maxTileRows rows of y by a row of panels. A
// panel is as many columns of y as the accumulators of a tile are wide. W is packed panel by panel
// (pack.go), and within a panel step by step of k, so that it is read in the order of memory. x is
// read in place, an element at a time, with any strides.
//
// Every sum is one chain of fused multiply-adds over k, in order, starting with zero, except those
// of narrow products (narrow.go) and those of more than maxTerms terms, which are several such
// chains. Its bits don't depend on the place of the element in its tile, the number of rows, the
// instruction set, or how a chain is divided: a part of k that is not the first of its chain
// continues the sums of the part before.

// maxTerms is the length of the longest chain. Of a longer sum, every maxTerms terms are a term of
// a sum of their own, as if they were segments of a product: rounding errors of one long chain of
// float32s grow with its length, because the sum outgrows its terms. For vectors whose elements are
// 0.1, the error of one chain is 1.35 % after 10⁶ terms and 4.3 % after 10⁷; with chains of at most
// 2^14 terms it is 0.007 % after either (2026-11-23). The rule looks at k alone. It is far
// above what layers of networks have, whose products are divided and continued at will (Divisible).
const maxTerms = 1 << 14

// maxTileRows is the height of the highest tile. See internal/gen/gemm.go.
const maxTileRows = 6

const (
	// minGroup is the least size of a group. With 1 MB of cache, networks took 0.97 to 1 times as long
	// with 384 KB as with 512 KB, and 0.99 to 1.01 times as long with 256 KB (Zen 5, November 2026).
	minGroup = 384 << 10
	// manyTiles is how many tiles a product of larger groups has at least. Products of 196 rows, 1024
	// steps and cold weights took 1.06 times as long with 600 KB as with 384 KB (Sapphire Rapids,
	// 2026-11-26).
	manyTiles = 96
	// groupCols bounds the columns of a group, and so the memory for unfinished sums.
	groupCols = 1024
	// partSteps is the size of a part of a divided k.
	partSteps = 512
	// narrowTiles is the number of tiles of a narrow product whose sums are kept at once.
	narrowTiles = 16
)

var (
	// groupBytes is how much of W is multiplied with one tile of rows before the next tile, which
	// should find it in the second-level cache, beside the group that is fetched ahead (ahead.go).
	// With 2 MB, convolutions of 128 to 256 channels took 0.97 to 0.99 times as long with 600 KB as
	// with 384 KB, and those of 512 channels longer with 768 KB (Sapphire Rapids, 2026-11-26).
	groupBytes = max(minGroup, cacheBytes*3/10)
	// longPanel is the size above which a panel is divided along k. Sums of other panels stay in
	// registers.
	longPanel = max(512<<10, cacheBytes*3/8)
	// partTiles is the number of tiles, at most, that a part of W is multiplied with before the next
	// part. W is read again for each batch of tiles, and their sums need room in the cache. With 2 MB
	// and 16 tiles, convolutions of 512 channels took 1.02 times as long for 28² positions, and 1.05
	// for 14², whose 33 tiles left a batch of one (Sapphire Rapids, 2026-11-26).
	partTiles = max(16, cacheBytes>>20*33)
	// cacheBytes is the size of the second-level cache. Larger ones were not measured.
	cacheBytes = min(secondCache(), 2<<20)
)

// place is where sums are.
type place uint8

const (
	nowhere place = iota
	inY
	inSums
	inRest
)

// part is a part of the work on a tile: some steps of k of a segment.
type part struct {
	seg           *Segment
	w             *Weights // of the segment
	k0, steps     int
	flags         uint
	from, add, to place
	lanes         int // steps in lanes, whose sums are computed before the part; then it has no others
}

// product is a product in progress.
type product struct {
	set  kernelSet
	segs []Segment
	ep   Epilogue
	mul  float32 // a factor of the sums
	y    Matrix

	patches    *Patches   // x, or nil
	firstPatch int        // of y
	groups     []*Weights // of groups of channels, of which y, the segment and patches are the first; nil if there is one
	table      runTable

	parts   []part
	divided bool      // along k
	alone   bool      // the only tile of rows fetches a W that is larger than a cache: see fetchOwn
	far     bool      // whole rows of a y that does not stay in a cache are computed: see fetchResult
	terms   int       // finished ones, of which the sum consists: segments, or chains of a long one
	tiles   int       // of all rows
	batch   int       // tiles whose unfinished sums are kept at once
	cols    int       // of a group, which is multiplied with a batch
	sums    []float32 // of the finished segments
	rest    []float32 // of the finished parts of a segment
	pitch   int       // the distance of their rows
	share             // what is being computed
	grid    grid      // the shares of several threads
	i0      int       // the first row of the batch
	j0      int       // the first column of the group
	t       tile
	lanes   laneTile
	ahead   ahead
	next    stretch // the first one of the next product
	after   nextProduct
}

// compute computes y. The segments must fit, and y must have elements.
func (p *product) compute(ws *workspace) {
	p.plan(ws)
	p.planNext(ws)
	if p.grid = p.shares(); p.grid.count() > 1 {
		p.ep.Threads.Do(p.grid.count(), p)
		return
	}
	p.share = share{end: p.y.Cols, last: p.tiles}
	p.reserve(ws)
	p.rectangle()
}

// rectangle computes the share.
func (p *product) rectangle() {
	// Columns are the outer loop: a group of W stays in the second-level cache while all rows pass
	// by, and W is read from memory once. x, which is read again for every group, is usually
	// smaller.
	for j := p.j; j < p.end; j += p.cols {
		n := min(p.cols, p.end-j)
		if !p.divided {
			p.fetchAfterGroup(j, n)
		}
		// Batches of as many tiles each, as far as possible: a short one would not give W the time to
		// arrive.
		tiles := p.last - p.first
		batches := (tiles + p.batch - 1) / p.batch
		for b := range batches {
			p.group(p.first+b*tiles/batches, p.first+(b+1)*tiles/batches, j, n)
		}
	}
}

// plan divides the work.
func (p *product) plan(ws *workspace) {
	// How large a group is depends on the steps of all segments, because a tile meets the panels of
	// all of them before the next tile.
	k, steps := 0, 0
	for i := range p.segs {
		k += p.segs[i].k()
	}
	p.tiles = (p.y.Rows + maxTileRows - 1) / maxTileRows
	p.cols, steps = blocking(p.set, p.tiles, p.y.Cols, k)
	// A single tile reads W once, best in the order of memory, and without a pause: a group would not be
	// read again. Long sums go panel by panel, since there is no other order in which their parts follow
	// each other.
	if p.tiles == 1 {
		switch steps = 0; {
		case k > maxTerms:
			p.cols = p.set.panelCols()
		case len(p.segs) == 1:
			p.cols = p.set.padded(p.y.Cols)
		}
		p.alone = p.set == avx512Set && 4*k*p.y.Cols > cacheBytes || p.set == avx2Set && p.y.Rows > 1
	}
	p.divided = steps > 0
	p.parts = ws.parts[:0]
	for s := range p.segs {
		p.divide(s, steps)
	}
	ws.parts = p.parts
	// Tiles whose sums are stored once, in y, need no memory for unfinished ones. If k is divided,
	// every part of W meets partTiles tiles before the next part takes its place in the cache, and
	// their sums wait meanwhile. A narrow product waits, too: for the epilogue. The sums of several
	// whole segments stay in the first-level cache if one tile meets all segments before the next.
	switch {
	case len(p.parts) == 1 && p.parts[0].lanes == 0:
		p.batch = p.tiles
	case steps > 0:
		p.batch = partTiles
	case len(p.parts) == 1:
		p.batch = narrowTiles
	default:
		p.batch = 1
	}
}

// reserve takes memory for unfinished sums, and for the places of patches.
func (p *product) reserve(ws *workspace) {
	if p.patches != nil {
		p.reserveRuns(ws)
	}
	if len(p.parts) == 1 && p.parts[0].lanes == 0 {
		return
	}
	// Two buffers, because a chain starts at zero, and not with the sum of the terms before: that
	// sum waits in one, while the parts of a chain hand over what they have so far in the other.
	p.pitch = min(p.cols, p.set.padded(p.y.Cols))
	n := p.batch * maxTileRows * p.pitch
	p.sums = ws.floats(2 * n)
	p.sums, p.rest = p.sums[:n], p.sums[n:]
}

// blocking returns how many columns of a product of some tiles of rows and n columns are computed at a
// time, and how many steps of k, or 0 for all of them.
func blocking(set kernelSet, tiles, n, k int) (cols, steps int) {
	// Nothing fetches the first group ahead, unless the product before knew of it. So a product of few
	// tiles, which takes little longer than reading W, has small groups. One of many tiles has large
	// ones: x, which may not stay in the cache, is read again for each.
	group := minGroup
	if tiles >= manyTiles {
		group = groupBytes
	}
	width := set.panelCols()
	// Not even one panel stays in the cache if it is that long. Then a group is chosen for the
	// steps of a part.
	if panelBytes(set, k) > longPanel {
		k, steps = partSteps, partSteps
	}
	// A last panel that is not full ends a group. A product that fits in one group has at most one,
	// so it may be as wide as it is. Other groups are whole panels.
	if whole := set.padded(n); whole <= groupCols && 4*whole*k <= group {
		return whole, steps
	}
	return width * max(1, min(group/max(panelBytes(set, k), 1), groupCols/width)), steps
}

// divide appends the parts of segment s, each of at most the given number of steps, or one if steps
// is 0.
func (p *product) divide(s, steps int) {
	seg := &p.segs[s]
	var next *Segment
	if s+1 < len(p.segs) {
		next = &p.segs[s+1]
	}
	k, n := seg.k(), p.y.Cols
	if steps == 0 {
		steps = maxTerms
	}
	// A part ends where its chain ends, or after a number of steps. A segment without steps has a
	// part, too: its sums are zero, or those that it continues, and the epilogue is still to be
	// done.
	for l, more := 0, true; more; more = l < k {
		end := min(k, l-l%maxTerms+maxTerms) // of the chain
		t := part{seg: seg, w: seg.W, k0: l, steps: min(steps, end-l), to: inRest}
		if p.patches != nil && t.steps < k {
			t.steps = p.patches.steps(l, t.steps)
		}
		switch {
		case seg.isNarrow(next) && isNarrow(n, end-l):
			t.from, t.steps, t.lanes = inRest, 0, end-l
		case l%maxTerms > 0 || l == 0 && seg.Continue && s > 0:
			t.from = inRest
		case l == 0 && seg.Continue:
			t.from = inY
		}
		l += t.steps + t.lanes
		// The chain is finished, unless the next segment continues it.
		if l == end && (l < k || next == nil || !next.Continue) {
			p.finish(&t, next == nil && l == k)
		}
		p.parts = append(p.parts, t)
	}
}

// finish adds the epilogue of a term, which may be the last one, to its last part.
func (p *product) finish(t *part, last bool) {
	first := p.terms == 0
	p.terms++
	if p.mul != 1 {
		t.flags |= tileMul
	}
	// The sum of the terms before comes before the bias: the bias of a TDNN is added to its first
	// or to its last term, and the bits depend on it.
	if !first {
		t.add = inSums
	} else if p.ep.Accumulate && !p.segs[0].Continue {
		t.add = inY
	}
	if t.add != nowhere {
		t.flags |= tileAdd
	}
	if p.ep.Bias != nil && (first && p.ep.BiasFirst || last && !p.ep.BiasFirst) {
		t.flags |= tileBias
	}
	if !last {
		t.to = inSums
		return
	}
	t.to = inY
	t.flags |= p.ep.lastFlags()
}

// row returns the first row of a tile. Heights differ by one at most: seven rows are four and
// three, and not six and one, because reading W takes as long for one row as for three. The higher
// tiles come first, so that many of one height follow each other.
func (p *product) row(tile int) int { return tile*(p.y.Rows/p.tiles) + min(tile, p.y.Rows%p.tiles) }

// group computes columns [j, j+n) of the tiles of rows [first, last).
func (p *product) group(first, last, j, cols int) {
	p.i0, p.j0 = p.row(first), j
	width := p.set.panelCols()
	// Only the last panel of all may be partial. A kernel takes panels of one width, so it is a
	// call of its own.
	rest := cols % width
	p.t.mul = p.mul
	for s := range p.parts {
		part := &p.parts[s]
		p.t.k, p.t.flags = part.steps, part.flags
		p.t.xRow, p.t.xStep = part.seg.distances()
		if p.divided {
			p.fetchAfterPart(s, j, cols, last-first, last == p.last)
		}
		if p.patches != nil && part.steps > 0 {
			p.beginRuns(part)
		}
		// A tile of few steps takes less than half a microsecond. So what all of them have in common
		// is done before, and what is left has no divisions.
		both := cols > rest && rest > 0
		p.far = !both && cols == p.y.Stride && 4*p.y.Rows*cols > cacheBytes/2
		if !both {
			p.aim(part, j, max(cols/width, 1), min(cols, width))
		}
		i, rows, more := p.i0, p.y.Rows/p.tiles, p.y.Rows%p.tiles
		for at := first; at < last; {
			n := last - at
			if p.t.rows = rows; at < more {
				p.t.rows, n = rows+1, min(n, more-at)
			}
			n = p.together(part, n, both)
			if p.patches != nil && part.steps > 0 {
				n = min(n, p.placeRuns(part, i))
			}
			// The kernel of narrow products only adds up. What a tile does to its sums is then done
			// by a tile that has no steps, and continues what the lanes have left in rest.
			if part.lanes > 0 {
				p.narrowSums(part, i, p.t.rows)
			}
			switch {
			case p.groups != nil:
				p.runGroups(part, n, i)
			case both:
				p.aim(part, j, cols/width, width)
				p.run(part, n, i, j)
				p.aim(part, j+cols-rest, 1, rest)
				p.run(part, n, i, j+cols-rest)
			default:
				p.run(part, n, i, j)
			}
			at, i = at+n, i+n*p.t.rows
		}
	}
}

// pairBytes is how much of x several tiles read that meet whole panels first and then the last one, which is
// not: it should be in the first-level cache then.
const pairBytes = 8 << 10

// together returns how many of n tiles of one height a kernel computes in one go.
func (p *product) together(part *part, n int, both bool) int {
	if part.lanes > 0 || p.far && p.ahead.bytes > 0 {
		return 1
	}
	if both {
		n = min(n, pairBytes/(4*max(part.steps, 1)*p.t.rows)+1)
	}
	return p.ahead.reach(n)
}

// aim points tiles at some panels of the given width from column j on.
func (p *product) aim(part *part, j, panels, width int) {
	t := &p.t
	t.span(p.set, panels, width)
	if t.k > 0 { // or there may be no element of x and of W to point at
		t.w, t.wStep, t.wSkip = part.seg.W.panel(j, t.vecs*p.set.lanes(), part.k0, t.k)
	}
	t.pointAt(&p.ep, j)
}

// run computes a part of the columns that tiles are aimed at, from column j on, for n tiles, which begin at
// row i.
func (p *product) run(part *part, n, i, j int) {
	t := &p.t
	move := t.move
	t.tiles = n
	if t.k > 0 && p.patches == nil {
		t.x = part.seg.at(i, part.k0)
	}
	t.p, t.pRow = p.at(part.from, i, j)
	t.q, t.qRow = p.at(part.add, i, j)
	t.y, t.yRow = p.at(part.to, i, j)
	t.pointAtResidual(&p.ep, i, j)
	switch {
	case p.alone:
		t.fetchOwn(p.set)
	case p.far && part.to == inY && p.ahead.canWait(t):
		t.fetchResult(p.set)
	default:
		p.ahead.during(t)
	}
	p.set.tile(t)
	t.move = move
}

// at returns the address of element (i, j) of a place, and the distance of rows in bytes.
func (p *product) at(w place, i, j int) (*float32, uintptr) {
	switch w {
	case inY:
		return &p.y.Data[i*p.y.Stride+j], uintptr(p.y.Stride) * 4
	case inSums:
		return &p.sums[(i-p.i0)*p.pitch+j-p.j0], uintptr(p.pitch) * 4
	case inRest:
		return &p.rest[(i-p.i0)*p.pitch+j-p.j0], uintptr(p.pitch) * 4
	}
	return nil, 0
}
