package kernel

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// quantSet is a family of kernels for quantized products. All give the same bits.
type quantSet uint8

const (
	quantGo      quantSet = iota // words in Go
	quantNEON                    // words of arm64
	quantAVX2                    // bytes, which become words in registers or for a block of rows
	quantDot                     // the dot products of arm64, of signed bytes
	quantAVXVNNI                 // the instructions of VNNI with registers of AVX2
	quantAVX512                  // those with registers of AVX-512
)

// String returns the name of the set.
func (s quantSet) String() string {
	return [...]string{"go", "neon", "avx2", "neondot", "avxvnni", "avx512vnni"}[s]
}

// quantSets are the sets that this processor can execute, the best last.
var quantSets = supportedQuantSets()

func supportedQuantSets() []quantSet {
	sets := []quantSet{quantGo}
	x := &cpu.X86
	switch {
	case runtime.GOARCH == "arm64":
		if sets = append(sets, quantNEON); cpu.ARM64.HasASIMDDP {
			sets = append(sets, quantDot)
		}
	case runtime.GOARCH == "amd64" && x.HasAVX2 && x.HasFMA:
		if sets = append(sets, quantAVX2); x.HasAVXVNNI {
			sets = append(sets, quantAVXVNNI)
		}
		if x.HasAVX512F && x.HasAVX512VNNI {
			sets = append(sets, quantAVX512)
		}
	}
	return sets
}

// wanted is the name of the kernels that the environment asks for.
var wanted = os.Getenv("NNOPT_KERNELS")

// currentQuantSet is the best set that goes with the set for other products.
func currentQuantSet() quantSet { return chooseQuantSet(quantSets, bestSet, wanted) }

// chooseQuantSet returns the best of the supported sets, the best last, that goes with the set for
// other products and with the name of the kernels that are asked for.
func chooseQuantSet(supported []quantSet, set kernelSet, name string) quantSet {
	limit := supported[len(supported)-1]
	switch {
	case !set.assembly():
		limit = quantGo
	case set == neonSet && name == "neon":
		limit = quantNEON
	case set == avx2Set && name == "avx2":
		limit = quantAVX2
	case set == avx2Set:
		limit = quantAVXVNNI
	}
	// A processor that has the limit's successors need not have the limit: AMD's Zen 4 has VNNI
	// with registers of AVX-512, but not with those of AVX2. So the limit itself may only be
	// compared with.
	best := supported[0]
	for _, s := range supported {
		if s <= limit {
			best = s
		}
	}
	return best
}

// words reports whether the set holds numbers of the given precision in words, rather than bytes.
func (s quantSet) words(p Precision) bool { return p != Int8 || s < quantAVX2 }

// lanes is the number of columns of a panel.
func (s quantSet) lanes() int {
	switch {
	case s == quantAVX512:
		return 16
	case s.arm():
		return 4
	}
	return 8
}

// arm reports whether s is a set of arm64.
func (s quantSet) arm() bool { return s == quantNEON || s == quantDot }

// halves reports whether the kernel for numbers of the given precision takes one multiplication for
// two terms. Its sums begin with what a row and a column contribute: see internal/gen/quant.go.
func (s quantSet) halves(p Precision) bool { return s == quantAVX2 && p == Int8 }

// columnStep is how many bytes of a column a kernel multiplies at a time. What is read for every row of
// x, or for few, is read at the speed of memory, so no code that is a byte takes a word there.
func (s quantSet) columnStep(p Precision) int {
	if s.halves(p) {
		return stepBytes / 2
	}
	return stepBytes
}

// tileRows is the height of the highest tile, and stripPanels the width of the widest. See
// internal/gen/quant.go.
func (s quantSet) tileRows(p Precision) int {
	switch {
	case s == quantAVX512:
		return 8
	case s.halves(p):
		return 4
	}
	return 6
}

func (s quantSet) stripPanels() int {
	switch {
	case s == quantAVX512:
		return 3
	case s.arm():
		return 4
	}
	return 2
}

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
	case s == quantGo:
		t.tilesGo()
	case t.tail != s.lanes():
		s.partialTiles(t, words)
	default:
		wholeTiles(t, words)
	}
}

// wholeTiles runs a kernel of arm64 on whole vectors.
func wholeTiles(t *quantTile, words bool) {
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
		// Not tiles: what calls itself through another function would have whole on the heap.
		wholeTiles(&whole, words)
		for r := range t.rows {
			for j := range cols - s.lanes() + t.tail {
				c := uintptr(j) * 4
				*elem(t.y, (i+uintptr(r))*t.yRow+c) = t.finish(products[r*cols+j], i+uintptr(r), c)
			}
		}
		t.done += t.rows
	}
}

// quantize quantizes rows.
func (s quantSet) quantize(q *quantizing, words bool) {
	switch {
	case s == quantGo || q.k < s.lanes():
		q.quantizeGo(words)
	case s == quantAVX512 && words:
		quantizeWordsAVX512(q)
	case s == quantAVX512:
		quantizeBytesAVX512(q)
	case s.arm() && words:
		quantizeWordsNEON(q)
	case s.arm():
		quantizeBytesNEON(q)
	case words:
		quantizeWordsAVX2(q)
	default:
		quantizeBytesAVX2(q)
	}
}
