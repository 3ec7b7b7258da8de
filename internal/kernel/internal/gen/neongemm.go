package main

// On arm64 each row of x has a pointer, in these registers. R14 is the offset of the current step
// of k, in bytes, and R15 the distance of two steps in the panel.
var rowPointers = []string{"R19", "R20", "R21", "R22", "R23", "R24"}

const stepOffset = "R14"

// rowPointersNEON sets the pointers to the rows of x.
func (g *tiles) rowPointersNEON() {
	g.line("\tMOVD tile_x(R0), %s\n", rowPointers[0])
	for row := 1; row < g.rows; row++ {
		g.line("\tADD R9, %s, %s\n", rowPointers[row-1], rowPointers[row])
	}
}

// loopNEON writes the sum over k. Where the elements of a row are side by side it loads four of
// each row at a time.
func (g *tiles) loopNEON() {
	g.line("\tMOVD tile_k(R0), R5\n\tMOVD tile_wStep(R0), R15\n\tMOVD ZR, %s\n\tCMP $4, R10\n\tBNE single\n", stepOffset)
	// fmla multiplies by one element of a vector. So four steps need one load for each row of x,
	// and none of the broadcasts of amd64. Rows of a transposed x have their elements apart: they
	// take single steps.
	g.line("\tLSR $2, R5\n\tCBZ R5, rest\n")
	g.label("steps")
	g.loadRows()
	for u := range unroll {
		g.stepNEON(u)
	}
	g.line("\tADD $16, %s\n\tSUBS $1, R5\n\tBNE steps\n", stepOffset)
	g.label("rest")
	g.line("\tMOVD tile_k(R0), R5\n\tAND $%d, R5\n", unroll-1)
	g.label("single")
	g.line("\tCBZ R5, done\n")
	g.label("step")
	g.loadElements()
	g.stepNEON(0)
	g.line("\tADD R10, %s\n\tSUBS $1, R5\n\tBNE step\n", stepOffset)
	g.label("done")
}

// loadRows loads 16 bytes of each row of x.
func (g *tiles) loadRows() {
	for row := range g.rows {
		g.line("\tWORD $0x%08x // ldr q%d, [x%s,x%s]\n", g.loadIndexed(row), number(g.vec(g.x+row)), rowPointers[row][1:], stepOffset[1:])
	}
}

// loadElements loads an element of each row of x.
func (g *tiles) loadElements() {
	for row := range g.rows {
		g.line("\tFMOVS (%s)(%s), F%d\n", rowPointers[row], stepOffset, number(g.vec(g.x+row)))
	}
}

// loadIndexed returns the instruction that loads 16 bytes of a row of x.
func (g *tiles) loadIndexed(row int) uint32 {
	return 0x3ce06800 | number(stepOffset)<<16 | number(rowPointers[row])<<5 | number(g.vec(g.x+row))
}

// stepNEON writes a step of k, with elements u of the rows of x, and moves R4 to the next step.
func (g *tiles) stepNEON(u int) {
	// Two vectors of W at a time: one load, and twelve multiplications that do not wait for each
	// other with six rows.
	g.eachPair(g.n, func(v, n int) {
		g.loadPair("R4", 16*v, temp, n)
		for row := range g.rows {
			for i := range n {
				g.fmlaBy(4, g.acc(row, v+i), g.vec(temp+i), g.vec(g.x+row), u)
			}
		}
	})
	g.line("\tADD R15, R4\n")
}

// eachPair calls f for pairs of vectors, and for the last one if their number n is odd.
func (e *emitter) eachPair(n int, f func(v, n int)) {
	for v := 0; v < n; v += 2 {
		f(v, min(2, n-v))
	}
}

// loadPair loads two vectors, or one.
func (e *emitter) loadPair(pointer string, at, register, n int) {
	if n == 2 {
		e.line("\tFLDPQ %d(%s), (F%d, F%d)\n", at, pointer, number(e.vec(register)), number(e.vec(register+1)))
	} else {
		e.line("\tFMOVQ %d(%s), F%d\n", at, pointer, number(e.vec(register)))
	}
}

// writeDoubleTilesNEON is writeDoubleTiles for arm64: tiles of 4 rows and 6 vectors.
func writeDoubleTilesNEON(e *emitter) {
	const rows, vecs, b, a = 4, 6, 24, 30 // the first registers of a row of b, and of a column of a
	e.open("dTile", "a, b *float64, k int, c *float64, stride uintptr, alpha float64", "SI", "DX", "CX", "DI", "R8", "-")
	for i := range rows * vecs {
		e.p("VXORPS V%d, V%[1]d, V%[1]d", i)
	}
	e.p("MOVQ DI, R9")
	for range rows { // c, which is needed at the end
		e.p("PREFETCHT0 (R9); PREFETCHT0 64(R9); ADDQ R8, R9")
	}
	e.label("step")
	// Four elements of a column of a are in two registers, and each is a factor by itself.
	e.line("\tFLDPQ.P 32(R1), (F%d, F%d)\n", a, a+1)
	e.eachPair(vecs, func(j, n int) { e.loadPair("R2", 16*j, b+j, n) })
	for j := range vecs {
		for i := range rows {
			e.fmlaBy(8, e.vec(i*vecs+j), e.vec(b+j), e.vec(a+i/2), i%2)
		}
	}
	e.line("\tADD $%d, R2\n\tSUBS $1, R5\n\tBNE step\n\tFMOVD alpha+40(FP), F%d\n", 16*vecs, a)
	for i := range rows {
		e.eachPair(vecs, func(j, n int) {
			e.loadPair("R0", 16*j, b+j, n)
			for l := range n {
				e.fmlaBy(8, e.vec(b+j+l), e.vec(i*vecs+j+l), e.vec(a), 0)
			}
			e.line("\tFSTPQ (F%d, F%d), %d(R0)\n", b+j, b+j+1, 16*j)
		})
		e.p("ADDQ R8, DI")
	}
	e.end()
}

// tailBytes is the size of the copies of the tails of rows, in the frame of a kernel of narrow
// products.
const tailBytes = 3 * laneSums * 4

// kernelNEON writes the kernel of narrow products for a number of rows. The tail of a row is copied
// to the frame and padded with zeros, so that all blocks are whole. The registers are
//
//	R0                the arguments
//	R8, R9, R10, R11  the rows of x at the current block, or of the tails, and the distance of rows
//	R3, R4, R12, R13  the columns of W at the current block, and the distance of columns
//	R1, R2, R14       the beginning of the group in W and in the result, remaining columns
//	R5, R6            remaining blocks, scratch
//
// R19 is whether the tail is done, and R20 and R21 are those of W for the third and the fourth
// column.
func (g *lanes) kernelNEON(rows int) {
	g.rows, g.cols, g.parts = rows, 4, 4
	if rows > 1 {
		g.cols = 2 // more than two would not fit
	}
	g.line("\nTEXT %s(SB), NOSPLIT, $%d-8\n", g.name(rows), tailBytes)
	g.line("\tMOVD t+0(FP), R0\n")
	for _, f := range []struct{ field, reg string }{{"w", "R1"}, {"wRow", "R13"}, {"xRow", "R11"}, {"dst", "R2"}, {"cols", "R14"}} {
		g.line("\tMOVD laneTile_%s(R0), %s\n", f.field, f.reg)
	}
	// NEON has no masked loads. What is behind a row may be unmapped, and what is in the next row
	// may be infinite.
	g.copyTails()
	g.label("group")
	for i := range rows * g.cols * g.parts {
		g.p("VXORPS V%d, V%[1]d, V%[1]d", i)
	}
	w := []string{"R3", "R4", "R20", "R21"}[:g.cols]
	g.line("\tMOVD R1, R3\n")
	for i := 1; i < g.cols; i++ {
		g.line("\tADD R13, %s, %s\n", w[i-1], w[i])
	}
	x := []string{"R8", "R9", "R10"}[:rows]
	g.line("\tMOVD laneTile_x(R0), R8\n")
	for i := 1; i < rows; i++ {
		g.line("\tADD R11, %s, %s\n", x[i-1], x[i])
	}
	g.line("\tMOVD laneTile_blocks(R0), R5\n\tMOVD laneTile_tail(R0), R19\n")
	g.label("step")
	g.blockNEON(x, w)
	// After the blocks the same code makes one more step with the copies of the tails, while R19
	// says that there are some.
	g.line("\tSUBS $1, R5\n\tBNE step\n\tCBZ R19, sum\n\tMOVD ZR, R19\n\tMOVD $1, R5\n")
	for i := range rows {
		g.line("\tMOVD $tails-%d(SP), %s\n", tailBytes-i*laneSums*4, x[i])
	}
	g.line("\tJMP step\n")
	g.label("sum")
	g.sumsNEON()
	g.line("\tADD R13<<%d, R1\n\tADD $%d, R2\n\tSUBS $%d, R14\n\tBNE group\n", g.cols/2, 4*g.cols, g.cols)
	g.end()
}

// copyTails copies the tails of the rows.
func (g *lanes) copyTails() {
	g.line("\tMOVD laneTile_tail(R0), R19\n\tCBZ R19, group\n")
	g.line("\tMOVD laneTile_x(R0), R8\n\tMOVD laneTile_blocks(R0), R5\n\tADD R5<<6, R8\n\tMOVD $tails-%d(SP), R3\n\tMOVD R3, R4\n", tailBytes)
	for range tailBytes / 16 {
		g.line("\tSTP.P (ZR, ZR), 16(R4)\n")
	}
	g.line("\tMOVD $%d, R5\n", g.rows)
	g.label("row")
	g.line("\tMOVD ZR, R6\n")
	g.label("element")
	g.line("\tMOVWU (R8)(R6<<2), R4\n\tMOVW R4, (R3)(R6<<2)\n\tADD $1, R6\n\tCMP R19, R6\n\tBNE element\n")
	g.line("\tADD R11, R8\n\tADD $%d, R3\n\tSUBS $1, R5\n\tBNE row\n", laneSums*4)
}

// blockNEON writes the products of a block, two of its vectors at a time.
func (g *lanes) blockNEON(x, w []string) {
	factors := g.rows * g.cols * g.parts // the first of the registers for W, then those for x
	for part := 0; part < g.parts; part += 2 {
		for col := range g.cols {
			g.loadPair(w[col], 16*part, factors+2*col, 2)
		}
		for row := range g.rows {
			v := factors + 2*g.cols + row%2*2
			g.loadPair(x[row], 16*part, v, 2)
			for col := range g.cols {
				for i := range 2 {
					g.word("fmla.4s", g.acc(row, col, part+i), g.vec(factors+2*col+i), g.vec(v+i))
				}
			}
		}
	}
	for _, p := range append(append([]string{}, x...), w...) {
		g.line("\tADD $%d, %s\n", laneSums*4, p)
	}
}

// sumsNEON adds up the lanes, neighbours first, and stores the sums.
func (g *lanes) sumsNEON() {
	pairs := func(d, n, m string) { g.word("faddp.4s", d, n, m) }
	g.line("\tMOVD R2, R3\n\tMOVD laneTile_dstRow(R0), R4\n")
	for row := range g.rows {
		for col := range g.cols {
			// faddp adds neighbours of both arguments, so its result keeps the order of addPairs.
			a := func(part int) string { return g.acc(row, col, part) }
			pairs(a(0), a(0), a(1))
			pairs(a(2), a(2), a(3))
			pairs(a(0), a(0), a(2))
		}
		first := g.acc(row, 0, 0)
		pairs(first, first, g.acc(row, 1, 0))
		if g.cols == 4 {
			third := g.acc(row, 2, 0)
			pairs(third, third, g.acc(row, 3, 0))
			pairs(first, first, third)
			g.line("\tFMOVQ F%d, (R3)\n", number(first))
		} else {
			pairs(first, first, first)
			g.line("\tFMOVD F%d, (R3)\n", number(first))
		}
		if row < g.rows-1 {
			g.line("\tADD R4, R3\n")
		}
	}
}
