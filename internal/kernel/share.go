package kernel

import "time"

// A product of several threads is divided in shares: rectangles of y, made of whole tiles and whole
// panels, so that each is computed as it would be in one. With shares of columns a thread reads only
// a part of W, but of each row of x a piece that another thread has made. With shares of rows it finds
// its rows in its own cache, since the products before and after have the same rows, but reads all of W.

// share is some columns of some tiles of rows of a product.
type share struct {
	j, end      int // columns
	first, last int // tiles
}

// grid says in how many shares columns and rows are divided.
type grid struct{ cols, rows int }

// rates are the multiply-adds in a nanosecond of one core, roughly: of Emerald Rapids, and of Neoverse
// as documented (November 2026).
var rates = [...]float64{blasSet: 1, goSet: 0.3, neonSet: 20, avx2Set: 40, avx512Set: 85}

// nearRate and farRate are how many bytes of weights a core reads in a nanosecond, if they stay in
// its second-level cache and if not.
const (
	nearRate = 120
	farRate  = 28
	nearSize = 1 << 20
)

// duration is about how long a product with the given rows, columns and steps takes.
func (s kernelSet) duration(rows, cols, steps int) time.Duration {
	compute := float64(rows) * float64(cols) * float64(steps) / rates[s]
	bytes, rate := 4*float64(cols)*float64(steps), float64(nearRate)
	if bytes > nearSize {
		rate = farRate
	}
	return time.Duration(max(compute, bytes/rate))
}

// duration is about how long a quantized product takes.
func (s quantSet) duration(p Precision, rows, cols, steps int) time.Duration {
	rate := quantRates[s]
	if s.words(p) && !s.words(Int8) && !s.halves(Int8) {
		rate /= 2
	}
	compute := float64(rows) * float64(cols) * float64(steps) / rate
	return time.Duration(max(compute, float64(cols)*float64(steps)/farRate))
}

// quantRates are rates for quantized products with eight bits.
var quantRates = [...]float64{quantGo: 0.5, quantAVX2: 60, quantAVXVNNI: 150, quantAVX512: 300, quantNEON: 20, quantDot: 60}

// widest returns how many vectors are in the widest of some shares of panels, which have full
// vectors each, except that the last panel lacks some.
func widest(shares, panels, full, lacks int) int {
	few, more := panels/shares*full, (panels/shares+1)*full // in a share, of which the last is never narrower
	switch panels % shares {
	case 0:
		if shares == 1 {
			return few - lacks
		}
		return few
	case 1:
		return max(few, more-lacks)
	}
	return more
}

// divideAmong chooses the shares for at most the given number of parts of a product.
func (s kernelSet) divideAmong(threads, parts, rows, cols, steps int) grid {
	full := s.panelCols() / s.lanes()
	panels := (cols + s.panelCols() - 1) / s.panelCols()
	return bestGrid(&work{
		threads: threads, parts: parts, panels: panels, full: full, lacks: panels*full - s.padded(cols)/s.lanes(),
		tiles: (rows + maxTileRows - 1) / maxTileRows, rows: rows, unit: 1,
		takes: float64(rows) * float64(cols) * float64(steps) / rates[s],
		w:     4 * float64(cols) * float64(steps),
	})
}

// work is what is known about a product that is to be divided.
type work struct {
	threads, parts      int     // parts at most
	panels, full, lacks int     // panels of full vectors each, of which the last lacks some
	tiles               int     // of rows
	rows, unit          int     // shares have a multiple of unit rows
	takes               float64 // ns of one thread
	w                   float64 // bytes
}

const (
	// readRate is how many bytes of weights cost a share a nanosecond, beside what it computes: they
	// are fetched ahead, but not always in time, and hardly with fewer than manyToFetch tiles (farRate). foreignRow
	// is what a row of x costs of which another thread has made a piece, in nanoseconds: a processor
	// waits for the beginning of the piece, which is in the cache of another one, and foresees the
	// rest.
	//
	// Layers of TDNN-F with two threads: shares of columns, and not of rows, took 13 µs longer for
	// 0.6 MB of weights and 200 rows, and 16 µs less for 4 MB and 54 rows. Six shares of rows for a
	// thread took 100 µs longer than one for 2 MB (Sapphire Rapids, virtual, November 2026).
	readRate    = 100
	manyToFetch = 3
	foreignRow  = 160
)

// bestGrid returns the best shares.
func bestGrid(k *work) (best grid) {
	best = grid{1, 1}
	least := k.cost(best)
	for cols := 1; cols <= min(k.parts, k.panels); cols++ {
		for rows := 1; rows <= min(k.parts/cols, k.tiles); rows++ {
			g := grid{cols, rows}
			// Of choices that are as good, one with more shares suffers less from a thread that comes
			// late.
			if cost := k.cost(g); cost < 0.99*least || cost < 1.01*least && g.count() > best.count() {
				best, least = g, cost
			}
		}
	}
	return best
}

// cost is about how long the thread takes that has the largest share in each of its turns, in
// nanoseconds.
func (k *work) cost(g grid) float64 {
	turns := float64((g.count() + k.threads - 1) / k.threads)
	units := (k.rows + k.unit - 1) / k.unit
	width := float64(widest(g.cols, k.panels, k.full, k.lacks)) / float64(widest(1, k.panels, k.full, k.lacks))
	height := float64((units+g.rows-1)/g.rows) / float64(units)
	rate := float64(readRate)
	if (k.tiles+g.rows-1)/g.rows < manyToFetch {
		rate = farRate
	}
	// Weights that one share leaves in the cache are seldom all there for the next, but rows of x are.
	read := turns * k.w / float64(g.cols) / rate
	foreign := float64(k.rows) / float64(g.rows) * max(1, turns/float64(g.cols)) * (1 - 1/float64(g.cols)) * foreignRow
	return float64(turns*width*height*k.takes) + read + float64(foreign)
}

// count returns the number of shares.
func (g grid) count() int { return g.cols * g.rows }

// share returns share i of a product with the given columns and tiles. Shares of the same rows follow
// each other.
func (g grid) share(i, width, cols, tiles int) share {
	panels := (cols + width - 1) / width
	c, r := i%g.cols, i/g.cols
	return share{
		j: c * panels / g.cols * width, end: min((c+1)*panels/g.cols*width, cols),
		first: r * tiles / g.rows, last: (r + 1) * tiles / g.rows,
	}
}

// shares returns the shares of a planned product, one if it is not worth dividing.
func (p *product) shares() grid {
	t := p.ep.Threads
	if t == nil {
		return grid{1, 1}
	}
	steps := 0
	for i := range p.segs {
		steps += p.segs[i].k()
	}
	parts := t.Parts(p.set.duration(p.y.Rows, p.y.Cols, steps))
	cols := p.y.Cols
	for i := range p.parts {
		if p.parts[i].lanes > 0 {
			cols = 1 // the kernel of narrow products computes all of them
		}
	}
	if parts == 1 {
		return grid{1, 1}
	}
	g := p.set.divideAmong(t.Size(), parts, p.y.Rows, cols, steps)
	// Shares have as many tiles each, so that their rows differ by one at most.
	p.tiles = (p.tiles + g.rows - 1) / g.rows * g.rows
	return g
}

// Part computes a share, with memory of its own.
func (p *product) Part(i int) {
	ws := getWorkspace()
	defer ws.put()
	q := &ws.product
	*q = *p
	q.share = p.grid.share(i, p.set.panelCols(), p.y.Cols, p.tiles)
	q.reserve(ws)
	q.next = p.nextOf(i)
	q.rectangle()
}

// nextOf returns what the thread that computes share i reads first after it: of its next share or, if i
// is probably its last one, of the next product. The caller takes shares from the first one on, and
// helpers from the last one back. They will take those of the next product likewise, which is probably
// divided for as many rows. Without, the first group of columns of each share is waited for: with 16
// shares of 2048 columns and two threads, products of 32 rows took 1.1 times as long (Zen 4, 2026-11-30).
func (p *product) nextOf(i int) stretch {
	t, n, count := p.ep.Threads, &p.after, p.grid.count()
	turns := max(1, count/t.Size())
	helper, following := i >= turns, i+1
	if helper {
		following = i - 1
	}
	switch {
	case !helper && i < turns-1, helper && i > count-turns:
		s, parts := p.grid.share(following, p.set.panelCols(), p.y.Cols, p.tiles), p.parts
		if p.divided {
			parts = parts[:1]
		}
		return stretch{parts, s.j, min(s.j+p.cols, s.end)}
	case n.cols == 0 || helper && i != count-turns:
		return stretch{}
	}
	g := grid{1, 1}
	if takes := p.set.duration(p.y.Rows, n.cols, n.steps); takes >= minHot {
		g = p.set.divideAmong(t.Size(), t.partsOf(takes), p.y.Rows, n.cols, n.steps)
	}
	k := 0
	if helper {
		if k = g.count() - 1; k == 0 {
			return stretch{} // the caller computes it alone
		}
	}
	s := g.share(k, p.set.panelCols(), n.cols, p.tiles)
	return stretch{p.next.parts, s.j, min(s.j+p.next.end-p.next.j, s.end)}
}

// ProductTime is about how long a product of float32s takes one thread.
func ProductTime(rows, cols, steps int) time.Duration { return bestSet.duration(rows, cols, steps) }
