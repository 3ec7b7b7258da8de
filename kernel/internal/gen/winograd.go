package main

import (
	"fmt"
	"strings"
)

// winograd writes the functions of winograd.go, which combine lines: 4 or 6 into as many for the
// input, into 2 or 4 for the output. All factors are powers of two, and so made of sums. Their argument
// is struct combining. The registers:
//
//	DI       the arguments
//	SI, R8   the lines of src and dst at the current piece
//	BX, CX   remaining pieces, and blocks of a piece
//	AX, R10  src and dst at the current block
//	DX, R11  the distances of their lines
func (g *vectors) winograd() {
	for _, f := range []struct {
		name     string
		in, out  int
		formulas string
	}{
		{"winograd2In", 4, 4, "SUB 0 2 4; ADD 1 2 5; SUB 2 1 6; SUB 1 3 7"},
		{"winograd2Out", 4, 2, "ADD 0 1 4; ADD 4 2 4; SUB 1 2 5; SUB 5 3 5"},
		{"winograd4In", 6, 6, "SUB 0 2 6; ADD 6 6 6; ADD 6 6 6; SUB 1 3 11; ADD 11 11 11; ADD 11 11 11; SUB 5 3 0; ADD 11 0 11; " +
			// 0 is free now, and 5 from here on: c = d4 - d2, and e = 2(d3 - d1).
			"SUB 4 2 5; ADD 6 5 6; SUB 3 1 0; ADD 0 0 0; ADD 5 0 9; SUB 5 0 10; " +
			"ADD 2 2 2; ADD 2 2 2; SUB 4 2 4; ADD 1 1 1; ADD 1 1 1; SUB 3 1 3; ADD 4 3 7; SUB 4 3 8"},
		{"winograd4Out", 6, 4, "ADD 1 2 10; SUB 1 2 1; ADD 3 4 2; SUB 3 4 3; ADD 0 10 6; ADD 6 2 6; " +
			"ADD 3 3 3; ADD 1 3 7; ADD 3 3 3; ADD 3 3 3; ADD 2 2 2; ADD 2 2 2; ADD 10 2 8; ADD 1 3 9; ADD 9 5 9"},
	} {
		g.open(f.name, "t *combining", "DI")
		g.p("MOVQ combining_src(DI), SI; MOVQ combining_dst(DI), R8; MOVQ combining_pieces(DI), BX")
		g.p("MOVQ combining_srcLine(DI), DX; MOVQ combining_dstLine(DI), R11")
		g.label("piece")
		g.p("MOVQ combining_blocks(DI), CX; MOVQ SI, R13; MOVQ R8, R14")
		g.label("block")
		for part := range block / g.lanes {
			at := part * g.width()
			g.p("MOVQ R13, AX; MOVQ R14, R10")
			for i := range f.in {
				g.p("VMOVUPS %d(AX), %s; ADDQ DX, AX", at, g.vec(i))
			}
			g.combine(f.formulas)
			for i := range f.out {
				g.p("VMOVUPS %s, %d(R10); ADDQ R11, R10", g.vec(f.in+i), at)
			}
		}
		g.p("ADDQ $%d, R13; ADDQ $%[1]d, R14; DECQ CX; JNZ block", 4*block)
		g.p("ADDQ combining_srcNext(DI), SI; ADDQ combining_dstNext(DI), R8; DECQ BX; JNZ piece")
		g.end()
	}
}

// combine writes sums and differences of registers: "SUB 0 2 4" sets register 4 to that of 0 less 2.
func (g *vectors) combine(formulas string) {
	for rest := formulas; rest != ""; {
		var op string
		var a, b, d int
		if _, err := fmt.Sscanf(rest, "%s %d %d %d", &op, &a, &b, &d); err != nil {
			panic(err)
		}
		g.p("V%sPS %s, %s, %s", op, g.vec(b), g.vec(a), g.vec(d))
		_, rest, _ = strings.Cut(rest, "; ")
	}
}
