package main

import (
	"fmt"
	"slices"
)

// quantTiles writes the kernels of quantized products: for every way to multiply integers that an
// instruction set has, a function for every height and width of a tile of the result, and one that
// chooses among them. Each computes any number of tiles, one below the other.
//
// Their argument is struct quantTile in quantgemm.go, which begins with a struct tile. The
// registers:
//
//	DI             the arguments
//	SI, R8, DX, R9 row 0, 3 and 6 of x, at the current step of k, and the distance of two rows
//	BX             the panels of W, at the current step of k
//	R11            zero, for the epilogue
//	R13, R12       weights that are needed next, and their end
//	CX             counts steps
//	AX, R10, R12   scratch
//
// The accumulators come first among the vector registers, as integers and then as floats.
type quantTiles struct {
	tiles
	how  multiplier
	sets int // of accumulators: consecutive steps of k take turns where a tile has few sums
}

// A multiplier is a way to multiply integers: 4 bytes of x with those of a column of W, or 2 words,
// and to add that to a sum.
type multiplier struct {
	name   string // the function's
	suffix string // replaces that of the instruction set if it is not empty
	add    func(g *quantTiles, w, x, acc int)
	halves bool // two steps become one, by Winograd's identity, of words that are bytes in W; there is no add
}

// stepsAtOnce is how many steps of k the inner loop makes at a time. A row of x is padded to that.
const stepsAtOnce = 4

// noRows is a height that no tile has. AVX-512 has registers for tiles of 7 rows, but they gained
// at most 3 % for products of 7 rows over tiles of 4 and 3, and nothing for more rows (Zen 4,
// 2026-11-23).
const noRows = 7

// tall is the height of the highest tile, and wide the number of its vectors.
func (g *quantTiles) tall() int {
	if g.how.halves {
		return 4
	}
	return map[int]int{16: 8, 8: 6, 4: 6}[g.lanes]
}
func (g *quantTiles) wide() int { return map[int]int{16: 3, 8: 2, 4: 4}[g.lanes] }

// named returns a multiplier that is an instruction of the assembler.
func named(name, instruction string) multiplier {
	return multiplier{name: name, add: func(g *quantTiles, w, x, acc int) {
		g.p("%s %s, %s, %s", instruction, g.vec(w), g.vec(x), g.vec(acc))
	}}
}

// vex returns a multiplier that is an instruction of AVX-VNNI, which the assembler knows for
// AVX-512 only.
func vex(name string, opcode int) multiplier {
	return multiplier{name: name, suffix: "AVXVNNI", add: func(g *quantTiles, w, x, acc int) {
		// The three bytes of a VEX prefix: the fourth bits of the registers, inverted, and map 2;
		// then x, inverted, 256 bits and prefix 66. The opcode and both other registers follow.
		inverted := func(register, bit int) int { return (^register >> 3 & 1) << bit }
		g.line("\tBYTE $0xc4; BYTE $%#02x; BYTE $%#02x; BYTE $%#02x; BYTE $%#02x // acc %d += x %d * w %d\n",
			inverted(acc, 7)|1<<6|inverted(w, 5)|2, (^x&15)<<3|1<<2|1, opcode, 0xc0|(acc&7)<<3|w&7, acc, x, w)
	}}
}

// pairs multiplies words without VNNI.
var pairs = multiplier{name: "quantWords", add: func(g *quantTiles, w, x, acc int) {
	scratch := g.vec(g.x + 1)
	g.p("VPMADDWD %s, %s, %s; VPADDD %[3]s, %s, %[4]s", g.vec(w), g.vec(x), scratch, g.vec(acc))
}}

// halved multiplies words that are so small that sums of two are words, too. Two words x0 and x1 of
// a row and w0 and w1 of a column take one multiplication, with Winograd's identity ("A New
// Algorithm for Inner Product", 1968)
//
//	x0·w0 + x1·w1 = (x0 + w1)·(x1 + w0) - x0·x1 - w0·w1
//
// where the sums of the last two terms depend on a row and on a column only. Many processors add
// more words at a time than they multiply.
var halved = multiplier{name: "quantHalved", halves: true}

func writeQuantTiles(e *emitter) {
	if e.arm() {
		writeQuantTilesNEON(e)
		return
	}
	if e.lanes == 8 {
		e.writeMask("tailMask", 8)
	}
	multipliers := []multiplier{named("quantBytes", "VPDPBUSD"), named("quantWords", "VPDPWSSD")}
	if e.lanes == 8 {
		multipliers = []multiplier{pairs, halved, vex("quantBytes", 0x50), vex("quantWords", 0x52)}
	}
	suffix := e.suffix
	for _, how := range multipliers {
		if e.suffix = suffix; how.suffix != "" {
			e.suffix = how.suffix
		}
		g := &quantTiles{tiles: tiles{emitter: e, done: "quantTile_done"}, how: how}
		g.eachKernel(g.kernel)
		if how.halves {
			g.rowProducts()
			g.widen()
			g.byteSum()
			g.shortTiles()
		}
	}
	e.suffix = suffix
}

func (g *quantTiles) name(rows, n int) string {
	return fmt.Sprintf("%s%dx%d%s<>", g.how.name, rows, n, g.suffix)
}

// eachKernel writes the function that Go calls, and each kernel.
func (g *quantTiles) eachKernel(write func(rows, n int)) {
	all := kernels(g.tall(), g.wide(), noRows)
	g.dispatch(g.how.name, "t *quantTile", all, g.name)
	for _, k := range slices.Backward(all) {
		write(k[0], k[1])
	}
}

// stepBytes is what a step takes of a strip of W.
func (g *quantTiles) stepBytes() int {
	if g.how.halves {
		return g.panelBytes() / 2
	}
	return g.panelBytes()
}

// kernel writes the function for tiles of the given height and width.
func (g *quantTiles) kernel(rows, n int) {
	g.rows, g.n, g.sets = rows, n, 1
	most, perStep, room := stepsAtOnce, 1, g.w
	if g.how.halves {
		most, perStep, room = stepsAtOnce/2, 2, g.w-4
	}
	// An addition to a sum waits for the one before, for several cycles. Eight sums or more hide
	// that. Low tiles have fewer, so consecutive steps get sums of their own, if registers are
	// left. Sums of integers are exact: it changes no bit.
	for g.sets < most && rows*n*g.sets < 8 && 2*rows*n*g.sets <= room {
		g.sets *= 2
	}
	g.line("\nTEXT %s(SB), NOSPLIT, $0-8\n", g.name(rows, n))
	g.p("MOVQ tile_xRow(DI), R9; XORQ R11, R11")
	if g.lanes == 16 {
		g.p("MOVL  tile_mask(DI), AX; KMOVW AX, K1")
	}
	g.label("tile")
	// The rows of a tile come after those that are done. W is read again from the beginning: for
	// the next tile it is in the first-level cache.
	g.p("MOVQ tile_x(DI), SI; MOVQ quantTile_done(DI), AX; IMULQ R9, AX; ADDQ AX, SI")
	if rows > 3 {
		g.p("LEAQ (SI)(R9*2), R8; ADDQ R9, R8")
	}
	if rows > 6 {
		g.p("LEAQ (R8)(R9*2), DX; ADDQ R9, DX")
	}
	g.p("MOVQ tile_w(DI), BX")
	g.begin()
	g.p("MOVQ tile_k(DI), CX; TESTQ CX, CX; JZ    summed; MOVQ quantTile_ahead(DI), R13; MOVQ quantTile_aheadEnd(DI), R12")
	g.label("steps")
	g.fetchNext()
	for u := 0; u < stepsAtOnce; u += perStep {
		if g.how.halves {
			g.halvedSteps(u)
		} else {
			g.step(u)
		}
	}
	g.p("ADDQ $%d, SI; ADDQ $%d, BX", 4*stepsAtOnce, stepsAtOnce*g.stepBytes())
	if rows > 3 {
		g.p("ADDQ $%d, R8", 4*stepsAtOnce)
	}
	if rows > 6 {
		g.p("ADDQ $%d, DX", 4*stepsAtOnce)
	}
	g.p("DECQ CX; JNZ  steps; MOVQ R13, quantTile_ahead(DI)")
	g.label("summed")
	// The sets are added in pairs, to the first one.
	for sets := g.sets / 2; sets > 0; sets /= 2 {
		for i := range rows * n * sets {
			g.p("VPADDD %s, %s, %[2]s", g.vec(i+rows*n*sets), g.vec(i))
		}
	}
	// From here on it is the epilogue of other products, with floats in the accumulators.
	g.floats()
	g.epilogue()
	g.p("ADDQ $%d, quantTile_done(DI); DECQ quantTile_tiles(DI); JNZ  tile", rows)
	g.end()
}

// fetchNext fetches weights that are needed next. With AVX-512 a loop takes half as long for more
// weights. Without it a product of 50×3000×1024, whose weights are in the third-level cache, takes
// 1.15 to 1.3 times as long (Zen 5, November 2026).
func (g *quantTiles) fetchNext() {
	if g.lanes == 16 {
		g.p("PREFETCHT0 (R13); ADDQ $64, R13")
	}
	g.p("PREFETCHT0 (R13); ADDQ $64, R13; CMPQ R13, R12; CMOVQHI R12, R13")
}

// begin clears the sums, or begins with what a row and a column contribute.
func (g *quantTiles) begin() {
	// The first set begins with what rows and columns contribute; others, and those of other
	// multipliers, with zero.
	first := 0
	if g.how.halves {
		g.p("MOVQ quantTile_begin(DI), AX; MOVQ quantTile_rowBegin(DI), R12; MOVQ quantTile_done(DI), R10; LEAQ (R12)(R10*4), R12")
		for row := range g.rows {
			g.p("VPBROADCASTD %d(R12), %s", 4*row, g.vec(g.x))
			for v := range g.n {
				g.p("VPADDD %d(AX), %s, %s", v*g.lanes*4, g.vec(g.x), g.vec(row*g.n+v))
			}
		}
		first = g.rows * g.n
	}
	for i := first; i < g.rows*g.n*g.sets; i++ {
		g.p("%s %s, %[2]s, %[2]s", g.zero, g.vec(i))
	}
}

// quantRows are the addresses of the rows of x, without parentheses.
var quantRows = []string{"SI", "SI)(R9*1", "SI)(R9*2", "R8", "R8)(R9*1", "R8)(R9*2", "DX", "DX)(R9*1"}

// halvedSteps writes two steps of k, the u-th from BX on and the next.
func (g *quantTiles) halvedSteps(u int) {
	w := func(v, second int) string { return g.vec(g.w - 2*second + v) }
	sum0, sum1, x0, x1 := g.vec(g.w-4), g.vec(g.w-3), g.vec(g.x), g.vec(g.x+1)
	for v := range g.n {
		for second := range 2 {
			g.p("VPMOVSXBW %d(BX), %s", (u+second)*g.stepBytes()+v*g.lanes*2, w(v, second))
		}
	}
	// Two steps make one multiplication, so sets take turns every two steps.
	first := u / 2 % g.sets * g.rows * g.n
	for row := range g.rows {
		g.p("VPBROADCASTD %d(%s), %s; VPBROADCASTD %d(%[2]s), %[5]s", 4*u, quantRows[row], x0, 4*u+4, x1)
		for v := range g.n {
			acc := g.vec(first + row*g.n + v)
			// A dword of x holds two words. For each of them, with those of two steps,
			// (x0 + w1)·(x1 + w0) is x0·w0 + x1·w1, and x0·x1 + w0·w1 besides. VPMADDWD adds the
			// products of both: four terms of the sum.
			g.p("VPADDW %s, %s, %s; VPADDW %s, %s, %s", x0, w(v, 1), sum0, x1, w(v, 0), sum1)
			g.p("VPMADDWD %s, %s, %[1]s; VPADDD %[1]s, %[3]s, %[3]s", sum0, sum1, acc)
		}
	}
}

// rowProducts writes the function that computes what rows contribute to sums of halved products:
// the negative sums of x0·x1. It takes 16 bytes at a time.
func (g *quantTiles) rowProducts() {
	g.open("quantRowProducts", "x *byte, xRow uintptr, rows, quads int, to *int32", "SI", "R9", "CX", "DX", "DI")
	g.label("row")
	g.p("VPXOR X0, X0, X0; MOVQ SI, R8; MOVQ DX, AX; SUBQ $2, AX; JLT  last")
	g.label("two")
	g.p("VMOVDQU (R8), Y1; VPSRLQ $32, Y1, Y2; VPMADDWD Y1, Y2, Y2; VPSUBD Y2, Y0, Y0; ADDQ $32, R8; SUBQ $2, AX; JGE  two")
	g.label("last")
	g.p("CMPQ AX, $-1; JNE  sum; VMOVDQU (R8), X1; VPSRLQ $32, X1, X2; VPMADDWD X1, X2, X2; VPSUBD Y2, Y0, Y0")
	g.label("sum")
	g.p("VEXTRACTI128 $1, Y0, X1; VPADDD X1, X0, X0; VPSHUFD $0x4e, X0, X1; VPADDD X1, X0, X0; VMOVD X0, (DI)")
	g.p("ADDQ $4, DI; ADDQ R9, SI; DECQ CX; JNZ  row")
	g.end()
}

// widen writes the function that makes words of rows of bytes, 32 at a time.
func (g *quantTiles) widen() {
	g.open("quantWiden", "to *byte, toRow uintptr, from *byte, fromRow uintptr, blocks, rows int", "DI", "R8", "SI", "R9", "DX", "CX")
	g.label("row")
	g.p("MOVQ DI, R10; MOVQ SI, R11; MOVQ DX, AX")
	g.label("block")
	g.p("VPMOVZXBW (R11), Y0; VPMOVZXBW 16(R11), Y1; VMOVDQU Y0, (R10); VMOVDQU Y1, 32(R10); ADDQ $32, R11; ADDQ $64, R10; DECQ AX; JNZ  block")
	g.p("ADDQ R8, DI; ADDQ R9, SI; DECQ CX; JNZ  row")
	g.end()
}

// byteSum writes the function that adds up bytes, 32 at a time.
func (g *quantTiles) byteSum() {
	g.open("quantByteSum", "x *byte, blocks int, to *int", "SI", "CX", "DI")
	g.p("VPXOR Y0, Y0, Y0; VPXOR Y1, Y1, Y1")
	g.label("block")
	g.p("VPSADBW (SI), Y1, Y2; VPADDQ Y2, Y0, Y0; ADDQ $32, SI; DECQ CX; JNZ  block")
	g.p("VEXTRACTI128 $1, Y0, X1; VPADDQ X1, X0, X0; VPSHUFD $0x4e, X0, X1; VPADDQ X1, X0, X0; VMOVQ X0, (DI)")
	g.end()
}

// step writes one step of k, the u-th from BX on.
func (g *quantTiles) step(u int) {
	for v := range g.n {
		g.p("VMOVUPS %d(BX), %s", u*g.panelBytes()+v*g.lanes*4, g.vec(g.w+v))
	}
	first := u % g.sets * g.rows * g.n
	for row := range g.rows {
		g.p("VPBROADCASTD %d(%s), %s", 4*u, quantRows[row], g.vec(g.x))
		for v := range g.n {
			g.how.add(g, g.w+v, g.x, first+row*g.n+v)
		}
	}
}

// floats makes floats of the sums: the product of the quantized numbers.
func (g *quantTiles) floats() {
	for i := range g.rows * g.n {
		// Sums of more than 24 bits are rounded here, once.
		g.p("VCVTDQ2PS %s, %[1]s", g.vec(i))
	}
	number, product := g.vec(g.w+2), g.vec(g.w+3)
	g.p("MOVQ quantTile_colScale(DI), AX; MOVQ quantTile_colSum(DI), R13")
	for v := range g.n {
		g.p("VMOVUPS %d(AX), %s", v*g.lanes*4, g.vec(g.w+v))
		for row := range g.rows {
			g.p("VMULPS %s, %s, %[2]s", g.vec(g.w+v), g.acc(row, v))
		}
	}
	// The order is that of the formula in quantgemm.go: by the scale of the column first, because
	// it comes for all rows at once.
	g.pointer("quantTile_rowScale", "quantTile_rowScaleRow")
	g.eachRow("AX", "R12", func(row int) {
		g.p("VBROADCASTSS (AX), %s", number)
		for v := range g.n {
			g.p("VMULPS %s, %s, %[2]s", number, g.acc(row, v))
		}
		g.p("VBROADCASTSS 4(AX), %s", number)
		for v := range g.n {
			g.p("VMULPS %d(R13), %s, %s; VADDPS %[3]s, %s, %[4]s", v*g.lanes*4, number, product, g.acc(row, v))
		}
	})
}
