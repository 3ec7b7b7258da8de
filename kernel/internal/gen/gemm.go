package main

import "fmt"

// maxRows is the height of the highest tile: 6×4 accumulators and 4 vectors of W leave four registers of AVX-512 for elements
// of x; 6×2 and 2 leave two of AVX2.
const maxRows = 6

// unroll is how many steps of k the inner loop makes at a time.
const unroll = 4

// tiles writes the kernels of products: for every height of a tile of the result (1 to 6 rows) and every width (1 to 4
// vectors of AVX-512, 1 or 2 of AVX2) a function that computes such a tile, and a function that chooses among them.
//
// What they are told is struct tile in gemm.go. The registers:
//
//	DI        the arguments
//	SI, R8    the first and the fourth row of x, at the current step of k
//	R9, R10   the distance of two rows of x, and of two steps of k, in bytes
//	BX        the panel of W, at the current step of k
//	DX        panels that are left
//	R11       the columns that are done, in bytes
//	R12, R13  scratch
//	AX, CX    scratch; CX counts steps
//
// The accumulators come first among the vector registers, then the vectors of W of the current step, then the elements of x.
type tiles struct {
	*emitter
	rows, n int // of the kernel that is written: its height, and its width in vectors
}

func writeTiles(e *emitter) {
	g := &tiles{emitter: e}
	if g.lanes == 8 {
		g.masks()
	}
	g.dispatch()
	for rows := 1; rows <= maxRows; rows++ {
		for n := 1; n <= g.vecs; n++ {
			g.kernel(rows, n)
		}
	}
}

// masks writes the table whose words 8-t to 15-t are a mask of the first t lanes.
func (g *tiles) masks() {
	g.line("\n")
	for i := 0; i < 8; i++ {
		v := "0xffffffffffffffff"
		if i >= 4 {
			v = "0"
		}
		g.line("DATA tailMask<>+%d(SB)/8, $%s\n", 8*i, v)
	}
	g.line("GLOBL tailMask<>(SB), RODATA|NOPTR, $64\n")
}

func kernelName(rows, n int, suffix string) string {
	return fmt.Sprintf("tile%dx%d%s<>", rows, n, suffix)
}

// dispatch writes the function that Go calls.
func (g *tiles) dispatch() {
	g.line("\n// func tile%s(t *tile)\nTEXT ·tile%[1]s(SB), NOSPLIT, $0-8\n", g.suffix)
	g.p("MOVQ t+0(FP), DI")
	g.p("MOVQ tile_rows(DI), AX")
	g.p("MOVQ tile_vecs(DI), CX")
	for rows := maxRows; rows >= 1; rows-- {
		if rows > 1 {
			g.p("CMPQ AX, $%d", rows)
			g.p("JNE  not%d", rows)
		}
		for n := g.vecs; n >= 1; n-- {
			if n > 1 {
				g.p("CMPQ CX, $%d", n)
				g.p("JEQ  to%dx%d", rows, n)
			} else {
				g.p("JMP  %s(SB)", kernelName(rows, n, g.suffix))
			}
		}
		if rows > 1 {
			g.label(fmt.Sprintf("not%d", rows))
		}
	}
	for rows := maxRows; rows >= 1; rows-- {
		for n := g.vecs; n > 1; n-- {
			g.label(fmt.Sprintf("to%dx%d", rows, n))
			g.p("JMP %s(SB)", kernelName(rows, n, g.suffix))
		}
	}
}

func (g *tiles) acc(row, v int) string { return g.vec(row*g.n + v) }

// panelBytes is the size of a step of k in a panel.
func (g *tiles) panelBytes() int { return g.n * g.lanes * 4 }

// kernel writes the function for tiles of the given height and width.
func (g *tiles) kernel(rows, n int) {
	g.rows, g.n = rows, n
	g.line("\nTEXT %s(SB), NOSPLIT, $0-8\n", kernelName(rows, n, g.suffix))
	g.p("MOVQ tile_panels(DI), DX")
	g.p("MOVQ tile_xRow(DI), R9")
	g.p("MOVQ tile_xStep(DI), R10")
	g.p("XORQ R11, R11")
	if g.lanes == 16 {
		g.p("MOVL  tile_mask(DI), AX")
		g.p("KMOVW AX, K1")
	}
	g.p("MOVQ tile_w(DI), BX")
	g.label("panel")
	g.p("MOVQ tile_x(DI), SI")
	if rows > 3 {
		g.p("LEAQ (SI)(R9*2), R8")
		g.p("ADDQ R9, R8")
	}
	g.prefetch()
	g.start()
	g.loop()
	g.epilogue()
	g.p("ADDQ tile_wSkip(DI), BX")
	g.p("ADDQ $%d, R11", g.panelBytes())
	g.p("DECQ DX")
	g.p("JNZ  panel")
	g.p("VZEROUPPER")
	g.p("RET")
}

// prefetch asks for what will be added to the sums, which mostly is in memory and not in a cache, and mostly where the result
// goes, so that it is there when they are done.
func (g *tiles) prefetch() {
	g.p("TESTQ $const_tileResidual, tile_flags(DI)")
	g.p("JZ    fetched")
	g.pointer("tile_r", "tile_rRow")
	g.eachRow("AX", "R12", func(row int) {
		for at := 0; at < g.panelBytes(); at += 64 {
			g.p("PREFETCHT0 %d(AX)", at)
		}
	})
	g.label("fetched")
}

// start clears the accumulators, or loads what an earlier part of k left.
func (g *tiles) start() {
	g.p("MOVQ  tile_p(DI), AX")
	g.p("TESTQ AX, AX")
	g.p("JNZ   resume")
	for i := range g.rows * g.n {
		r := g.vec(i)
		g.p("%s %s, %s, %s", g.zero, r, r, r)
	}
	g.p("JMP begin")
	g.label("resume")
	g.p("ADDQ R11, AX")
	g.loadMask()
	g.p("MOVQ tile_pRow(DI), R12")
	g.eachRow("AX", "R12", func(row int) {
		for v := range g.n {
			g.load("AX", v, g.acc(row, v))
		}
	})
	g.label("begin")
}

// loop writes the sum over k.
func (g *tiles) loop() {
	g.p("MOVQ tile_k(DI), CX")
	g.p("SHRQ $2, CX")
	g.p("JZ   rest")
	g.label("steps")
	for u := range unroll {
		g.step(u)
	}
	g.p("ADDQ $%d, BX", unroll*g.panelBytes())
	g.p("DECQ CX")
	g.p("JNZ  steps")
	g.label("rest")
	g.p("MOVQ tile_k(DI), CX")
	g.p("ANDQ $%d, CX", unroll-1)
	g.p("JZ   done")
	g.label("step")
	g.step(0)
	g.p("ADDQ $%d, BX", g.panelBytes())
	g.p("DECQ CX")
	g.p("JNZ  step")
	g.label("done")
}

// step writes one step of k, the u-th from BX on.
func (g *tiles) step(u int) {
	for v := range g.n {
		g.p("VMOVUPS %d(BX), %s", u*g.panelBytes()+v*g.lanes*4, g.vec(g.w+v))
	}
	at := []string{"(SI)", "(SI)(R9*1)", "(SI)(R9*2)", "(R8)", "(R8)(R9*1)", "(R8)(R9*2)"}
	for row := range g.rows {
		x := g.vec(g.x + row%g.numX)
		g.p("VBROADCASTSS %s, %s", at[row], x)
		for v := range g.n {
			g.p("VFMADD231PS %s, %s, %s", g.vec(g.w+v), x, g.acc(row, v))
		}
	}
	g.p("ADDQ R10, SI")
	if g.rows > 3 {
		g.p("ADDQ R10, R8")
	}
}

// eachRow calls f for the rows of the tile, and moves ptr from one to the next.
func (g *tiles) eachRow(ptr, stride string, f func(row int)) {
	for row := range g.rows {
		f(row)
		if row < g.rows-1 {
			g.p("ADDQ %s, %s", stride, ptr)
		}
	}
}

// load writes a load of vector v of a row of which the last vector may not be whole.
func (g *tiles) load(ptr string, v int, dst string) {
	off := v * g.lanes * 4
	switch {
	case v < g.n-1:
		g.p("VMOVUPS %d(%s), %s", off, ptr, dst)
	case g.lanes == 16:
		g.p("VMOVUPS.Z %d(%s), K1, %s", off, ptr, dst)
	default:
		g.p("VMASKMOVPS %d(%s), %s, %s", off, ptr, g.mask(), dst)
	}
}

// loadMask loads the mask of the last vector of a row, where it is not in K1 anyway.
func (g *tiles) loadMask() {
	if g.lanes == 8 {
		g.p("MOVQ    tile_tail(DI), R13")
		g.p("NEGQ    R13")
		g.p("LEAQ    tailMask<>+32(SB), R12")
		g.p("VMOVUPS (R12)(R13*4), %s", g.mask())
	}
}

// mask is the register that holds the mask of the last vector, outside of the loop over k.
func (g *tiles) mask() string { return g.vec(g.w) }

// tmp is a scratch register in an epilogue.
func (g *tiles) tmp(i int) string { return g.vec(g.w + 1 + i) }

// epilogue writes what happens to the sums before they are stored, and the stores.
func (g *tiles) epilogue() {
	g.loadMask()
	g.p("MOVQ tile_flags(DI), R13")
	g.p("TESTQ R13, R13")
	g.p("JZ   store")
	g.when("const_tileMul", "sum", func() {
		g.p("VBROADCASTSS tile_mul(DI), %s", g.tmp(0))
		for i := range g.rows * g.n {
			g.p("VMULPS %s, %s, %s", g.tmp(0), g.vec(i), g.vec(i))
		}
	})
	g.when("const_tileAdd", "bias", func() {
		g.pointer("tile_q", "tile_qRow")
		g.eachRow("AX", "R12", func(row int) {
			for v := range g.n {
				g.load("AX", v, g.tmp(v%2))
				g.p("VADDPS %s, %s, %[2]s", g.tmp(v%2), g.acc(row, v))
			}
		})
	})
	g.when("const_tileBias", "relu", func() {
		g.pointer("tile_bias", "")
		for v := range g.n {
			g.load("AX", v, g.tmp(0))
			for row := range g.rows {
				g.p("VADDPS %s, %s, %[2]s", g.tmp(0), g.acc(row, v))
			}
		}
	})
	g.when("const_tileReLU", "scale", func() {
		g.p("%s %s, %[2]s, %[2]s", g.zero, g.tmp(0))
		for i := range g.rows * g.n {
			// The second factor in Intel's order is what comes out of a comparison with NaN.
			g.p("VMAXPS %s, %s, %[1]s", g.vec(i), g.tmp(0))
		}
	})
	g.when("const_tileScale", "residual", func() {
		g.pointer("tile_scale", "")
		g.p("MOVQ tile_offset(DI), R12")
		g.p("ADDQ R11, R12")
		for v := range g.n {
			g.load("AX", v, g.tmp(0))
			g.load("R12", v, g.tmp(1))
			for row := range g.rows {
				g.p("VMULPS %s, %s, %[2]s", g.tmp(0), g.acc(row, v))
				g.p("VADDPS %s, %s, %[2]s", g.tmp(1), g.acc(row, v))
			}
		}
	})
	g.when("const_tileResidual", "store", func() {
		g.pointer("tile_r", "tile_rRow")
		g.p("VBROADCASTSS tile_alpha(DI), %s", g.tmp(0))
		g.eachRow("AX", "R12", func(row int) {
			for v := range g.n {
				g.load("AX", v, g.tmp(1))
				g.p("VMULPS %s, %s, %[2]s", g.tmp(0), g.tmp(1))
				g.p("VADDPS %s, %s, %[2]s", g.tmp(1), g.acc(row, v))
			}
		})
	})
	g.store()
}

// pointer loads a pointer to the current columns to AX, and the distance of its rows to R12.
func (g *tiles) pointer(field, stride string) {
	g.p("MOVQ %s(DI), AX", field)
	g.p("ADDQ R11, AX")
	if stride != "" {
		g.p("MOVQ %s(DI), R12", stride)
	}
}

// when writes what is done if a flag is set, and the label of what comes next.
func (g *tiles) when(flag, next string, f func()) {
	g.p("TESTQ $%s, R13", flag)
	g.p("JZ    %s", next)
	f()
	g.label(next)
}

func (g *tiles) store() {
	g.pointer("tile_y", "tile_yRow")
	if g.lanes == 16 {
		g.eachRow("AX", "R12", func(row int) {
			for v := range g.n {
				k := ""
				if v == g.n-1 {
					k = "K1, "
				}
				g.p("VMOVUPS %s, %s%d(AX)", g.acc(row, v), k, v*g.lanes*4)
			}
		})
		return
	}
	// A masked store of AVX2 is slow on some processors.
	g.p("CMPQ tile_tail(DI), $%d", g.lanes)
	g.p("JNE  partial")
	g.eachRow("AX", "R12", func(row int) {
		for v := range g.n {
			g.p("VMOVUPS %s, %d(AX)", g.acc(row, v), v*g.lanes*4)
		}
	})
	g.p("JMP next")
	g.label("partial")
	g.eachRow("AX", "R12", func(row int) {
		for v := range g.n {
			if v < g.n-1 {
				g.p("VMOVUPS %s, %d(AX)", g.acc(row, v), v*g.lanes*4)
			} else {
				g.p("VMASKMOVPS %s, %s, %d(AX)", g.acc(row, v), g.mask(), v*g.lanes*4)
			}
		}
	})
	g.label("next")
}
