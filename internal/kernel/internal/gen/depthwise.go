package main

import "fmt"

// depthwise writes the functions that sum up a window, channel by channel: depth16 for blocks of 16
// channels, and depth8 for blocks of 8; sum16 and sum8, which do without weights; and pool16 and pool8, which find the
// largest elements. Their argument is struct depthTile in depthwise.go. Four positions at a time share what is read of the weights, and the sums of one would wait for each
// other. The registers:
//
//	DI       the arguments
//	SI, R8   x and dst at the current position
//	R9       from a position of x to the next one
//	BX, DX   remaining positions and blocks
//	R11      finished channels, in bytes
//	R13, R14 x and w at the current channels
//	R10, CX  the current element of the window, and remaining ones
//	AX, R12  the addresses of its elements of x and w
//
// Sums are chains of fused multiply-adds, as in tiles.
func (g *vectors) depthwise() {
	for _, f := range []struct {
		name     string
		channels int
		tap      func(name string, count, parts int) // writes the beginning of the loop over the taps
	}{{"depth16", 16, g.productsOfTaps}, {"depth8", 8, g.productsOfTaps}, {"sum16", 16, g.sumOfTaps}, {"sum8", 8, g.sumOfTaps},
		{"pool16", 16, g.largestOfTaps}, {"pool8", 8, g.largestOfTaps}} {
		weighted := f.name[:1] == "d"
		parts := f.channels / g.lanes
		g.open(f.name, "t *depthTile", "DI")
		g.p("MOVQ depthTile_x(DI), SI; MOVQ depthTile_dst(DI), R8; MOVQ depthTile_xStep(DI), R9")
		for _, loop := range []struct {
			name  string
			count int
		}{{"fours", 4}, {"ones", 1}} {
			g.p("MOVQ depthTile_%s(DI), BX; TESTQ BX, BX; JZ no_%[1]s", loop.name)
			g.label("positions_" + loop.name)
			g.p("XORQ R11, R11; MOVQ depthTile_blocks(DI), DX")
			g.label("block_" + loop.name)
			g.p("MOVQ SI, R13; ADDQ R11, R13; MOVQ depthTile_w(DI), R14; ADDQ R11, R14")
			g.p("MOVQ depthTile_taps(DI), R10; MOVQ depthTile_numTaps(DI), CX")
			f.tap(loop.name, loop.count, parts)
			g.p("ADDQ $16, R10; DECQ CX; JNZ tap_%s", loop.name)
			if weighted {
				g.finishSums(loop.name, loop.count, parts)
			}
			g.p("MOVQ R8, AX; ADDQ R11, AX")
			g.eachPosition(loop.count, parts, "depthTile_dstStep(DI)", func(sum, at string, _ int) { g.p("VMOVUPS %s, %s", sum, at) })
			g.p("ADDQ $%d, R11; DECQ DX; JNZ block_%s", 4*f.channels, loop.name)
			for range loop.count {
				g.p("ADDQ R9, SI; ADDQ depthTile_dstStep(DI), R8")
			}
			g.p("DECQ BX; JNZ positions_%s", loop.name)
			g.label("no_" + loop.name)
		}
		g.end()
	}
}

// slidingPositions is how many positions a sliding sum computes together.
const slidingPositions = 8

// sliding writes the functions that sum up windows of so many elements a line for blocks of 8 channels, whose
// positions are one element apart. They read each element of x once for all positions that see it, and weights once
// for all positions: sums of a tap at a time wait for loads, more than one a product, and take 1.2 to 1.5 times as long
// (Zen 4, 2026-11-30). The registers are those of depthwise, without ones; taps are the first ones of lines.
func (g *vectors) sliding() {
	for _, width := range []int{3, 5} {
		parts := 8 / g.lanes
		g.open(fmt.Sprintf("slide%d", width), "t *depthTile", "DI")
		g.p("MOVQ depthTile_x(DI), SI; MOVQ depthTile_dst(DI), R8; MOVQ depthTile_xStep(DI), R9; MOVQ depthTile_groups(DI), BX")
		g.label("positions")
		g.p("XORQ R11, R11; MOVQ depthTile_blocks(DI), DX")
		g.label("block")
		g.p("MOVQ SI, R13; ADDQ R11, R13; MOVQ depthTile_w(DI), R14; ADDQ R11, R14")
		g.p("MOVQ depthTile_taps(DI), R10; MOVQ depthTile_numTaps(DI), CX")
		for i := range slidingPositions * parts {
			g.p("%s %s, %[2]s, %[2]s", g.zero, g.vec(i))
		}
		g.label("line")
		g.slideLine(width, parts)
		g.p("ADDQ $16, R10; DECQ CX; JNZ line")
		g.finishSums("sums", slidingPositions, parts)
		g.p("MOVQ R8, AX; ADDQ R11, AX")
		g.eachPosition(slidingPositions, parts, "depthTile_dstStep(DI)", func(sum, at string, _ int) { g.p("VMOVUPS %s, %s", sum, at) })
		g.p("ADDQ $32, R11; DECQ DX; JNZ block")
		for range slidingPositions {
			g.p("ADDQ R9, SI; ADDQ depthTile_dstStep(DI), R8")
		}
		g.p("DECQ BX; JNZ positions")
		g.end()
	}
}

// slideLine adds a line of the window to the sums of all positions, from left to right.
func (g *vectors) slideLine(width, parts int) {
	w := slidingPositions * parts
	x := w + width*parts
	g.p("MOVQ (R10), AX; ADDQ R13, AX; MOVQ 8(R10), R12; ADDQ R14, R12")
	for e := range width {
		if e > 0 {
			g.p("ADDQ depthTile_wNext(DI), R12")
		}
		for i := range parts {
			g.p("VMOVUPS %d(R12), %s", i*g.width(), g.vec(w+e*parts+i))
		}
	}
	for at := range slidingPositions - 1 + width {
		if at > 0 {
			g.p("ADDQ R9, AX")
		}
		for i := range parts {
			g.p("VMOVUPS %d(AX), %s", i*g.width(), g.vec(x+i))
			for p := range slidingPositions {
				if e := at - p; e >= 0 && e < width {
					sum := g.vec(p*parts + i)
					g.p("VFMADD231PS %s, %s, %s", g.vec(x+i), g.vec(w+e*parts+i), sum)
				}
			}
		}
	}
}

// eachPosition calls f for each part of each position, with its sum, and where AX points to. The part numbers
// the registers that positions have in common.
func (g *vectors) eachPosition(count, parts int, step string, f func(sum, at string, part int)) {
	for p := range count {
		if p > 0 {
			g.p("ADDQ %s, AX", step)
		}
		for i := range parts {
			f(g.vec(p*parts+i), fmt.Sprintf("%d(AX)", i*g.width()), i)
		}
	}
}

// sumOfTaps writes the beginning of the loop over the taps of sums without weights, which begin with zero, too.
func (g *vectors) sumOfTaps(name string, count, parts int) {
	g.clearSums(count * parts)
	g.label("tap_" + name)
	g.p("MOVQ (R10), AX; ADDQ R13, AX")
	g.eachPosition(count, parts, "R9", func(sum, at string, _ int) { g.p("VADDPS %s, %s, %[2]s", at, sum) })
}

func (g *vectors) clearSums(n int) {
	for i := range n {
		g.p("%s %s, %[2]s, %[2]s", g.zero, g.vec(i))
	}
}

// productsOfTaps writes the beginning of the loop over the taps of sums of products.
func (g *vectors) productsOfTaps(name string, count, parts int) {
	g.clearSums(count * parts)
	w := count * parts
	g.label("tap_" + name)
	g.p("MOVQ (R10), AX; ADDQ R13, AX; MOVQ 8(R10), R12; ADDQ R14, R12")
	for i := range parts {
		g.p("VMOVUPS %d(R12), %s", i*g.width(), g.vec(w+i))
	}
	g.eachPosition(count, parts, "R9", func(sum, at string, part int) {
		g.p("VFMADD231PS %s, %s, %s", at, g.vec(w+part), sum)
	})
}

// finishSums adds the bias and raises to zero, if need be.
func (g *vectors) finishSums(name string, count, parts int) {
	n := count * parts
	g.p("MOVQ depthTile_bias(DI), AX; TESTQ AX, AX; JZ biased_%s; ADDQ R11, AX", name)
	for i := range parts {
		g.p("VMOVUPS %d(AX), %s", i*g.width(), g.vec(n+i))
	}
	for i := range n {
		g.p("VADDPS %s, %s, %[2]s", g.vec(n+i%parts), g.vec(i))
	}
	g.label("biased_" + name)
	g.p("MOVQ depthTile_relu(DI), AX; TESTQ AX, AX; JZ raised_%s; %s %s, %[3]s, %[3]s", name, g.zero, g.vec(n))
	for i := range n {
		// NaN stays, as does -0: of NaN and a number, or of two zeros, VMAXPS returns its first operand.
		g.p("VMAXPS %s, %s, %[1]s", g.vec(i), g.vec(n))
	}
	g.label("raised_" + name)
}

// largestOfTaps writes the beginning of the loop over the taps of maxima, which begin with the
// first one. The steps are those of larger.
func (g *vectors) largestOfTaps(name string, count, parts int) {
	g.p("MOVQ (R10), AX; ADDQ R13, AX")
	g.eachPosition(count, parts, "R9", func(most, at string, _ int) { g.p("VMOVUPS %s, %s", at, most) })
	g.p("JMP first_%s", name)
	g.label("tap_" + name)
	g.p("MOVQ (R10), AX; ADDQ R13, AX")
	x, larger, number := g.vec(count*parts), g.vec(count*parts+1), g.vec(count*parts+2)
	g.eachPosition(count, parts, "R9", func(most, at string, _ int) {
		g.p("VMOVUPS %s, %s; VMAXPS %s, %[2]s, %[4]s", at, x, most, larger)
		g.p("VCMPPS $0, %s, %[1]s, %s; VBLENDVPS %[2]s, %s, %[1]s, %[4]s", x, number, larger, most)
	})
	g.label("first_" + name)
}
