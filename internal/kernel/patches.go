package kernel

import "unsafe"

// Patches are a factor x whose rows lie in an image: what a window shows at each of its positions.
// They overlap, and are read where they are.
//
// An image has planes, lines and pixels, in this order; sizes of 1 leave dimensions out. Several images
// may follow each other. A patch has the Channels elements of each pixel in the window, and zeros
// where the window reaches beyond the image.
type Patches struct {
	Data     []float32 // from the first channel that is used
	Pixel    int       // the distance of pixels in Data
	Channels int
	// The sizes of the image, of the result and of the window, the distances of positions and of the
	// pixels in the window, and how far the first position is before the image.
	In, Out, Size, Stride, Dilation, Before [3]int
}

// MulPatches computes y = ep(x·Wᵀ), where the rows of x are patches, from one on.
func (p *Weights) MulPatches(x *Patches, first int, ep *Epilogue, y Matrix) {
	n, k := p.shape()
	if y.Cols != n {
		panic(errShape)
	}
	checkApart(&y)
	checkEpilogue(ep, &y)
	if y.Rows == 0 || y.Cols == 0 {
		return
	}
	x.check(first, y.Rows, k)
	ws := getWorkspace()
	defer ws.put()
	if currentSet() == blasSet || p.set == blasSet || !p.Divisible() {
		p.mulCopies(ws, x, first, *ep, y)
		return
	}
	ws.segs[0] = Segment{W: p}
	product := ws.begin(p.set, ws.segs[:], ep, 1, &y)
	product.patches, product.firstPatch = x, first
	product.compute(ws)
}

// MulPatchesGroups is MulPatches for groups of channels that follow each other in x and in y, each with its own weights, of one
// shape. It reports false, and does nothing, unless groups have few weights: then finding patches takes as long as multiplying
// them, and all groups have theirs equally far apart.
func (x *Patches) MulPatchesGroups(first int, weights []*Weights, ep *Epilogue, y Matrix) bool {
	w, set := weights[0], weights[0].current()
	n, k := w.shape()
	if y.Cols != n*len(weights) {
		panic(errShape)
	}
	checkApart(&y)
	checkEpilogue(ep, &y)
	if y.Rows == 0 || y.Cols == 0 {
		return true
	}
	if x.check(first, y.Rows, k); x.Channels*len(weights) > x.Pixel || len(x.Data)%x.Pixel != 0 {
		panic(errShape)
	}
	if set == blasSet || n > set.panelCols() || k > maxTerms || w.isNarrow() || 4*n*k*len(weights) > minGroup || panelBytes(set, k) > longPanel {
		return false
	}
	for _, v := range weights {
		if cols, steps := v.shape(); cols != n || steps != k || v.set != set {
			return false
		}
	}
	ws := getWorkspace()
	defer ws.put()
	ws.segs[0] = Segment{W: w}
	part := Matrix{Rows: y.Rows, Cols: n, Stride: y.Stride, Data: y.Data}
	product := ws.begin(set, ws.segs[:], ep, 1, &part)
	product.patches, product.firstPatch, product.groups, product.ep.Next = x, first, weights, nil
	product.compute(ws)
	return true
}

// runGroups computes n tiles, which begin at row i, for each group of channels.
func (p *product) runGroups(part *part, n, i int) {
	t, cols := &p.t, p.y.Cols
	move := t.move
	for g, w := range p.groups {
		t.w, t.wStep, t.wSkip = w.panel(0, t.vecs*p.set.lanes(), part.k0, t.k)
		t.pointAt(&p.ep, g*cols)
		t.move = move + uintptr(4*g*p.patches.Channels)
		p.run(part, n, i, g*cols)
	}
}

// Divisible reports whether products can be divided along k: see the function Divisible.
func (p *Weights) Divisible() bool {
	_, k := p.shape()
	return !p.isNarrow() && k <= maxTerms
}

// check panics unless the patches are those of some rows, of length k, and in Data.
func (x *Patches) check(first, rows, k int) {
	// What is computed from these numbers must not overflow.
	const most = 1 << 60
	length, positions, pixels := x.Channels, 1, 1
	ok := x.Channels >= 1 && x.Pixel >= x.Channels && first >= 0
	for d := range x.In {
		ok = ok && x.In[d] >= 0 && x.Out[d] >= 1 && x.Size[d] >= 1 && x.Stride[d] >= 0 && x.Dilation[d] >= 0 &&
			reaches(length, x.Size[d], k) && reaches(positions, x.Out[d], most) && reaches(pixels, x.In[d], most) &&
			reaches(x.Out[d], x.Stride[d], most) && reaches(x.Size[d], x.Dilation[d], most) && -most <= x.Before[d] && x.Before[d] <= most
		if !ok {
			panic(errShape)
		}
		length, positions, pixels = length*x.Size[d], positions*x.Out[d], pixels*x.In[d]
	}
	last := x.Out[2]*x.Stride[2] + x.Size[2]*x.Dilation[2] + max(x.Before[2], -x.Before[2])
	images := (first + rows - 1) / positions
	if length != k || !reaches(last, x.Pixel, most) || first+rows < first || !reaches(images+1, pixels, most) || !reaches((images+1)*pixels, x.Pixel, most) ||
		pixels > 0 && len(x.Data) < ((images+1)*pixels-1)*x.Pixel+x.Channels {
		panic(errShape)
	}
}

// line is the number of elements of a line of the window.
func (x *Patches) line() int { return x.Size[2] * x.Channels }

// A position is one of the window.
type position struct{ image, plane, line, at int }

// position returns where row i is.
func (x *Patches) position(i int) position {
	line, at := i/x.Out[2], i%x.Out[2]
	plane, line := line/x.Out[1], line%x.Out[1]
	return position{plane / x.Out[0], plane % x.Out[0], line, at}
}

// next is the position of the next row.
func (x *Patches) next(p position) position {
	if p.at++; p.at < x.Out[2] {
		return p
	}
	if p.at, p.line = 0, p.line+1; p.line < x.Out[1] {
		return p
	}
	if p.line, p.plane = 0, p.plane+1; p.plane < x.Out[0] {
		return p
	}
	return position{image: p.image + 1}
}

// begin returns where in Data the line of the image begins that line (i, j) of the window shows, or -1 if
// it is beyond the image.
func (x *Patches) begin(p position, i, j int) int {
	plane := p.plane*x.Stride[0] - x.Before[0] + i*x.Dilation[0]
	line := p.line*x.Stride[1] - x.Before[1] + j*x.Dilation[1]
	if plane < 0 || plane >= x.In[0] || line < 0 || line >= x.In[1] {
		return -1
	}
	return ((p.image*x.In[0]+plane)*x.In[1] + line) * x.In[2] * x.Pixel
}

// inner returns the positions in dimension d, [lo, hi), at which the whole window is in the image.
func (x *Patches) inner(d int) (lo, hi int) {
	last := x.In[d] - 1 - (x.Size[d]-1)*x.Dilation[d] + x.Before[d] // times the stride, for the last one
	switch step := x.Stride[d]; {
	case last < 0, step == 0 && x.Before[d] > 0:
		return 0, 0
	case step == 0:
		return 0, x.Out[d]
	default:
		return max(0, (x.Before[d]+step-1)/step), min(x.Out[d], last/step+1)
	}
}

// copyPatch copies the patch at a position.
func (x *Patches) copyPatch(dst []float32, p position) {
	left := p.at*x.Stride[2] - x.Before[2]
	for l := range x.Size[0] * x.Size[1] {
		begin := x.begin(p, l/x.Size[1], l%x.Size[1])
		for e := range x.Size[2] {
			pixel := dst[:x.Channels]
			dst = dst[x.Channels:]
			if at := left + e*x.Dilation[2]; begin >= 0 && at >= 0 && at < x.In[2] {
				copy(pixel, x.Data[begin+at*x.Pixel:])
			} else {
				clear(pixel)
			}
		}
	}
}

// copiedRows is how many patches mulCopies copies at a time.
const copiedRows = 96

// mulCopies is MulPatches with copies, for sums that are not chains of ours.
func (p *Weights) mulCopies(ws *workspace, x *Patches, first int, ep Epilogue, y Matrix) {
	_, k := p.shape()
	n := min(y.Rows, copiedRows)
	m := Matrix{Rows: n, Cols: k, Stride: k, Data: ws.floats(n * k)}
	for i := 0; i < y.Rows; i += copiedRows {
		part, e := Rows(m, 0, min(copiedRows, y.Rows-i)), ep
		for r := range part.Rows {
			x.copyPatch(Row(part, r), x.position(first+i+r))
		}
		if ep.Alpha != 0 {
			e.Residual = Rows(ep.Residual, i, part.Rows)
		}
		p.Mul(part, e, Rows(y, i, part.Rows))
	}
}

// runs point at where a run of each row of a tile begins.
type runs [maxTileRows]*float32

// A runTable says where the runs of the rows of a tile are.
type runTable struct {
	// Tiles whose windows are in the image, all of them, have their runs as far from those of another one
	// as their windows are. So one list serves them all.
	inner  []runs
	part   *part // that it is for, or nil
	rows   int   // of the tile that it was made for
	origin int   // of the window of this tile
	lo, hi [3]int

	other []runs // of one tile

	// What all tiles of a part have in common.
	innerRun, otherRun int // elements of a run
	innerEnd, otherEnd uintptr
	begin              windowPlace

	zeros []float32
	at    position // of the last tile
	row   int      // the same as a number
}

// steps returns how many of at most the given number of steps a part of the sums may have, from step
// l on: whole lines of the window, or else whole pixels of a line, or else some channels of a pixel.
// So the runs of a part are of one length.
func (x *Patches) steps(l, most int) int {
	switch line := x.line(); {
	case most >= line:
		return most - most%line
	case most >= x.Channels:
		return min(most-most%x.Channels, line-l%line)
	default:
		return min(most, x.Channels-l%x.Channels)
	}
}

// reserveRuns takes memory for the table.
func (p *product) reserveRuns(ws *workspace) {
	x, table := p.patches, &p.table
	inner, other := 0, 0
	for i := range p.parts {
		n := p.parts[i].steps
		inner, other = max(inner, n/x.run(n, true)), max(other, n/x.run(n, false))
	}
	if cap(ws.runs) < inner+other {
		ws.runs = make([]runs, inner+other)
	}
	ws.runs = ws.runs[:inner+other]
	*table = runTable{inner: ws.runs[:inner], other: ws.runs[inner:], zeros: ws.floats(x.line() + len(p.groups)*x.Channels)}
	clear(table.zeros)
	for d := range table.lo {
		table.lo[d], table.hi[d] = x.inner(d)
	}
}

// run returns the length of the runs of a part of the sums. Pixels side by side are one run, if all are
// in the image.
func (x *Patches) run(steps int, inner bool) int {
	n := x.Channels
	if inner && (x.Size[2] == 1 || x.Dilation[2] == 1 && x.Pixel == x.Channels) {
		n = x.line()
	}
	return max(min(n, steps), 1)
}

// windowPlace is where a part begins in a window: at an element of a line.
type windowPlace struct{ plane, line, pixel, channel, element int }

// beginRuns prepares what all tiles of a part have in common.
func (p *product) beginRuns(part *part) {
	x, table := p.patches, &p.table
	end := func(list []runs, run int) uintptr {
		return uintptr(unsafe.Pointer(unsafe.SliceData(list))) + uintptr(part.steps/run)*unsafe.Sizeof(runs{})
	}
	table.innerRun, table.otherRun = x.run(part.steps, true), x.run(part.steps, false)
	table.innerEnd, table.otherEnd = end(table.inner, table.innerRun), end(table.other, table.otherRun)
	l, e := part.k0/x.line(), part.k0%x.line()
	table.begin = windowPlace{plane: l / x.Size[1], line: l % x.Size[1], pixel: e / x.Channels, channel: e % x.Channels, element: e}
}

// placeRuns points the tile, which begins at row i, at its runs of a part. It returns how many tiles as high, one
// after the other, have theirs equally far apart.
func (p *product) placeRuns(part *part, i int) int {
	x, t, table := p.patches, &p.t, &p.table
	row, at := p.firstPatch+i, table.at
	if at.at += row - table.row; row < table.row || at.at >= x.Out[2] {
		at = x.position(row)
	}
	table.at, table.row = at, row
	if !table.isInner(at, t.rows) {
		t.runs, t.runsEnd, t.run, t.move = unsafe.SliceData(table.other), table.otherEnd, table.otherRun, 0
		p.place(table.other, part, at)
		return 1
	}
	t.runs, t.runsEnd, t.run = unsafe.SliceData(table.inner), table.innerEnd, table.innerRun
	origin := x.begin(at, 0, 0) + (at.at*x.Stride[2]-x.Before[2])*x.Pixel
	if table.part != part || table.rows < t.rows {
		table.part, table.rows, table.origin = part, t.rows, origin
		p.place(table.inner, part, at)
	}
	t.move, t.moveTile = uintptr((origin-table.origin)*4), uintptr(4*t.rows*x.Stride[2]*x.Pixel)
	return (table.hi[2] - at.at) / t.rows
}

// isInner reports whether some rows from a position on are on one line, and their whole windows in the
// image.
func (r *runTable) isInner(p position, rows int) bool {
	return p.at >= r.lo[2] && p.at+rows <= r.hi[2] && p.line >= r.lo[1] && p.line < r.hi[1] && p.plane >= r.lo[0] && p.plane < r.hi[0]
}

// place points a list at the runs of the tile, which begins at a position.
func (p *product) place(list []runs, part *part, at position) {
	x, run, from := p.patches, p.t.run, &p.table.begin
	list = list[:part.steps/run]
	// A line has as many runs as are left of it. Behind the first one, whose end may be that of the
	// part, lines are whole.
	most := (x.line() - from.element + run - 1) / run
	step := max(run/x.Channels, 1) * x.Dilation[2]
	stepBytes, zeros, data, channel := 4*step*x.Pixel, &p.table.zeros[0], x.Data, from.channel
	for r := range p.t.rows {
		plane, line := at.plane*x.Stride[0]-x.Before[0]+from.plane*x.Dilation[0], at.line*x.Stride[1]-x.Before[1]+from.line*x.Dilation[1]
		left := at.at*x.Stride[2] - x.Before[2] + from.pixel*x.Dilation[2]
		j := from.line
		for rest := list; len(rest) > 0; {
			n := min(most, len(rest))
			inside := plane >= 0 && plane < x.In[0] && line >= 0 && line < x.In[1]
			begin, pixel, k := ((at.image*x.In[0]+plane)*x.In[1]+line)*x.In[2]*x.Pixel+channel, left, 0
			if !inside {
				pixel = x.In[2]
			}
			// The pixels of a longer run are in the image, all of them. Otherwise some elements of the
			// line are beside it, at both ends.
			for ; k < n && pixel < 0; k++ {
				rest[k][r] = zeros
				pixel += step
			}
			if k < n && pixel < x.In[2] {
				first, at := unsafe.Pointer(&data[begin+pixel*x.Pixel:][:run][0]), 0
				for ; k < n && pixel < x.In[2]; k++ {
					rest[k][r] = (*float32)(unsafe.Add(first, at)) // in data, as all pixels: see check
					pixel, at = pixel+step, at+stepBytes
				}
			}
			for ; k < n; k++ {
				rest[k][r] = zeros
			}
			rest = rest[n:]
			if j++; j < x.Size[1] {
				line += x.Dilation[1]
			} else {
				j, line, plane = 0, line-(x.Size[1]-1)*x.Dilation[1], plane+x.Dilation[0]
			}
		}
		at = x.next(at)
	}
}
