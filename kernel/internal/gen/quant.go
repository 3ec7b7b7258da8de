package main

import "fmt"

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
}

// stepsAtOnce is how many steps of k the inner loop makes at a time. A row of x is padded to that.
const stepsAtOnce = 4

// tall is the height of the highest tile, and wide the number of its vectors.
func (g *quantTiles) tall() int { return map[int]int{16: 8, 8: 6, 4: 6}[g.lanes] }
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
		multipliers = []multiplier{pairs, vex("quantBytes", 0x50), vex("quantWords", 0x52)}
	}
	suffix := e.suffix
	for _, how := range multipliers {
		if e.suffix = suffix; how.suffix != "" {
			e.suffix = how.suffix
		}
		g := &quantTiles{tiles: tiles{emitter: e, done: "quantTile_done"}, how: how}
		g.dispatch()
		for rows := 1; rows <= g.tall(); rows++ {
			for n := 1; n <= g.wide(); n++ {
				g.kernel(rows, n)
			}
		}
	}
	e.suffix = suffix
}

func (g *quantTiles) name(rows, n int) string {
	return fmt.Sprintf("%s%dx%d%s<>", g.how.name, rows, n, g.suffix)
}

// dispatch writes the function that Go calls.
func (g *quantTiles) dispatch() {
	g.open(g.how.name, "t *quantTile", "DI")
	g.p("MOVQ tile_rows(DI), AX; MOVQ tile_vecs(DI), CX")
	for rows := g.tall(); rows >= 1; rows-- {
		g.p("CMPQ AX, $%d; JNE  not%[1]d", rows)
		for n := g.wide(); n >= 1; n-- {
			g.p("CMPQ CX, $%d; JEQ  to%dx%[1]d", n, rows)
		}
		g.label(fmt.Sprintf("not%d", rows))
	}
	g.p("RET")
	for rows := g.tall(); rows >= 1; rows-- {
		for n := g.wide(); n >= 1; n-- {
			g.label(fmt.Sprintf("to%dx%d", rows, n))
			g.p("JMP %s(SB)", g.name(rows, n))
		}
	}
}

// kernel writes the function for tiles of the given height and width.
func (g *quantTiles) kernel(rows, n int) {
	g.rows, g.n, g.sets = rows, n, 1
	for g.sets < stepsAtOnce && rows*n*g.sets < 8 && 2*rows*n*g.sets <= g.w {
		g.sets *= 2
	}
	g.line("\nTEXT %s(SB), NOSPLIT, $0-8\n", g.name(rows, n))
	g.p("MOVQ tile_xRow(DI), R9; XORQ R11, R11")
	if g.lanes == 16 {
		g.p("MOVL  tile_mask(DI), AX; KMOVW AX, K1")
	}
	g.label("tile")
	g.p("MOVQ tile_x(DI), SI; MOVQ quantTile_done(DI), AX; IMULQ R9, AX; ADDQ AX, SI")
	if rows > 3 {
		g.p("LEAQ (SI)(R9*2), R8; ADDQ R9, R8")
	}
	if rows > 6 {
		g.p("LEAQ (R8)(R9*2), DX; ADDQ R9, DX")
	}
	g.p("MOVQ tile_w(DI), BX")
	for i := range rows * n * g.sets {
		g.p("%s %s, %[2]s, %[2]s", g.zero, g.vec(i))
	}
	g.p("MOVQ tile_k(DI), CX; TESTQ CX, CX; JZ    summed")
	g.label("steps")
	for u := range stepsAtOnce {
		g.step(u)
	}
	g.p("ADDQ $%d, SI; ADDQ $%d, BX", 4*stepsAtOnce, stepsAtOnce*g.panelBytes())
	if rows > 3 {
		g.p("ADDQ $%d, R8", 4*stepsAtOnce)
	}
	if rows > 6 {
		g.p("ADDQ $%d, DX", 4*stepsAtOnce)
	}
	g.p("DECQ CX; JNZ  steps")
	g.label("summed")
	for sets := g.sets / 2; sets > 0; sets /= 2 {
		for i := range rows * n * sets {
			g.p("VPADDD %s, %s, %[2]s", g.vec(i+rows*n*sets), g.vec(i))
		}
	}
	g.floats()
	g.epilogue()
	g.p("ADDQ $%d, quantTile_done(DI); DECQ quantTile_tiles(DI); JNZ  tile", rows)
	g.end()
}

// step writes one step of k, the u-th from BX on.
func (g *quantTiles) step(u int) {
	for v := range g.n {
		g.p("VMOVUPS %d(BX), %s", u*g.panelBytes()+v*g.lanes*4, g.vec(g.w+v))
	}
	at := []string{"SI", "SI)(R9*1", "SI)(R9*2", "R8", "R8)(R9*1", "R8)(R9*2", "DX", "DX)(R9*1"}
	first := u % g.sets * g.rows * g.n
	for row := range g.rows {
		g.p("VPBROADCASTD %d(%s), %s", 4*u, at[row], g.vec(g.x))
		for v := range g.n {
			g.how.add(g, g.w+v, g.x, first+row*g.n+v)
		}
	}
}

// floats makes floats of the sums: the product of the quantized numbers.
func (g *quantTiles) floats() {
	for i := range g.rows * g.n {
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
