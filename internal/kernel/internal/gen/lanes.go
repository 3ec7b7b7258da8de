package main

import "fmt"

// laneSums is the number of partial sums of a dot product in lanes.
const laneSums = 16

// lanes writes the kernels of narrow products: dot products, in 16 lanes, of some rows of x and all
// rows of W. W has a row per column of the result, padded with zeros. There is a function for every
// number of rows whose sums fit the registers, and one that chooses among them.
//
// Their argument is struct laneTile in narrow.go. The registers:
//
//	DI          the arguments
//	SI, R8, R9  the first and the fourth row of x, at the current block, and the distance of rows
//	AX, BX, R10 the first and the third row of the group of W, at the block, and the distance
//	R11, R12    the beginning of the group in W and in the result
//	DX, CX      remaining columns and blocks
//	R13         scratch
//
// The accumulators come first among the vector registers, a row after the other.
type lanes struct {
	*emitter
	rows, cols int // of the kernel that is written
	parts      int // vectors of a block
}

func writeLanes(e *emitter) {
	g := &lanes{emitter: e, parts: laneSums / e.lanes}
	if e.lanes == 8 {
		g.writeMask("laneMask", laneSums)
	}
	g.open("dotLanes", "t *laneTile", "DI")
	g.p("MOVQ laneTile_rows(DI), AX")
	for rows := e.laneRows; rows > 1; rows-- {
		g.p("CMPQ AX, $%d; JEQ  to%[1]d", rows)
	}
	for rows := range e.laneRows {
		if rows > 0 {
			g.label(fmt.Sprintf("to%d", rows+1))
		}
		g.p("JMP  %s(SB)", g.name(rows+1))
	}
	for rows := range e.laneRows {
		if e.arm() {
			g.kernelNEON(rows + 1)
		} else {
			g.kernel(rows + 1)
		}
	}
}

func (g *lanes) name(rows int) string { return fmt.Sprintf("dotLanes%d%s<>", rows, g.suffix) }

// acc is the register with a part of the sums of a row and a column.
func (g *lanes) acc(row, col, part int) string { return g.vec((row*g.cols+col)*g.parts + part) }

// kernel writes the function for the given number of rows.
func (g *lanes) kernel(rows int) {
	g.rows, g.cols = rows, 4
	if g.lanes == 8 && rows > 1 {
		// A block takes two vectors of AVX2, so three rows and two columns have twelve
		// accumulators. The other four registers are for two columns of W, for x and for the mask.
		g.cols = 2 // more than two would not fit
	}
	g.line("\nTEXT %s(SB), NOSPLIT, $0-8\n", g.name(rows))
	for _, f := range []struct{ field, reg string }{{"w", "R11"}, {"wRow", "R10"}, {"xRow", "R9"}, {"dst", "R12"}, {"cols", "DX"}} {
		g.p("MOVQ laneTile_%s(DI), %s", f.field, f.reg)
	}
	if g.lanes == 16 {
		g.p("MOVL  laneTile_mask(DI), AX; KMOVW AX, K1")
	}
	g.label("group")
	g.p("MOVQ laneTile_x(DI), SI")
	if rows > 3 {
		g.p("LEAQ (SI)(R9*2), R8; ADDQ R9, R8")
	}
	g.p("MOVQ R11, AX")
	if g.cols > 2 {
		g.p("LEAQ (R11)(R10*2), BX")
	}
	for i := range rows * g.cols * g.parts {
		g.p("%s %s, %[2]s, %[2]s", g.zero, g.vec(i))
	}
	// The blocks before the tail are whole: there is at least one, because a narrow product has 32
	// steps or more.
	g.p("MOVQ laneTile_blocks(DI), CX")
	g.label("step")
	g.block(false)
	g.p("ADDQ $%d, SI", laneSums*4)
	if rows > 3 {
		g.p("ADDQ $%d, R8", laneSums*4)
	}
	g.p("ADDQ $%d, AX", laneSums*4)
	if g.cols > 2 {
		g.p("ADDQ $%d, BX", laneSums*4)
	}
	g.p("DECQ CX; JNZ  step")
	g.p("MOVQ  laneTile_tail(DI), CX; TESTQ CX, CX; JZ    sum")
	if g.lanes == 8 {
		// The mask begins as many words before the zeros as the tail has elements.
		g.p("NEGQ CX; LEAQ laneMask<>+%d(SB), R13", 4*laneSums)
	}
	g.block(true)
	g.label("sum")
	g.sums()
	g.p("LEAQ (R11)(R10*%d), R11; ADDQ $%d, R12; SUBQ $%[1]d, DX; JNZ  group", g.cols, 4*g.cols)
	g.end()
}

// block writes the products of a block of 16 steps, or of the tail after the last block.
func (g *lanes) block(tail bool) {
	x := []string{"(SI)", "(SI)(R9*1)", "(SI)(R9*2)", "(R8)", "(R8)(R9*1)", "(R8)(R9*2)"}
	w := []string{"(AX)", "(AX)(R10*1)", "(BX)", "(BX)(R10*1)"}
	scratch := g.rows * g.cols * g.parts
	if g.lanes == 8 {
		scratch = 12
	}
	for part := range g.parts {
		at := part * g.lanes * 4
		mask := g.vec(scratch + 3)
		if tail && g.lanes == 8 {
			g.p("VMOVUPS %d(R13)(CX*4), %s", at, mask)
		}
		// With one row each vector of W is used once, so it stays an operand in memory. With more
		// it is loaded once.
		factors := make([]string, g.cols)
		for col := range factors {
			factors[col] = fmt.Sprintf("%d%s", at, w[col])
			if g.rows > 1 {
				factors[col] = g.vec(scratch + col)
				g.p("VMOVUPS %d%s, %s", at, w[col], factors[col])
			}
		}
		for row := range g.rows {
			// Masked elements of x are zeros, and so is the padding of W: what lies behind the end of
			// a row adds nothing to its sum.
			v := g.vec(scratch + 2)
			if g.lanes == 16 {
				v = g.vec(scratch + 4 + row%4)
			}
			switch {
			case !tail:
				g.p("VMOVUPS %d%s, %s", at, x[row], v)
			case g.lanes == 16:
				g.p("VMOVUPS.Z %d%s, K1, %s", at, x[row], v)
			default:
				g.p("VMASKMOVPS %d%s, %s, %s", at, x[row], mask, v)
			}
			for col := range g.cols {
				g.p("VFMADD231PS %s, %s, %s", factors[col], v, g.acc(row, col, part))
			}
		}
	}
}

// sums adds up the lanes and stores the sums. After a row, its registers are free for the next one:
// registers 0 to 2, and the last four.
func (g *lanes) sums() {
	g.p("MOVQ R12, AX")
	g.p("MOVQ laneTile_dstRow(DI), CX")
	for row := range g.rows {
		if row > 0 {
			g.p("ADDQ CX, AX")
		}
		if g.cols == 2 {
			// The order of additions is that of addPairs in Go for all sets: neighbours first. A
			// register has sixteen lanes of one sum, or eight of them, so other registers meet in
			// the same places of the tree.
			g.quarters("Y0", g.acc(row, 0, 0), g.acc(row, 1, 0), g.acc(row, 0, 1), g.acc(row, 1, 1))
			g.halves(0)
			g.p("VMOVHLPS X0, X0, X1; VADDPS X1, X0, X0; VMOVLPS X0, (AX)")
			continue
		}
		g.quarters(g.vec(0), g.acc(row, 0, 0), g.acc(row, 1, 0), g.acc(row, 2, 0), g.acc(row, 3, 0))
		if g.lanes == 16 {
			g.p("VEXTRACTF64X4 $1, Z0, Y1")
		} else {
			g.quarters("Y1", g.acc(row, 0, 1), g.acc(row, 1, 1), g.acc(row, 2, 1), g.acc(row, 3, 1))
		}
		g.halves(0)
		g.halves(1)
		g.p("VADDPS X1, X0, X0; VMOVUPS X0, (AX)")
	}
}

// quarters sets each quarter of dst to the sums of four lanes of a, b, c and d, in this order.
func (g *lanes) quarters(dst, a, b, c, d string) {
	spare := 12
	if g.lanes == 16 {
		spare = 28
	}
	// Adding neighbours of two registers halves them, and the halves make one. After two rounds,
	// each quarter has four sums of four lanes, one for each column, and the rest of the tree adds
	// quarters.
	x, y, scratch := g.vec(spare), g.vec(spare+1), g.vec(spare+2)
	g.neighbours(x, a, b, scratch)
	g.neighbours(y, c, d, scratch)
	g.neighbours(dst, x, y, scratch)
}

// neighbours sets dst to the sums of neighbours in a and in b, two of a and two of b in turn.
func (g *lanes) neighbours(dst, a, b, scratch string) {
	g.p("VSHUFPS $0xdd, %s, %s, %s; VSHUFPS $0x88, %[1]s, %[2]s, %[4]s; VADDPS %[3]s, %[4]s, %[4]s", b, a, scratch, dst)
}

// halves adds the upper half of a register of 8 lanes to the lower one.
func (g *lanes) halves(reg int) {
	g.p("VEXTRACTF128 $1, Y%d, X2; VADDPS X2, X%[1]d, X%[1]d", reg)
}
