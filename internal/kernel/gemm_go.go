package kernel

import (
	"math"
	"unsafe"
)

// tileGo computes a tile in Go.
func (s kernelSet) tileGo(t *tile) {
	cols := t.vecs * s.lanes()
	stored := cols - s.lanes() + t.tail
	var sums chainSums
	for panel := range t.panels {
		// Two rows at a time, so that the elements of W are loaded half as often. The sums are the
		// same chains as in assembly, because rows do not meet.
		for i := 0; i < t.rows; i += 2 {
			rows := min(2, t.rows-i)
			for r := range rows {
				for j := range stored {
					sums[r*cols+j] = t.begun(uintptr(i+r), uintptr(panel*cols+j)*4)
				}
			}
			if t.k > 0 { // else there are no factors to point at
				w := elem(t.w, uintptr(panel)*(uintptr(t.k)*t.wStep+t.wSkip))
				t.sumGo(i, rows, w, cols, &sums)
			}
			for r := range rows {
				for j := range stored {
					c := uintptr(panel*cols+j) * 4
					*elem(t.y, uintptr(i+r)*t.yRow+c) = t.finish(sums[r*cols+j], uintptr(i+r), c)
				}
			}
		}
	}
}

// sumGo continues the sums of one row or two, from row i on.
func (t *tile) sumGo(i, rows int, w *float32, cols int, sums *chainSums) {
	if t.runs == nil {
		chainsGo(elem(t.x, uintptr(i)*t.xRow), elem(t.x, uintptr(i+rows-1)*t.xRow), t.xStep, w, t.wStep, cols, t.k, sums)
		return
	}
	for n, list := range unsafe.Slice(t.runs, t.k/t.run) {
		chainsGo(elem(list[i], t.move), elem(list[i+rows-1], t.move), 4, elem(w, uintptr(n*t.run)*t.wStep), t.wStep, cols, t.run, sums)
	}
}

// chainSums are the sums of two rows of a panel of 8 or 16 columns.
type chainSums [2 * 16]float32

// chainsGo continues the sums of two rows, whose elements are xStep bytes apart, for k steps of a
// panel, wStep bytes apart. It takes several sums at a time, because each step of a sum waits for
// the one before.
func chainsGo(x0, x1 *float32, xStep uintptr, w *float32, wStep uintptr, cols, k int, sums *chainSums) {
	for j := 0; j < cols; j += 2 {
		a, b, c, d := sums[j], sums[j+1], sums[cols+j], sums[cols+j+1]
		// The products are exact in double precision, and almost always the sum, rounded to double
		// precision and then to single, is the one that is rounded once. So the slow way is needed
		// for all four as soon as one needs it, which is rare.
		for l := range uintptr(k) {
			u, v := *elem(x0, l*xStep), *elem(x1, l*xStep)
			at := l*wStep + uintptr(j)*4
			w0, w1 := *elem(w, at), *elem(w, at+4)
			a64, b64, c64, d64 := mulAdd(u, w0, a), mulAdd(u, w1, b), mulAdd(v, w0, c), mulAdd(v, w1, d)
			if roundsOnce(a64) && roundsOnce(b64) && roundsOnce(c64) && roundsOnce(d64) {
				a, b, c, d = float32(a64), float32(b64), float32(c64), float32(d64)
			} else {
				a, b, c, d = fma32(u, w0, a), fma32(u, w1, b), fma32(v, w0, c), fma32(v, w1, d)
			}
		}
		sums[j], sums[j+1], sums[cols+j], sums[cols+j+1] = a, b, c, d
	}
}

// begun returns the sum to continue in row i, at offset c in bytes.
func (t *tile) begun(i, c uintptr) float32 {
	if t.p == nil {
		return 0
	}
	return *elem(t.p, i*t.pRow+c)
}

// finish returns the element for a sum in row i, at offset c in bytes.
func (t *tile) finish(v float32, i, c uintptr) float32 {
	if t.flags&tileMul != 0 {
		v = float32(v * t.mul)
	}
	if t.flags&tileAdd != 0 {
		v += *elem(t.q, i*t.qRow+c)
	}
	if t.flags&tileBias != 0 {
		v += *elem(t.bias, c)
	}
	if t.flags&tileReLU != 0 && v < 0 {
		v = 0
	}
	if t.flags&tileScale != 0 {
		v = float32(v**elem(t.scale, c)) + *elem(t.offset, c)
	}
	if t.flags&tileResidual != 0 {
		v = float32(t.alpha**elem(t.r, i*t.rRow+c)) + v
	}
	if t.flags&tileLastReLU != 0 && v < 0 {
		v = 0
	}
	return v
}

// elem returns the element at an offset from p, in bytes.
func elem(p *float32, bytes uintptr) *float32 {
	return (*float32)(unsafe.Add(unsafe.Pointer(p), bytes))
}

// mulAdd returns x·y + z, rounded to double precision. The product is exact.
func mulAdd(x, y, z float32) float64 { return float64(float64(x)*float64(y)) + float64(z) }

// roundsOnce reports whether s, a number rounded to double precision, rounds to the same float32 as
// the exact number: it does if s is zero, or at least the smallest normal float32, and not halfway
// between two float32s. Then s is on the same side of the halfway point as the exact number.
func roundsOnce(s float64) bool {
	b := math.Float64bits(s)
	return b&(1<<29-1) != 1<<28 && b<<1-1 >= (1023-126)<<53
}

// fma32 returns x·y + z with one rounding. It rounds the sum to odd in double precision (an inexact
// sum goes to the neighbour whose last bit is set). Rounding that to the much shorter float32 gives
// the same as a single rounding.
func fma32(x, y, z float32) float32 {
	p, a := float64(float64(x)*float64(y)), float64(z)
	s := p + a
	if roundsOnce(s) {
		return float32(s)
	}
	// Knuth's two-sum: b is what s has got of a, and e what rounding has lost. It is exact, as
	// every operation here is one of doubles that can't overflow.
	b := s - p
	e := (p - (s - b)) + (a - b) // s + e is the exact sum
	// Rounding to odd: of the two doubles around the exact sum, the one whose last bit is set. It
	// is no tie of the shorter format, and on the same side of all ties as the exact sum, so that
	// the second rounding does what a single one would do. s is one of the two, so it moves towards
	// the exact sum if its last bit is not set.
	if e != 0 && e == e {
		if bits := math.Float64bits(s); bits&1 == 0 {
			if (e > 0) == (s > 0) {
				bits++
			} else {
				bits--
			}
			s = math.Float64frombits(bits)
		}
	}
	return float32(s)
}
