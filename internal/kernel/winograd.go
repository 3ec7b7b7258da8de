package kernel

import "math"

// Fast convolutions with windows of 3 elements (Winograd, 1980; Lavin and Gray, 2016): of n outputs of
// a line, n+2 products instead of 3n, in two dimensions (n+2)² instead of 9n². The input is combined
// to n+2 values for each of n outputs, which lie at points; those are multiplied with combinations of the
// weights; and the products are combined to the outputs.
//
// For 2 outputs the points are 0, 1, -1 and infinity. For 4 they are 0, ±√½, ±√2 and infinity: with ±1 and
// ±2, which take no multiplications, rounding errors are twice as large, and what bounds them 3.7 times.
//
// Let e be the greatest rounding error relative to a result, and s nine times the sum over C channels of the
// largest |x| of a tile times the largest |w|. A sum in order is off by at most 9·C·e·s if it is computed
// directly: each of 9·C products takes part in as many roundings. With tiles, an output is a sum over points (k, l)
// of factors a times products of combined inputs v and weights u. Each product takes part in C roundings, in one
// of the weights, and in at most 10 that combine it (for 2 outputs, 4); and in combining the input, elements take part
// in at most 8 (or 2). So the error is at most
//
//	(C + 11)·e·Σ |a·v·u| + 8·e·Σ |a·u|·Σ|b·x|
//
// with the factors b of the inputs. The first sum is not that of the largest |v| times that of the largest |u| at each
// point, as these are not large together: at points ±p, v is an even part of the input plus or minus an odd one, and u
// is that of the weights, so that the sum of both |v·u| is twice the larger one of |even·even + odd·odd| and
// |even·odd + odd·even|. TestWinogradBound computes from the code that for 4 outputs the error is at most
// 26.2·(C + 23.1)·e·s, which is 2.9·(1 + 23.1/C) times the direct form's: 7.1 times for 16 channels, and for 2 outputs
// 0.31·(1 + 8.1/C) times. TestWinogradErrors of package array measures less.

// A Winograd is a way to combine lines.
type Winograd uint8

// The ways: for 2 or 4 outputs at a time, of the input and of the products.
const (
	Winograd2In  Winograd = iota // 4 lines to 4
	Winograd2Out                 // 4 lines to 2
	Winograd4In                  // 6 lines to 6
	Winograd4Out                 // 6 lines to 4
)

// sizes returns how many lines are combined, and to how many.
func (w Winograd) sizes() (in, out int) {
	switch w {
	case Winograd2In:
		return 4, 4
	case Winograd2Out:
		return 4, 2
	case Winograd4In:
		return 6, 6
	}
	return 6, 4
}

// WinogradWeights returns the n+2 combinations of 3 weights, for n outputs.
func WinogradWeights(n int, a, b, c float64) [6]float64 {
	if n == 2 {
		return [6]float64{a, (a + c + b) / 2, (a + c - b) / 2, c}
	}
	near, far := float64(math.Sqrt2*(a+float64(c/2))), float64(math.Sqrt2*(a+float64(2*c)))
	return [6]float64{a, -(near + b) / 3, -(near - b) / 3, (far + float64(2*b)) / 6, (far - float64(2*b)) / 6, c}
}

// Lines are pieces of lines: line i of piece p begins at element p·Next + i·Line. Piece p of the
// input belongs to that of the output.
type Lines struct {
	Data       []float32
	Line, Next int
}

// check panics unless some lines have pieces of n elements.
func (l *Lines) check(lines, pieces, n int) {
	left := len(l.Data) - n
	if l.Line < 0 || l.Next < 0 || left < 0 || !reaches(lines-1, l.Line, left) || !reaches(pieces-1, l.Next, left-(lines-1)*l.Line) {
		panic(errShape)
	}
}

// combining is the argument of the assembly. Distances are in bytes.
type combining struct {
	dst, src         *float32
	dstLine, srcLine uintptr
	dstNext, srcNext uintptr
	pieces, blocks   int
	half, root       float32 // ½ and √½
}

const root = math.Sqrt2 / 2

// Combine combines lines of src to lines of dst, in some pieces of n elements each. Dst must not
// overlap src.
func (w Winograd) Combine(dst, src Lines, pieces, n int) {
	if pieces <= 0 || n <= 0 {
		return
	}
	in, out := w.sizes()
	src.check(in, pieces, n)
	dst.check(out, pieces, n)
	if !bestSet.assembly() || n < block {
		w.combine(dst, src, pieces, n)
		return
	}
	t := combining{dstLine: 4 * uintptr(dst.Line), srcLine: 4 * uintptr(src.Line), dstNext: 4 * uintptr(dst.Next), srcNext: 4 * uintptr(src.Next), pieces: pieces, half: 0.5, root: root}
	t.dst, t.src, t.blocks = &dst.Data[0], &src.Data[0], n/block
	w.blocks(&t)
	if n%block > 0 { // the last block has some elements again, which stay the same
		t.dst, t.src, t.blocks = &dst.Data[n-block], &src.Data[n-block], 1
		w.blocks(&t)
	}
}

func (w Winograd) blocks(t *combining) {
	switch w {
	case Winograd2In:
		winograd2InBlocks(t)
	case Winograd2Out:
		winograd2OutBlocks(t)
	case Winograd4In:
		winograd4InBlocks(t)
	case Winograd4Out:
		winograd4OutBlocks(t)
	}
}

func (w Winograd) combine(dst, src Lines, pieces, n int) {
	in, out := w.sizes()
	var d, y [6]float32
	for p := range pieces {
		for i := range n {
			for l := range in {
				d[l] = src.Data[p*src.Next+l*src.Line+i]
			}
			switch w {
			case Winograd2In:
				y = [6]float32{d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]}
			case Winograd2Out:
				y = [6]float32{d[0] + d[1] + d[2], d[1] - d[2] - d[3]}
			case Winograd4In:
				e, o := d[4]-float32(2*d[2]), float32((d[3]-float32(2*d[1]))*root)
				p, q := d[4]-float32(d[2]/2), float32(2*d[3])-d[1]
				r := float32(q * root)
				y = [6]float32{d[0] - float32(2*d[2]) + p, e + o, e - o, p + r, p - r, d[5] - float32(d[3]/2) - q}
			case Winograd4Out:
				s, m, t, u := d[1]+d[2], d[1]-d[2], d[3]+d[4], d[3]-d[4]
				y = [6]float32{d[0] + float32((float32(2*s)+t)*root), m + u, float32((s + float32(2*t)) * root), float32(m/2) + float32(2*u) + d[5]}
			}
			for l := range out {
				dst.Data[p*dst.Next+l*dst.Line+i] = y[l]
			}
		}
	}
}
