package main

// depthwise writes the functions that sum up a window, channel by channel: depth16 for blocks of 16
// channels, and depth8 for blocks of 8; and pool16 and pool8, which find the largest elements. Their argument is struct depthTile in depthwise.go. The
// registers:
//
//	DI       the arguments
//	SI, R8   x and dst at the current position
//	BX, DX   remaining positions and blocks
//	R11      finished channels, in bytes
//	R13, R14 x and w at the current channels
//	R10, CX  the current element of the window, and remaining ones
//	AX, R12  the addresses of its elements of x and w
//
// Products are rounded before they are added, as where sums are made element by element.
func (g *vectors) depthwise() {
	for _, f := range []struct {
		name     string
		channels int
		largest  bool
	}{{"depth16", 16, false}, {"depth8", 8, false}, {"pool16", 16, true}, {"pool8", 8, true}} {
		parts := f.channels / g.lanes
		g.open(f.name, "t *depthTile", "DI")
		g.p("MOVQ depthTile_x(DI), SI; MOVQ depthTile_dst(DI), R8; MOVQ depthTile_positions(DI), BX")
		g.label("position")
		g.p("XORQ R11, R11; MOVQ depthTile_blocks(DI), DX")
		g.label("block")
		g.p("MOVQ SI, R13; ADDQ R11, R13; MOVQ depthTile_w(DI), R14; ADDQ R11, R14")
		g.p("MOVQ depthTile_taps(DI), R10; MOVQ depthTile_numTaps(DI), CX")
		if f.largest {
			g.largestOfTaps(parts)
		} else {
			g.sumOfTaps(parts)
		}
		g.p("ADDQ $16, R10; DECQ CX; JNZ tap")
		g.p("MOVQ R8, AX; ADDQ R11, AX")
		for i := range parts {
			g.p("VMOVUPS %s, %d(AX)", g.vec(i), i*g.width())
		}
		g.p("ADDQ $%d, R11; DECQ DX; JNZ block", 4*f.channels)
		g.p("ADDQ depthTile_xStep(DI), SI; ADDQ depthTile_dstStep(DI), R8; DECQ BX; JNZ position")
		g.end()
	}
}

// sumOfTaps writes the beginning of the loop over the taps of a sum.
func (g *vectors) sumOfTaps(parts int) {
	for i := range parts {
		g.p("%s %s, %[2]s, %[2]s", g.zero, g.vec(i))
	}
	g.label("tap")
	g.p("MOVQ (R10), AX; ADDQ R13, AX; MOVQ 8(R10), R12; ADDQ R14, R12")
	for i := range parts {
		x := g.vec(parts + i)
		g.p("VMOVUPS %d(AX), %s; VMULPS %[1]d(R12), %[2]s, %[2]s; VADDPS %[2]s, %[3]s, %[3]s", i*g.width(), x, g.vec(i))
	}
}

// largestOfTaps writes the beginning of the loop over the taps of a maximum, which begins with the
// first one. The steps are those of larger.
func (g *vectors) largestOfTaps(parts int) {
	g.p("MOVQ (R10), AX; ADDQ R13, AX")
	for i := range parts {
		g.p("VMOVUPS %d(AX), %s", i*g.width(), g.vec(i))
	}
	g.p("JMP first")
	g.label("tap")
	g.p("MOVQ (R10), AX; ADDQ R13, AX")
	for i := range parts {
		most, x, larger, number := g.vec(i), g.vec(parts+i), g.vec(2*parts+i), g.vec(3*parts+i)
		g.p("VMOVUPS %d(AX), %s; VMAXPS %s, %[2]s, %[4]s", i*g.width(), x, most, larger)
		g.p("VCMPPS $0, %s, %[1]s, %s; VBLENDVPS %[2]s, %s, %[1]s, %[4]s", x, number, larger, most)
	}
	g.label("first")
}
