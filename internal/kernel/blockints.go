package kernel

import (
	"math"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Rows of x that meet codes of few bits may be rounded to integers of 8 bits: those of a block of terms have a
// scale, so that the largest one is 127. A block of a sum is
//
//	(Σ codes·integers - zero·(Σ integers))·(scale of the codes·scale of the row)
//
// where sums of integers are exact, and the difference and the sum of blocks are fused multiply-adds, in order. So
// all kernels give the same bits. ONNX Runtime rounds alike.

// groupRows is how many rows a kernel multiplies at a time. See internal/gen/blockcodes.go.
const groupRows = 4

// levels is the largest integer.
const levels = 127

// intsSet returns the set of kernels that multiplies integers where a set multiplies floats.
func intsSet(set kernelSet) kernelSet {
	if set == avx512Set && !cpu.X86.HasAVX512VNNI {
		return avx2Set
	}
	return set
}

// parts is how many dwords of integers meet a word of codes: of four bytes each or, on arm64, of a float.
func (w *BlockWeights) parts() int {
	if w.set == neonSet {
		return 32 / w.bits
	}
	return 8 / w.bits
}

// groups calls f for groups of rows: the first of each, and how many they are.
func groups(rows int, f func(first, n int)) {
	i := 0
	for ; i+groupRows <= rows; i += groupRows {
		f(i, groupRows)
	}
	for ; i < rows; i++ {
		f(i, 1)
	}
}

// roundRows makes integers of all rows of x, group by group and block by block, with a scale and a sum for each
// block of each row.
func (p *blockProduct) roundRows(ws *workspace) {
	w, x := p.w, &p.x
	size := w.blocks * w.tile.words * w.parts() // of a row
	p.ints, p.params = ws.floats(x.Rows*size), ws.floats(2*x.Rows*w.blocks)
	clear(p.ints)
	groups(x.Rows, func(first, n int) {
		for r := range n {
			row := Row(*x, first+r)
			for b := range w.blocks {
				at := first*size + b*w.tile.words*w.parts()*n
				scale, sum := w.roundBlock(p.ints[at:], n, r, row[b*w.block:min((b+1)*w.block, w.k)])
				param := 2 * (first*w.blocks + b*n + r)
				p.params[param], p.params[param+1] = scale, sum
			}
		}
	})
}

// roundBlock makes integers of a block of row r of n, and returns their scale and their sum.
func (w *BlockWeights) roundBlock(to []float32, n, r int, x []float32) (scale, total float32) {
	low, high, finite := Extremes(x)
	largest := max(-low, high)
	perUnit := levels / largest
	switch {
	case !finite:
		return nan32, 0
	case perUnit > math.MaxFloat32: // all are zeros, or might as well be
		return 0, 0
	}
	words := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(to))), len(to))
	sum, perWord, each := int32(0), 32/w.bits, 8/w.bits
	for ; len(x) >= 8 && w.bits == 4 && w.set != neonSet; x, words = x[8:], words[min(2*n, len(words)):] {
		a, b, c, d := nearest(x[0]*perUnit), nearest(x[2]*perUnit), nearest(x[4]*perUnit), nearest(x[6]*perUnit)
		e, f, g, h := nearest(x[1]*perUnit), nearest(x[3]*perUnit), nearest(x[5]*perUnit), nearest(x[7]*perUnit)
		words[r] = uint32(a)&255 | uint32(b)&255<<8 | uint32(c)&255<<16 | uint32(d)<<24
		words[n+r] = uint32(e)&255 | uint32(f)&255<<8 | uint32(g)&255<<16 | uint32(h)<<24
		sum += a + b + c + d + e + f + g + h
	}
	for k, v := range x {
		c := nearest(v * perUnit)
		sum += c
		word, k := k/perWord*w.parts()*n, k%perWord
		if w.set == neonSet {
			words[word+k*n+r] = math.Float32bits(float32(c))
			continue
		}
		words[word+k%each*n+r] |= uint32(c) & 255 << (k / each * 8)
	}
	return largest / levels, float32(sum)
}

// nearest rounds a small number.
func nearest(v float32) int32 {
	const magic = 3 << 22 // plus a small number, it has that as its last bits
	return int32(math.Float32bits(float32(v)+magic)<<10) >> 10
}

var nan32 = float32(math.NaN())

// intSums sets the sums of a panel to those with integers.
func (p *blockProduct) intSums(j int) {
	w, width := p.w, p.w.set.panelCols()
	clear(p.sums)
	if w.blocks == 0 {
		return
	}
	size := w.blocks * w.tile.words * w.parts()
	p.point(j, 0, w.blocks)
	groups(p.x.Rows, func(first, n int) {
		c := &p.codes
		c.at, c.params, c.sums = &p.ints[first*size], &p.params[2*first*w.blocks], &p.sums[first*width]
		w.set.blockInts(w.bits, n, c)
	})
}

// blockInts adds the products of integers to the sums of a panel.
func (s kernelSet) blockInts(bits, rows int, t *codeTile) {
	kernels := &blockIntsGo
	switch s {
	case avx512Set:
		kernels = &blockIntsAVX512
	case avx2Set:
		kernels = &blockIntsAVX2
	case neonSet:
		kernels = &blockIntsNEON
	}
	kernels[bits/4][rows/groupRows](t)
}

// The kernels by bits, 2 or 4, and rows, one or a group.
var (
	blockIntsAVX512 = [2][2]func(*codeTile){{blockInts2x1AVX512, blockInts2x4AVX512}, {blockInts4x1AVX512, blockInts4x4AVX512}}
	blockIntsAVX2   = [2][2]func(*codeTile){{blockInts2x1AVX2, blockInts2x4AVX2}, {blockInts4x1AVX2, blockInts4x4AVX2}}
	blockIntsNEON   = [2][2]func(*codeTile){{blockInts2x1NEON, blockInts2x4NEON}, {blockInts4x1NEON, blockInts4x4NEON}}
	blockIntsGo     = [2][2]func(*codeTile){{intsGo(2, 1), intsGo(2, groupRows)}, {intsGo(4, 1), intsGo(4, groupRows)}}
)

// intsGo returns blockInts in Go.
func intsGo(bits, rows int) func(*codeTile) {
	width := goSet.panelCols()
	return func(t *codeTile) {
		parts := 8 / bits
		ints := unsafe.Slice((*[4]int8)(unsafe.Pointer(t.at)), t.blocks*t.words*parts*rows)
		sums := unsafe.Slice(t.sums, rows*width)
		for b := range t.blocks {
			codes := unsafe.Slice((*uint32)(unsafe.Pointer(elem(t.codes, uintptr(4*b*t.words*width)))), t.words*width)
			scales := unsafe.Slice(elem(t.scales, uintptr(4*b*width)), width)
			zeros := unsafe.Slice(elem(t.zeros, uintptr(b)*t.zeroStep), width)
			params := unsafe.Slice((*[2]float32)(unsafe.Pointer(t.params)), t.blocks*rows)[b*rows:]
			for r := range rows {
				for j := range width {
					sum := int32(0)
					for l := range t.words {
						c := codes[l*width+j]
						for s := range parts {
							x := ints[((b*t.words+l)*parts+s)*rows+r]
							m := c >> (bits * s) & t.bytesMask
							sum += int32(m&0xff)*int32(x[0]) + int32(m>>8&0xff)*int32(x[1]) + int32(m>>16&0xff)*int32(x[2]) + int32(m>>24)*int32(x[3])
						}
					}
					v := fma32(-zeros[j], params[r][1], float32(sum))
					sums[r*width+j] = fma32(v, float32(scales[j]*params[r][0]), sums[r*width+j])
				}
			}
		}
	}
}
