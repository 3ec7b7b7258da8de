package main

// writeQuantTilesNEON writes the kernels of quantized products for arm64: of bytes, for processors
// with dot products, and of words. The registers are those of other products, but the sums begin
// with register 8, because elements of x that multiply words must be in the first 16.
func writeQuantTilesNEON(e *emitter) {
	e.rotate = 8
	for _, how := range []multiplier{{name: "quantBytes", suffix: "Dot"}, {name: "quantWords", suffix: "NEON"}} {
		e.suffix = how.suffix
		g := &quantTiles{tiles: tiles{emitter: e, done: "quantTile_done"}, how: how}
		g.eachKernel(g.kernelNEON)
	}
}

// kernelNEON is kernel for arm64.
func (g *quantTiles) kernelNEON(rows, n int) {
	g.rows, g.n = rows, n
	g.line("\nTEXT %s(SB), NOSPLIT, $0-8\n", g.name(rows, n))
	g.p("MOVQ tile_xRow(DI), R9; XORQ R11, R11")
	g.label("tile")
	g.line("\tMOVD tile_x(R0), %s\n\tMOVD quantTile_done(R0), R3\n\tMADD R9, %[1]s, R3, %[1]s\n", rowPointers[0])
	for row := 1; row < rows; row++ {
		g.line("\tADD R9, %s, %s\n", rowPointers[row-1], rowPointers[row])
	}
	g.beginNEON()
	g.line("\tMOVD tile_w(R0), R4\n\tMOVD tile_k(R0), R5\n\tMOVD ZR, %s\n\tCBZ R5, summed\n", stepOffset)
	g.label("steps")
	g.loadRows()
	for u := range stepsAtOnce {
		g.eachPair(n, func(v, pair int) {
			g.loadPair("R4", u*g.panelBytes()+16*v, temp, pair)
			for row := range rows {
				for i := range pair {
					g.multiply(g.acc(row, v+i), g.vec(temp+i), g.vec(g.x+row), u)
				}
			}
		})
	}
	g.line("\tADD $16, %s\n\tADD $%d, R4\n\tSUBS $1, R5\n\tBNE steps\n", stepOffset, stepsAtOnce*g.panelBytes())
	g.label("summed")
	g.floats()
	g.epilogue()
	g.p("ADDQ $%d, quantTile_done(DI); DECQ quantTile_tiles(DI); JNZ tile", rows)
	g.end()
}

// beginNEON clears the sums. Sums of bytes begin with what is missing in those of signed bytes.
func (g *quantTiles) beginNEON() {
	if g.how.suffix != "Dot" {
		for i := range g.rows * g.n {
			g.p("VXORPS %s, %[1]s, %[1]s", g.vec(i))
		}
		return
	}
	// All rows begin alike: what a column contributes does not depend on x.
	g.line("\tMOVD quantTile_begin(R0), R3\n")
	for v := range g.n {
		g.p("VMOVUPS %d(AX), %s", 16*v, g.acc(0, v))
		for row := 1; row < g.rows; row++ {
			g.p("VMOVUPS %s, %s", g.acc(0, v), g.acc(row, v))
		}
	}
}

// multiply writes step u of a row of x and four columns of W: two words of a column are in the
// lower and the upper half of w.
func (g *quantTiles) multiply(acc, w, x string, u int) {
	d, n, m := number(acc), number(w), number(x)
	if g.how.suffix == "Dot" {
		bits := words["sdot.4b"] | uint32(u&1)<<21 | uint32(u>>1)<<11 | m<<16 | n<<5 | d
		g.line("\tWORD $0x%08x // sdot v%d.4s, v%d.16b, v%d.4b[%d]\n", bits, d, n, m, u)
		return
	}
	// The first words of four columns are in the lower half of a vector, the second ones in the
	// upper half: each half has a word of x as its factor.
	for half, op := range []string{"smlal", "smlal2"} {
		i := uint32(2*u + half)
		bits := words[op+".h"] | i&1<<20 | i>>1&1<<21 | i>>2<<11 | m<<16 | n<<5 | d
		g.line("\tWORD $0x%08x // %s v%d.4s, v%d.%dh, v%d.h[%d]\n", bits, op, d, n, 4<<half, m, i)
	}
}

// writeQuantizeNEON is writeQuantize for arm64. The registers:
//
//	R0       the arguments
//	R1, R8   a row of x, and of codes
//	R9       remaining rows
//	R10      the parameters of the row
//	R2, R11  the number of elements of a row, and the first one of its last vector
//	R3-R7    the current element, its code, remaining elements, scratch
//	V12-V15  zero, the bits to flip in codes, the number that rounds, the number of levels
func writeQuantizeNEON(e *emitter) {
	for _, words := range []bool{false, true} {
		name, size := "quantizeBytes", 1
		if words {
			name, size = "quantizeWords", 2
		}
		e.open(name, "q *quantizing", "DI")
		e.line("\tMOVD quantizing_x(R0), R1\n\tMOVD quantizing_codes(R0), R8\n\tMOVD quantizing_rows(R0), R9\n\tMOVD quantizing_params(R0), R10\n")
		e.line("\tMOVD quantizing_k(R0), R2\n\tSUB $4, R2, R11\n\tVMOVI $0, V12.B16\n\tMOVWU quantizing_flip(R0), R6\n\tVDUP R6, V13.B16\n")
		e.line("\tFMOVS quantizing_magic(R0), F14\n\tVDUP V14.S[0], V14.S4\n\tFMOVS quantizing_levels(R0), F15\n")
		e.label("row")
		e.line("\tMOVBU quantizing_step(R0), R6\n\tFMOVS quantizing_low(R0), F0\n\tFMOVS quantizing_perUnit(R0), F5\n\tCMP $%d, R6\n\tBEQ coding\n", encodeStep)
		extremesNEON(e)
		// The sum of what is strange is 0 or NaN.
		e.line("\tMOVBU quantizing_step(R0), R6\n\tCMP $%d, R6\n\tBNE all\n\tFADDS F16, F0, F0\n\tFMOVS F0, (R10)\n\tFMOVS F4, 4(R10)\n\tJMP next\n", searchStep)
		e.label("all")
		parametersNEON(e)
		e.label("coding")
		e.line("\tVDUP V0.S[0], V0.S4\n\tVDUP V5.S[0], V5.S4\n\tMOVD R8, R4\n")
		loopsNEON(e, "encode", func(n int) { encodeNEON(e, n, size, "R4"); e.line("\tADD $%d, R4\n", 4*n*size) })
		e.line("\tADD R11<<2, R1, R3\n\tADD R11<<%d, R8, R4\n\tFMOVQ (R3), F8\n", size-1)
		encodeNEON(e, 1, size, "R4")
		e.label("next")
		for _, f := range []struct{ field, reg string }{{"xRow", "R1"}, {"codesRow", "R8"}} {
			e.line("\tMOVD quantizing_%s(R0), R6\n\tADD R6, %s\n", f.field, f.reg)
		}
		e.line("\tADD $8, R10\n\tSUBS $1, R9\n\tBNE row\n")
		e.end()
	}
}

// loopsNEON writes a loop over a row: four vectors at a time, in V8 and on, then one by one. What
// remains is less than a vector.
func loopsNEON(e *emitter, name string, f func(n int)) {
	e.line("\tMOVD R1, R3\n\tMOVD R2, R5\n\tJMP %sCheck\n", name)
	// Conditions are at the ends of both loops, so that a round has one branch.
	for _, n := range []int{4, 1} {
		loop, check := name, name+"Check"
		if n == 1 {
			loop, check = name+"Each", name+"EachCheck"
		}
		e.label(loop)
		e.eachPair(n, func(v, pair int) { e.loadPair("R3", 16*v, 8+v, pair) })
		f(n)
		e.line("\tADD $%d, R3\n\tSUB $%d, R5\n", 16*n, 4*n)
		if n == 4 {
			e.label(check)
			e.line("\tCMP $16, R5\n\tBGE %s\n\tJMP %sEachCheck\n", loop, name)
		} else {
			e.label(check)
			e.line("\tCMP $4, R5\n\tBGE %s\n", loop)
		}
	}
}

// extremesNEON writes the search for the least and the greatest element, to F0 and F4. F16 is NaN
// if an element is not finite.
func extremesNEON(e *emitter) {
	const least, most, strange = 0, 4, 16
	e.line("\tFMOVQ (R1), F0\n")
	for i := range 4 {
		if i > 0 {
			e.p("VMOVUPS V0, V%d", least+i)
		}
		e.p("VMOVUPS V0, V%d; VXORPS V%d, V%[2]d, V%[2]d", most+i, strange+i)
	}
	visit := func(n int) {
		for i := range n {
			x := e.vec(8 + i)
			e.word("fmin.4s", e.vec(least+i), e.vec(least+i), x)
			e.word("fmax.4s", e.vec(most+i), e.vec(most+i), x)
			e.word("fmla.4s", e.vec(strange+i), x, "V12") // an infinity or NaN times zero is NaN
		}
	}
	loopsNEON(e, "search", visit)
	e.line("\tADD R11<<2, R1, R3\n\tFMOVQ (R3), F8\n")
	visit(1)
	for _, r := range []struct {
		first int
		op    string
	}{{least, "fmin.4s"}, {most, "fmax.4s"}, {strange, "fadd.4s"}} {
		for _, pair := range [][2]int{{0, 1}, {2, 3}, {0, 2}} {
			a := e.vec(r.first + pair[0])
			e.word(r.op, a, a, e.vec(r.first+pair[1]))
		}
	}
	for _, r := range []struct {
		op string
		at uint32
	}{{"fminv", least}, {"fmaxv", most}} {
		e.line("\tWORD $0x%08x // %s s%d, v%[3]d.4s\n", words[r.op]|r.at<<5|r.at, r.op, r.at)
	}
	e.word("faddp.4s", "V16", "V16", "V16")
	e.word("faddp.4s", "V16", "V16", "V16")
}

// parametersNEON writes the computation of a row's parameters. It leaves the least element in F0,
// and steps per unit in F5.
func parametersNEON(e *emitter) {
	e.line("\tFSUBS F0, F4, F3\n\tFMOVS quantizing_wide(R0), F6\n\tFMULS F6, F3, F6\n\tFMULS F12, F6, F6\n\tFADDS F6, F16, F16\n\tVMOVI $0, V5.B16\n\tFCMPS F12, F3\n\tBLE flat\n")
	e.line("\tFDIVS F3, F15, F5\n\tFMULS F12, F5, F6\n\tFADDS F6, F16, F16\n")
	e.label("flat")
	e.line("\tFDIVS F15, F3, F6\n\tFMOVS quantizing_middle(R0), F7\n\tFMULS F7, F6, F7\n\tFADDS F0, F7, F7\n\tFCMPS F16, F16\n\tBVC finite\n")
	e.line("\tMOVD quantizing_marked(R0), R6\n\tADD $1, R6\n\tMOVD R6, quantizing_marked(R0)\n")
	e.line("\tVMOVI $0, V0.B16\n\tVMOVI $0, V5.B16\n\tVMOVI $0, V7.B16\n\tFMOVS F16, F6\n")
	e.label("finite")
	e.line("\tFMOVS F6, (R10)\n\tFMOVS F7, 4(R10)\n")
}

// encodeNEON writes the codes of one or four vectors in V8 and on. The last bits of a float that is
// rounded to an integer are its code.
func encodeNEON(e *emitter, n, size int, to string) {
	for i := range n {
		v := e.vec(8 + i)
		e.word("fsub.4s", v, v, "V0")
		e.word("fmul.4s", v, v, "V5")
		e.word("fadd.4s", v, v, "V14")
	}
	narrow := func(op string, d, a, b int) { e.word(op, e.vec(d), e.vec(a), e.vec(b)) }
	if n == 1 {
		narrow("uzp1.8h", 8, 8, 8)
	} else {
		narrow("uzp1.8h", 8, 8, 9)
		narrow("uzp1.8h", 9, 10, 11)
	}
	if size == 2 {
		e.line("\t%s, (%s)\n", map[int]string{1: "FMOVD F8", 4: "FSTPQ (F8, F9)"}[n], to)
		return
	}
	narrow("uzp1.16b", 8, 8, 9)
	e.word("eor.16b", "V8", "V8", "V13")
	e.line("\t%s, (%s)\n", map[int]string{1: "FMOVS F8", 4: "FMOVQ F8"}[n], to)
}
