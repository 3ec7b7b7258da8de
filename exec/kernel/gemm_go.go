package kernel

import (
	"math"
	"unsafe"
)

// tileGo is what the kernels compute, as Go that is meant to be read.
func tileGo(t *tile, lanes int) {
	cols := t.vecs * lanes
	stored := cols - lanes + t.tail
	for panel := range t.panels {
		w := elem(t.w, uintptr(panel)*(uintptr(t.k*cols)*4+t.wSkip))
		for i := range t.rows {
			for j := range stored {
				c := uintptr(panel*cols+j) * 4
				var sum float32
				if t.p != nil {
					sum = *elem(t.p, uintptr(i)*t.pRow+c)
				}
				for l := range t.k {
					x := *elem(t.x, uintptr(i)*t.xRow+uintptr(l)*t.xStep)
					sum = fma32(x, *elem(w, uintptr(l*cols+j)*4), sum)
				}
				*elem(t.y, uintptr(i)*t.yRow+c) = t.finish(sum, uintptr(i), c)
			}
		}
	}
}

// finish returns what is stored in row i, c bytes from its begin, for a sum.
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
	return v
}

// elem returns the element that is some bytes behind p.
func elem(p *float32, bytes uintptr) *float32 {
	return (*float32)(unsafe.Add(unsafe.Pointer(p), bytes))
}

// fma32 returns x·y + z with one rounding. The product is exact in float64. The sum is rounded to odd there (to the
// neighbour whose last bit is set, if it is not exact), after which rounding to the much shorter float32 gives what one
// rounding would have given.
func fma32(x, y, z float32) float32 {
	p, a := float64(x)*float64(y), float64(z)
	s := p + a
	b := s - p
	e := (p - (s - b)) + (a - b) // s + e is the exact sum
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
