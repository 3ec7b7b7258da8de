package main

import "strings"

// laneSums is the number of sums that a dot product in lanes is made of.
const laneSums = 16

// writeLanes writes the kernel of narrow products: the dot products, in 16 lanes, of a vector and groups of 4 others, which are zero
// behind their ends. The registers:
//
//	R12, R13  the vector, and what is left of it behind its last block of 16, filled up with zeros, or nil
//	BX, R9    the first of the group, and the distance of two
//	R11, DX   blocks, and groups that are left
//	DI        where the results go
//	SI, AX, R8  the current block of the vector, of the first and of the third of the group
func writeLanes(e *emitter) {
	e.line("\n// func dotLanes%s(x, tail, w *float32, wRow uintptr, blocks, groups int, dst *float32)\n", e.suffix)
	e.line("TEXT ·dotLanes%s(SB), NOSPLIT, $0-56\n", e.suffix)
	for i, v := range []struct{ name, reg string }{
		{"x", "R12"}, {"tail", "R13"}, {"w", "BX"}, {"wRow", "R9"}, {"blocks", "R11"}, {"groups", "DX"}, {"dst", "DI"},
	} {
		e.p("MOVQ %s+%d(FP), %s", v.name, 8*i, v.reg)
	}
	parts := laneSums / e.lanes // vectors of a block
	acc := func(part, column int) string { return e.vec(4*part + column) }
	e.label("group")
	e.p("MOVQ R12, SI")
	e.p("MOVQ BX, AX")
	e.p("LEAQ (BX)(R9*2), R8")
	e.p("MOVQ R11, CX")
	for i := range 4 * parts {
		e.p("%s %s, %[2]s, %[2]s", e.zero, e.vec(i))
	}
	block := func(x string) {
		for part := range parts {
			at := part * e.lanes * 4
			e.p("VMOVUPS %d(%s), %s", at, x, e.vec(8))
			for column, w := range []string{"(AX)", "(AX)(R9*1)", "(R8)", "(R8)(R9*1)"} {
				e.p("VFMADD231PS %d%s, %s, %s", at, w, e.vec(8), acc(part, column))
			}
		}
	}
	e.label("step")
	block("SI")
	for _, reg := range []string{"SI", "AX", "R8"} {
		e.p("ADDQ $%d, %s", laneSums*4, reg)
	}
	e.p("DECQ CX")
	e.p("JNZ  step")
	e.p("TESTQ R13, R13")
	e.p("JZ    sum")
	block("R13")
	e.label("sum")
	// Neighbours are added: in each quarter, the first four of a register then belong to the four columns.
	for part := range parts {
		e.neighbours(acc(part, 0), acc(part, 1), e.vec(8))
		e.neighbours(acc(part, 2), acc(part, 3), e.vec(9))
		e.p("VSHUFPS $0x88, %s, %s, %s", e.vec(9), e.vec(8), acc(part, 0))
		e.p("VSHUFPS $0xdd, %s, %s, %s", e.vec(9), e.vec(8), acc(part, 1))
		e.p("VADDPS %s, %s, %[2]s", acc(part, 1), acc(part, 0))
	}
	low, high := "Y0", "Y4"
	if parts == 1 {
		e.p("VEXTRACTF64X4 $1, Z0, Y4")
	}
	for _, y := range []string{low, high} {
		x := strings.Replace(y, "Y", "X", 1)
		e.p("VEXTRACTF128 $1, %s, X8", y)
		e.p("VADDPS X8, %s, %[1]s", x)
	}
	e.p("VADDPS X4, X0, X0")
	e.p("VMOVUPS X0, (DI)")
	e.p("ADDQ $16, DI")
	e.p("LEAQ (BX)(R9*4), BX")
	e.p("DECQ DX")
	e.p("JNZ  group")
	e.p("VZEROUPPER")
	e.p("RET")
}

// neighbours sets dst to the sums of neighbours in a and in b, which it alternates between in twos. Register 10 is scratch.
func (e *emitter) neighbours(a, b, dst string) {
	scratch := e.vec(10)
	e.p("VSHUFPS $0x88, %s, %s, %s", b, a, dst)
	e.p("VSHUFPS $0xdd, %s, %s, %s", b, a, scratch)
	e.p("VADDPS %s, %s, %[2]s", scratch, dst)
}
