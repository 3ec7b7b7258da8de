package main

// depthwise writes the functions that sum up a window, channel by channel: depth16 for blocks of 16
// channels, and depth8 for blocks of 8. Their argument is struct depthTile in depthwise.go. The
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
	}{{"depth16", 16}, {"depth8", 8}} {
		parts := f.channels / g.lanes
		g.open(f.name, "t *depthTile", "DI")
		g.p("MOVQ depthTile_x(DI), SI; MOVQ depthTile_dst(DI), R8; MOVQ depthTile_positions(DI), BX")
		g.label("position")
		g.p("XORQ R11, R11; MOVQ depthTile_blocks(DI), DX")
		g.label("block")
		g.p("MOVQ SI, R13; ADDQ R11, R13; MOVQ depthTile_w(DI), R14; ADDQ R11, R14")
		g.p("MOVQ depthTile_taps(DI), R10; MOVQ depthTile_numTaps(DI), CX")
		for i := range parts {
			g.p("%s %s, %[2]s, %[2]s", g.zero, g.vec(i))
		}
		g.label("tap")
		g.p("MOVQ (R10), AX; ADDQ R13, AX; MOVQ 8(R10), R12; ADDQ R14, R12")
		for i := range parts {
			x := g.vec(parts + i)
			g.p("VMOVUPS %d(AX), %s; VMULPS %[1]d(R12), %[2]s, %[2]s; VADDPS %[2]s, %[3]s, %[3]s", i*g.width(), x, g.vec(i))
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
