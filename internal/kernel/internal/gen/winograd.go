package main

import (
	"fmt"
	"strings"
)

// winograd writes the functions of winograd.go, which combine lines: 4 or 6 into as many for the
// input, into 2 or 4 for the output. Their argument is struct combining. The registers:
//
//	14, 15   the factors ½ and √½
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
		{"winograd4In", 6, 6, "ADD 2 2 12; SUB 0 12 6; SUB 4 12 13; MUL 2 14 2; SUB 4 2 4; ADD 6 4 6; " +
			"ADD 1 1 0; SUB 3 0 0; MUL 0 15 0; ADD 13 0 7; SUB 13 0 8; " +
			"ADD 3 3 12; SUB 12 1 12; MUL 3 14 3; SUB 5 3 5; SUB 5 12 11; MUL 12 15 12; ADD 4 12 9; SUB 4 12 10"},
		{"winograd4Out", 6, 4, "ADD 1 2 10; SUB 1 2 1; ADD 3 4 2; SUB 3 4 3; ADD 1 3 7; ADD 10 10 11; ADD 11 2 11; MUL 11 15 11; ADD 0 11 6; " +
			"ADD 2 2 2; ADD 10 2 10; MUL 10 15 8; MUL 1 14 1; ADD 3 3 3; ADD 1 3 1; ADD 1 5 9"},
	} {
		g.open(f.name, "t *combining", "DI")
		g.p("MOVQ combining_src(DI), SI; MOVQ combining_dst(DI), R8; MOVQ combining_pieces(DI), BX")
		g.p("MOVQ combining_srcLine(DI), DX; MOVQ combining_dstLine(DI), R11")
		g.p("VBROADCASTSS combining_half(DI), %s; VBROADCASTSS combining_root(DI), %s", g.vec(14), g.vec(15))
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

// combine writes sums, differences and products of registers: "SUB 0 2 4" sets register 4 to that of 0 less 2.
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
