package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

var quantSets = [...]quantSet{quantGo, quantNEON, quantDot}

// supportedQuantSets returns the sets that this processor can execute, the best last.
func supportedQuantSets() []quantSet {
	if cpu.ARM64.HasASIMDDP {
		return quantSets[:]
	}
	return quantSets[:2]
}

//go:noescape
func quantBytesDot(t *quantTile)

//go:noescape
func quantWordsNEON(t *quantTile)

// tiles runs a kernel.
func (s quantSet) tiles(t *quantTile, p Precision) {
	words := s.words(p)
	switch {
	case s == quantGo:
		t.tilesGo()
	case t.tail == s.lanes():
		s.wholeTiles(t, words)
	default:
		s.partialTiles(t, words)
	}
}

// wholeTiles runs a kernel on whole vectors.
func (s quantSet) wholeTiles(t *quantTile, words bool) {
	if words {
		quantWordsNEON(t)
	} else {
		quantBytesDot(t)
	}
}

// partialTiles runs a kernel for tiles whose last vector is partial, which NEON can't load or
// store. Products are whole vectors of scratch memory.
func (s quantSet) partialTiles(t *quantTile, words bool) {
	var products [6 * 16]float32
	cols := t.vecs * s.lanes()
	for ; t.tiles > 0; t.tiles-- {
		i := uintptr(t.done)
		whole := *t
		whole.tiles, whole.done, whole.flags = 1, 0, 0
		if t.k > 0 {
			whole.x = elem(t.x, i*t.xRow)
		}
		whole.rowScale = elem(t.rowScale, i*t.rowScaleRow)
		whole.y, whole.yRow = &products[0], uintptr(cols)*unsafe.Sizeof(products[0])
		s.wholeTiles(&whole, words)
		for r := range t.rows {
			for j := range cols - s.lanes() + t.tail {
				c := uintptr(j) * 4
				*elem(t.y, (i+uintptr(r))*t.yRow+c) = t.finish(products[r*cols+j], i+uintptr(r), c)
			}
		}
		t.done += t.rows
	}
}

// rowProducts does nothing: no kernel halves multiplications.
func (quantSet) rowProducts(*byte, uintptr, int, []int32) {}

//go:noescape
func quantizeBytesNEON(q *quantizing)

//go:noescape
func quantizeWordsNEON(q *quantizing)

// quantize quantizes rows.
func (s quantSet) quantize(q *quantizing, words bool) {
	switch {
	case s == quantGo || q.k < s.lanes():
		q.quantizeGo(words)
	case words:
		quantizeWordsNEON(q)
	default:
		quantizeBytesNEON(q)
	}
}
