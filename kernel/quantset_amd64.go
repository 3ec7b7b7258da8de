package kernel

import "golang.org/x/sys/cpu"

// supportedQuantSets returns the sets that this processor can execute, the best last.
func supportedQuantSets() []quantSet {
	sets := quantSets[:1]
	if x := &cpu.X86; x.HasAVX2 && x.HasFMA {
		sets = quantSets[:2]
		switch {
		case x.HasAVX512F && x.HasAVX512VNNI && x.HasAVXVNNI:
			sets = quantSets[:4]
		case x.HasAVX512F && x.HasAVX512VNNI:
			sets = quantSetsWithoutAVXVNNI[:]
		case x.HasAVXVNNI:
			sets = quantSets[:3]
		}
	}
	return sets
}

var (
	quantSets               = [...]quantSet{quantGo, quantAVX2, quantAVXVNNI, quantAVX512}
	quantSetsWithoutAVXVNNI = [...]quantSet{quantGo, quantAVX2, quantAVX512}
)

//go:noescape
func quantBytesAVX512(t *quantTile)

//go:noescape
func quantWordsAVX512(t *quantTile)

//go:noescape
func quantWordsAVX2(t *quantTile)

//go:noescape
func quantHalvedAVX2(t *quantTile)

//go:noescape
func quantRowProductsAVX2(x *byte, xRow uintptr, rows, quads int, to *int32)

//go:noescape
func quantBytesAVXVNNI(t *quantTile)

//go:noescape
func quantWordsAVXVNNI(t *quantTile)

// tiles runs a kernel.
func (s quantSet) tiles(t *quantTile, p Precision) {
	words := s.words(p)
	switch {
	case s == quantAVX512 && words:
		quantWordsAVX512(t)
	case s == quantAVX512:
		quantBytesAVX512(t)
	case s == quantAVXVNNI && words:
		quantWordsAVXVNNI(t)
	case s == quantAVXVNNI:
		quantBytesAVXVNNI(t)
	case s.halves(p):
		quantHalvedAVX2(t)
	case s == quantAVX2:
		quantWordsAVX2(t)
	default:
		t.tilesGo()
	}
}

// rowProducts sets to to what rows of codes contribute to the sums of a kernel that halves
// multiplications.
func (s quantSet) rowProducts(codes *byte, apart uintptr, quads int, to []int32) {
	quantRowProductsAVX2(codes, apart, len(to), quads, &to[0])
}

//go:noescape
func quantizeBytesAVX512(q *quantizing)

//go:noescape
func quantizeWordsAVX512(q *quantizing)

//go:noescape
func quantizeBytesAVX2(q *quantizing)

//go:noescape
func quantizeWordsAVX2(q *quantizing)

// quantize quantizes rows.
func (s quantSet) quantize(q *quantizing, words bool) {
	switch {
	case s == quantGo || q.k < s.lanes():
		q.quantizeGo(words)
	case s == quantAVX512 && words:
		quantizeWordsAVX512(q)
	case s == quantAVX512:
		quantizeBytesAVX512(q)
	case words:
		quantizeWordsAVX2(q)
	default:
		quantizeBytesAVX2(q)
	}
}
