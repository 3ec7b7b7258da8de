package main

import "strings"

// epilogue completes the sums and stores them.
func (g *tiles) epilogue() {
	// What follows has the order of tile.finish in Go, and every operation is rounded by itself.
	g.loadMask()
	g.p("MOVQ tile_flags(DI), R13; TESTQ R13, R13; JZ   store")
	g.when("tileMul", "sum", func() {
		g.p("VBROADCASTSS tile_mul(DI), %s", g.tmp(0))
		for i := range g.rows * g.n {
			g.p("VMULPS %s, %s, %s", g.tmp(0), g.vec(i), g.vec(i))
		}
	})
	g.when("tileAdd", "bias", func() {
		g.pointer("tile_q", "tile_qRow")
		g.eachRow("AX", "R12", func(row int) {
			for v := range g.n {
				g.load("AX", v, g.tmp(v%2))
				g.p("VADDPS %s, %s, %[2]s", g.tmp(v%2), g.acc(row, v))
			}
		})
	})
	g.when("tileBias", "relu", func() {
		g.pointer("tile_bias", "")
		for v := range g.n {
			g.load("AX", v, g.tmp(0))
			for row := range g.rows {
				g.p("VADDPS %s, %s, %[2]s", g.tmp(0), g.acc(row, v))
			}
		}
	})
	g.when("tileReLU", "scale", g.relu)
	g.when("tileScale", "residual", func() {
		g.pointer("tile_scale", "")
		g.p("MOVQ tile_offset(DI), R12; ADDQ R11, R12")
		for v := range g.n {
			g.load("AX", v, g.tmp(0))
			g.load("R12", v, g.tmp(1))
			for row := range g.rows {
				g.p("VMULPS %s, %s, %[2]s; VADDPS %[3]s, %[2]s, %[2]s", g.tmp(0), g.acc(row, v), g.tmp(1))
			}
		}
	})
	g.when("tileResidual", "last", func() {
		g.pointer("tile_r", "tile_rRow")
		g.p("VBROADCASTSS tile_alpha(DI), %s", g.tmp(0))
		g.eachRow("AX", "R12", func(row int) {
			for v := range g.n {
				g.load("AX", v, g.tmp(1))
				g.p("VMULPS %s, %s, %[2]s; VADDPS %[2]s, %s, %[3]s", g.tmp(0), g.tmp(1), g.acc(row, v))
			}
		})
	})
	g.when("tileLastReLU", "store", g.relu)
	g.store()
}

// relu raises all sums to zero.
func (g *tiles) relu() {
	g.p("%s %s, %[2]s, %[2]s", g.zero, g.tmp(0))
	for i := range g.rows * g.n {
		// NaN stays: of NaN and a number, VMAXPS returns its first operand.
		g.p("VMAXPS %s, %s, %[1]s", g.vec(i), g.tmp(0))
	}
}

// pointer loads a pointer to the current columns to AX, and the distance of its rows to R12. It
// clobbers R10 if there are rows above the tile.
func (g *tiles) pointer(field, stride string) {
	g.p("MOVQ %s(DI), AX; ADDQ R11, AX", field)
	if stride == "" {
		return
	}
	g.p("MOVQ %s(DI), R12", stride)
	if g.done != "" {
		g.p("MOVQ %s(DI), R10; IMULQ R12, R10; ADDQ R10, AX", g.done)
	}
}

// when writes code that runs if a flag is set, and the label of the next such piece.
func (g *tiles) when(flag, next string, f func()) {
	g.p("TESTQ $const_%s, R13; JZ    %s", flag, next)
	f()
	g.label(next)
}

// store stores the sums.
func (g *tiles) store() {
	g.pointer("tile_y", "tile_yRow")
	rows := func(last string) { // last stores the last vector of a row, given its register, the mask and the offset
		g.eachRow("AX", "R12", func(row int) {
			for v := range g.n {
				store := "VMOVUPS %s, %[3]d(AX)"
				if v == g.n-1 {
					store = last
				}
				g.p(store, g.acc(row, v), g.mask(), v*g.lanes*4)
			}
		})
	}
	switch {
	case g.lanes == 16:
		rows("VMOVUPS %s, K1, %[3]d(AX)")
		return
	case g.arm():
		rows("VMOVUPS %s, %[3]d(AX)")
		return
	}
	g.p("CMPQ tile_tail(DI), $%d; JNE  partial", g.lanes)
	rows("VMOVUPS %s, %[3]d(AX)")
	g.p("JMP next")
	g.label("partial")
	g.storePartial()
	g.label("next")
}

// storePartial stores rows whose last vector is partial, with AVX2: four elements of that one, then two, then one. A
// masked store is slow on some processors: with it, 24 to 28 channels of 64² positions took 1.3 times as long (Zen 4,
// 2026-11-29).
func (g *tiles) storePartial() {
	g.p("LEAQ %d(AX), R13; MOVQ tile_tail(DI), CX", (g.n-1)*g.lanes*4)
	g.eachRow("AX", "R12", func(row int) {
		for v := range g.n - 1 {
			g.p("VMOVUPS %s, %d(AX)", g.acc(row, v), v*g.lanes*4)
		}
	})
	for _, part := range []struct {
		elements           int
		store, rest, after string
	}{{4, "VMOVUPS %s, (AX)", "VEXTRACTF128 $1, %[2]s, %[1]s", "pair"}, {2, "VMOVLPS %s, (AX)", "VPERMILPD $1, %[1]s, %[1]s", "single"}, {1, "VMOVSS %s, (AX)", "", "next"}} {
		g.p("TESTQ $%d, CX; JZ %s; MOVQ R13, AX", part.elements, part.after)
		g.eachRow("AX", "R12", func(row int) {
			last := g.acc(row, g.n-1)
			low := strings.Replace(last, "Y", "X", 1)
			g.p(part.store, low)
			if part.rest != "" {
				g.p(part.rest, low, last)
			}
		})
		if part.rest != "" {
			g.p("ADDQ $%d, R13", 4*part.elements)
			g.label(part.after)
		}
	}
}
