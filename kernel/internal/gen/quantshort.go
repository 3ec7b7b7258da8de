package main

import "fmt"

// shortTiles writes the kernels of AVX2 that multiply bytes of x with bytes of W and add up products of a
// column as a word, before they become a sum: eight, four or two of them. Bytes of x are what is left of codes
// after the least one of their row, so that sums are the smaller; see quantshort.go for when that is exact.
//
// The W of halved products has two bytes of a column beside those of the next one. Tiles of several rows read a
// strip of which terms are interleaved: four bytes of a column, then those of the next one. A single row reads W
// once, and interleaves in registers.
func (g *quantTiles) shortTiles() {
	g.words("shortOnes", 0x0001000100010001)
	g.words("lowBytes", 0x00ff00ff00ff00ff)
	name := func(rows, n int) string { return fmt.Sprintf("quantShort%dx%d%s<>", rows, n, g.suffix) }
	all := [][2]int{{shortTall, 2}, {2, 2}, {1, 2}}
	g.dispatch("quantShort", "t *quantTile", all, name)
	for _, k := range all {
		g.rows, g.n = k[0], k[1]
		g.shortKernel(name(k[0], k[1]))
	}
	g.interleave()
	g.narrow()
}

// shortTall is the height of the highest tile. Two vectors of W for three of four quarters of a step stay in
// registers beside its sums. Four rows, and half of W in memory, took 1.02 times as long (Zen 4, 2026-11-30).
const shortTall = 3

// words writes a vector of a number of 64 bits, four times.
func (g *quantTiles) words(name string, v uint64) {
	g.line("\n")
	for i := range 4 {
		g.line("DATA %s<>+%d(SB)/8, $%#018x\n", name, 8*i, v)
	}
	g.line("GLOBL %s<>(SB), RODATA|NOPTR, $32\n", name)
}

// shortKernel writes the function for tiles of two vectors. A step is 16 terms. Beside the registers of other
// kernels, R10 is at the bounds of the current step, and DX is what they may be.
func (g *quantTiles) shortKernel(name string) {
	g.line("\nTEXT %s(SB), NOSPLIT, $0-8\n", name)
	g.p("MOVQ tile_xRow(DI), R9; XORQ R11, R11")
	g.label("tile")
	g.p("MOVQ tile_x(DI), SI; MOVQ quantTile_done(DI), AX; IMULQ R9, AX; ADDQ AX, SI")
	for i := range g.rows * g.n {
		g.p("%s %s, %[2]s, %[2]s", g.zero, g.vec(i))
	}
	g.p("MOVQ tile_w(DI), BX; MOVQ tile_k(DI), CX; SHRQ $1, CX; MOVQ quantTile_bounds(DI), R10")
	g.p("MOVQ quantTile_limits(DI), AX; MOVQ quantTile_done(DI), DX; MOVL (AX)(DX*4), DX")
	g.p("MOVQ quantTile_ahead(DI), R13; MOVQ quantTile_aheadEnd(DI), R12")
	g.label("steps")
	if g.rows > 1 {
		g.fetchNext()
		g.p("CMPW (R10), DX; JHI  fours")
		g.shortStep(4)
	} else {
		g.p("CMPW 4(R10), DX; JHI  wide")
		g.halfRow(g.byPairs)
		g.halfRow(g.byPairs)
	}
	g.label("added")
	if g.rows > 1 {
		g.p("ADDQ $16, SI; ADDQ $%d, BX", stepsAtOnce*g.panelBytes())
	}
	g.p("ADDQ $6, R10; DECQ CX; JNZ  steps; MOVQ R13, quantTile_ahead(DI)")
	g.addTotals()
	g.floats()
	g.epilogue()
	g.p("ADDQ $%d, quantTile_done(DI); DECQ quantTile_tiles(DI); JNZ  tile", g.rows)
	g.end()
	if g.rows > 1 {
		g.label("fours")
		g.p("CMPW 2(R10), DX; JHI  twos")
		g.shortStep(2)
		g.p("JMP  added")
		g.label("twos")
		g.p("CMPW 4(R10), DX; JHI  wide")
		g.shortStep(1)
		g.p("JMP  added")
	}
	g.label("wide")
	if g.rows > 1 {
		for quarter := range 4 {
			g.byWords(quarter, func(v int) string { return fmt.Sprintf("%d(BX)", 64*quarter+32*v) })
		}
	} else {
		g.halfRow(g.byWords)
		g.halfRow(g.byWords)
	}
	g.p("JMP  added")
}

// shortStep adds the products of a step, of as many quarters at a time as are given, to the sums.
func (g *quantTiles) shortStep(together int) {
	w := func(quarter, v int) string {
		if quarter < 3 {
			return g.vec(6 + 2*quarter + v)
		}
		return fmt.Sprintf("%d(BX)", 64*quarter+32*v)
	}
	for i := range 6 {
		g.p("VMOVDQU %d(BX), %s", 32*i, w(i/2, i%2))
	}
	for row := range g.rows {
		for quarter := range 4 {
			x := fmt.Sprintf("%d(%s)", 4*quarter, quantRows[row])
			if quarter%together == 0 {
				g.p("VPBROADCASTD %s, Y12; VPMADDUBSW %s, Y12, Y13; VPMADDUBSW %s, Y12, Y12", x, w(quarter, 0), w(quarter, 1))
			} else {
				g.p("VPBROADCASTD %s, Y14; VPMADDUBSW %s, Y14, Y15; VPMADDUBSW %s, Y14, Y14", x, w(quarter, 0), w(quarter, 1))
				g.p("VPADDW Y15, Y13, Y13; VPADDW Y14, Y12, Y12")
			}
			if (quarter+1)%together == 0 {
				g.addWords(row, 13, 12)
			}
		}
	}
}

// halfRow interleaves half a step of W, in Y8 to Y11, adds its products with a single row, by quarters, and goes on.
func (g *quantTiles) halfRow(add func(quarter int, w func(v int) string)) {
	for i := range 2 {
		g.p("VMOVDQU %d(BX), Y12; VPUNPCKLWD %d(BX), Y12, Y%d; VPUNPCKHWD %[2]d(BX), Y12, Y%[4]d", 64*i, 64*i+32, 8+2*i, 9+2*i)
	}
	for quarter := range 2 {
		add(quarter, func(v int) string { return g.vec(8 + 2*quarter + v) })
	}
	g.p("ADDQ $8, SI; ADDQ $%d, BX", stepsAtOnce*g.panelBytes()/2)
}

// byPairs adds the products of a quarter of a step with a single row, two at a time.
func (g *quantTiles) byPairs(quarter int, w func(v int) string) {
	g.p("VPBROADCASTD %d(SI), Y12; VPMADDUBSW %s, Y12, Y13; VPMADDUBSW %s, Y12, Y12", 4*quarter, w(0), w(1))
	g.addWords(0, 13, 12)
}

// byWords adds the products of a quarter of a step, whose pairs may be more than words: even bytes become words, and
// odd ones do.
func (g *quantTiles) byWords(quarter int, w func(v int) string) {
	for v := range g.n {
		g.p("VMOVDQU %s, Y12; VPSRAW $8, Y12, Y13; VPSLLW $8, Y12, Y12; VPSRAW $8, Y12, Y12", w(v))
		for row := range g.rows {
			g.p("VPBROADCASTD %d(%s), Y14; VPSRLW $8, Y14, Y15; VPAND lowBytes<>(SB), Y14, Y14", 4*quarter, quantRows[row])
			g.p("VPMADDWD Y12, Y14, Y14; VPADDD Y14, %s, %[1]s; VPMADDWD Y13, Y15, Y15; VPADDD Y15, %[1]s, %[1]s", g.acc(row, v))
		}
	}
}

// addTotals adds what the least code of a row, which its bytes are without, adds to each column.
func (g *quantTiles) addTotals() {
	if first, second := g.acc(0, 0), g.acc(0, 1); g.rows == 1 {
		// What was interleaved in registers is not in the order of columns.
		g.p("VPERM2I128 $0x20, %s, %s, Y12; VPERM2I128 $0x31, %[1]s, %[2]s, %[1]s; VMOVDQA Y12, %[2]s", second, first)
	}
	g.p("MOVQ quantTile_begin(DI), AX; MOVQ quantTile_rowBegin(DI), R12; MOVQ quantTile_done(DI), R10; LEAQ (R12)(R10*4), R12")
	for row := range g.rows {
		g.p("VPBROADCASTD %d(R12), Y13", 4*row)
		for v := range g.n {
			g.p("VPMULLD %d(AX), Y13, Y12; VPADDD Y12, %s, %[2]s", 32*v, g.acc(row, v))
		}
	}
}

// addWords adds the words of two registers to the sums of a row.
func (g *quantTiles) addWords(row, first, second int) {
	for v, words := range []int{first, second} {
		g.p("VPMADDWD shortOnes<>(SB), Y%d, Y%[1]d; VPADDD Y%[1]d, %s, %[2]s", words, g.acc(row, v))
	}
}

// interleave writes the function that interleaves the terms of a strip, eight at a time, columns in order.
func (g *quantTiles) interleave() {
	g.open("quantInterleave", "to, w *byte, quads int", "DI", "SI", "CX")
	g.label("next")
	for at := 0; at < 128; at += 64 {
		g.p("VMOVDQU %d(SI), Y0; VPUNPCKLWD %d(SI), Y0, Y1; VPUNPCKHWD %[2]d(SI), Y0, Y2", at, at+32)
		g.p("VPERM2I128 $0x20, Y2, Y1, Y3; VMOVDQU Y3, %d(DI); VPERM2I128 $0x31, Y2, Y1, Y3; VMOVDQU Y3, %d(DI)", at, at+32)
	}
	g.p("ADDQ $128, SI; ADDQ $128, DI; DECQ CX; JNZ  next")
	g.end()
}

// narrow writes the function that takes the least byte of a row from each of its bytes. A row has 32 bytes at
// least; the last 32 overlap those before.
func (g *quantTiles) narrow() {
	g.open("quantNarrow", "to *byte, toRow uintptr, x *byte, xRow uintptr, k, rows int, low, high *int32", "DI", "R8", "SI", "R9", "DX", "CX", "R10", "R11")
	g.p("LEAQ -32(DX), BX")
	g.label("row")
	g.p("VMOVDQU (SI)(BX*1), Y0; VMOVDQA Y0, Y1; XORQ AX, AX")
	g.label("search")
	g.p("VMOVDQU (SI)(AX*1), Y2; VPMINUB Y2, Y0, Y0; VPMAXUB Y2, Y1, Y1; ADDQ $32, AX; CMPQ AX, BX; JLE  search")
	g.p("VEXTRACTI128 $1, Y0, X2; VPMINUB X2, X0, X0; VEXTRACTI128 $1, Y1, X2; VPMAXUB X2, X1, X1")
	for shift := 8; shift > 0; shift /= 2 {
		g.p("VPSRLDQ $%d, X0, X2; VPMINUB X2, X0, X0; VPSRLDQ $%[1]d, X1, X2; VPMAXUB X2, X1, X1", shift)
	}
	g.p("VPEXTRB $0, X0, AX; MOVL AX, (R10); VPEXTRB $0, X1, AX; MOVL AX, (R11); VPBROADCASTB X0, Y0; XORQ AX, AX")
	g.label("store")
	g.p("VMOVDQU (SI)(AX*1), Y2; VPSUBB Y0, Y2, Y2; VMOVDQU Y2, (DI)(AX*1); ADDQ $32, AX; CMPQ AX, BX; JLE  store")
	g.p("VMOVDQU (SI)(BX*1), Y2; VPSUBB Y0, Y2, Y2; VMOVDQU Y2, (DI)(BX*1)")
	g.p("ADDQ R8, DI; ADDQ R9, SI; ADDQ $4, R10; ADDQ $4, R11; DECQ CX; JNZ  row")
	g.end()
}
