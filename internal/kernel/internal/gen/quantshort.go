package main

import "fmt"

// shortTiles writes the kernels of AVX2 that multiply bytes of x with bytes of W and add up four products of
// a column as a word, before they become a sum. Bytes of x are what is left of codes after the least one of
// their row, so that four products are the smaller; see quantshort.go for when that is exact.
//
// A kernel reads the W of halved products, where two bytes of a column stand beside those of the next one:
// interleaving two steps gives four bytes of columns 0 to 3 and 8 to 11, and of the others.
func (g *quantTiles) shortTiles() {
	g.words("shortOnes", 0x0001000100010001)
	g.words("lowBytes", 0x00ff00ff00ff00ff)
	name := func(rows, n int) string { return fmt.Sprintf("quantShort%dx%d%s<>", rows, n, g.suffix) }
	all := [][2]int{{4, 2}, {3, 2}, {1, 2}}
	g.dispatch("quantShort", "t *quantTile", all, name)
	for _, k := range all {
		g.rows, g.n = k[0], k[1]
		g.shortKernel(name(k[0], k[1]))
	}
	g.narrow()
}

// words writes a vector of a number of 64 bits, four times.
func (g *quantTiles) words(name string, v uint64) {
	g.line("\n")
	for i := range 4 {
		g.line("DATA %s<>+%d(SB)/8, $%#018x\n", name, 8*i, v)
	}
	g.line("GLOBL %s<>(SB), RODATA|NOPTR, $32\n", name)
}

// shortKernel writes the function for tiles of two vectors. Beside the registers of other kernels, R10 is at
// the bounds of the current steps, and DX is what they may be.
func (g *quantTiles) shortKernel(name string) {
	g.line("\nTEXT %s(SB), NOSPLIT, $0-8\n", name)
	g.p("MOVQ tile_xRow(DI), R9; XORQ R11, R11")
	g.label("tile")
	g.p("MOVQ tile_x(DI), SI; MOVQ quantTile_done(DI), AX; IMULQ R9, AX; ADDQ AX, SI")
	if g.rows > 3 {
		g.p("LEAQ (SI)(R9*2), R8; ADDQ R9, R8")
	}
	for i := range g.rows * g.n {
		g.p("%s %s, %[2]s, %[2]s", g.zero, g.vec(i))
	}
	g.p("MOVQ tile_w(DI), BX; MOVQ tile_k(DI), CX; MOVQ quantTile_bounds(DI), R10")
	g.p("MOVQ quantTile_limits(DI), AX; MOVQ quantTile_done(DI), DX; MOVL (AX)(DX*4), DX")
	g.p("MOVQ quantTile_ahead(DI), R13; MOVQ quantTile_aheadEnd(DI), R12")
	g.label("steps")
	if g.rows > 1 {
		g.fetchNext()
	}
	for i := range 2 {
		g.p("VMOVDQU %d(BX), Y12; VPUNPCKLWD %d(BX), Y12, Y%d; VPUNPCKHWD %[2]d(BX), Y12, Y%[4]d", 64*i, 64*i+32, 8+2*i, 9+2*i)
	}
	if g.rows > 1 {
		g.p("CMPW (R10), DX; JHI  apart")
	} else {
		g.p("CMPW 2(R10), DX; JHI  wide")
		g.twoByTwo()
	}
	for row := range g.rows {
		if g.rows == 1 {
			break
		}
		x := quantRows[row]
		g.p("VPBROADCASTD (%s), Y12; VPMADDUBSW Y8, Y12, Y13; VPMADDUBSW Y9, Y12, Y12", x)
		g.p("VPBROADCASTD 4(%s), Y14; VPMADDUBSW Y10, Y14, Y15; VPMADDUBSW Y11, Y14, Y14", x)
		g.p("VPADDW Y15, Y13, Y13; VPADDW Y14, Y12, Y12")
		g.addWords(row, 13, 12)
	}
	g.label("added")
	g.p("ADDQ $8, SI; ADDQ $%d, BX; ADDQ $4, R10", stepsAtOnce*g.panelBytes()/2)
	if g.rows > 3 {
		g.p("ADDQ $8, R8")
	}
	g.p("DECQ CX; JNZ  steps; MOVQ R13, quantTile_ahead(DI)")
	// Columns in order, and what the least code of a row, which its bytes are without, adds to each.
	g.p("MOVQ quantTile_begin(DI), AX; MOVQ quantTile_rowBegin(DI), R12; MOVQ quantTile_done(DI), R10; LEAQ (R12)(R10*4), R12")
	for row := range g.rows {
		first, second := g.acc(row, 0), g.acc(row, 1)
		g.p("VPERM2I128 $0x20, %s, %s, Y12; VPERM2I128 $0x31, %[1]s, %[2]s, %[1]s; VMOVDQA Y12, %[2]s", second, first)
		g.p("VPBROADCASTD %d(R12), Y13; VPMULLD (AX), Y13, Y12; VPMULLD 32(AX), Y13, Y13; VPADDD Y12, %s, %[2]s; VPADDD Y13, %[3]s, %[3]s", 4*row, first, second)
	}
	g.floats()
	g.epilogue()
	g.p("ADDQ $%d, quantTile_done(DI); DECQ quantTile_tiles(DI); JNZ  tile", g.rows)
	g.end()
	if g.rows > 1 {
		// Two products at a time, where four may be more than a word.
		g.label("apart")
		g.p("CMPW 2(R10), DX; JHI  wide")
		g.twoByTwo()
		g.p("JMP  added")
	}
	// Words, even bytes and odd ones, where two may be.
	g.label("wide")
	for i := range 2 {
		for v := range 2 {
			w := 8 + 2*i + v
			g.p("VPSRAW $8, Y%d, Y13; VPSLLW $8, Y%[1]d, Y12; VPSRAW $8, Y12, Y12", w)
			for row := range g.rows {
				g.p("VPBROADCASTD %d(%s), Y14; VPSRLW $8, Y14, Y15; VPAND lowBytes<>(SB), Y14, Y14", 4*i, quantRows[row])
				for _, r := range []string{"Y12, Y14, Y14", "Y13, Y15, Y15"} {
					g.p("VPMADDWD %s; VPADDD %s, %s, %[3]s", r, r[5:8], g.acc(row, v))
				}
			}
		}
	}
	g.p("JMP  added")
}

// twoByTwo adds the products of the current steps, two at a time.
func (g *quantTiles) twoByTwo() {
	for row := range g.rows {
		for i := range 2 {
			g.p("VPBROADCASTD %d(%s), Y12; VPMADDUBSW Y%d, Y12, Y13; VPMADDUBSW Y%d, Y12, Y12", 4*i, quantRows[row], 8+2*i, 9+2*i)
			g.addWords(row, 13, 12)
		}
	}
}

// addWords adds the words of two registers to the sums of a row.
func (g *quantTiles) addWords(row, first, second int) {
	for v, words := range []int{first, second} {
		g.p("VPMADDWD shortOnes<>(SB), Y%d, Y%[1]d; VPADDD Y%[1]d, %s, %[2]s", words, g.acc(row, v))
	}
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
