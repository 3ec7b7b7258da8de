package main

import "fmt"

// writeQuantize writes the functions that quantize rows, to bytes and to words. Their argument is
// struct quantizing in quantize.go. The registers:
//
//	DI      the arguments
//	SI, R8  a row of x, and of codes
//	R9      remaining rows
//	R10     the parameters of the row
//	AX, CX  the current element, and scratch
//	DX      the number of elements of a row
//	R11     the first element of the last vector of a row, which overlaps the one before
func writeQuantize(e *emitter) {
	if e.arm() {
		writeQuantizeNEON(e)
		return
	}
	for _, words := range []bool{false, true} {
		name := "quantizeBytes"
		if words {
			name = "quantizeWords"
		}
		e.open(name, "q *quantizing", "DI")
		e.p("MOVQ quantizing_x(DI), SI; MOVQ quantizing_codes(DI), R8; MOVQ quantizing_rows(DI), R9; MOVQ quantizing_params(DI), R10")
		e.p("MOVQ quantizing_k(DI), DX; LEAQ -%d(DX), R11; VXORPS X15, X15, X15; VMOVSS quantizing_levels(DI), X14", e.lanes)
		e.label("row")
		extremes(e)
		parameters(e)
		encode(e, words)
		e.p("ADDQ quantizing_xRow(DI), SI; ADDQ quantizing_codesRow(DI), R8; ADDQ $8, R10; DECQ R9; JNZ  row")
		e.end()
	}
}

// extremes writes the search for the least and the greatest element, to registers 0 and 4. An
// element of register 8 is NaN if an element of the row is not finite.
func extremes(e *emitter) {
	e.p("VMOVUPS (SI), %s", e.vec(0))
	for i := range 4 {
		e.p("VMOVAPS %s, %s", e.vec(0), e.vec(i))
		e.p("VMOVAPS %s, %s", e.vec(0), e.vec(4+i))
		e.p("%s %s, %[2]s, %[2]s", e.zero, e.vec(8+i))
	}
	visit := func(i int, at string) {
		e.p("VMOVUPS %s, %s; VMINPS %[2]s, %[3]s, %[3]s; VMAXPS %[2]s, %[4]s, %[4]s", at, e.vec(12), e.vec(i), e.vec(4+i))
		// An infinity or NaN times zero is NaN.
		e.p("VFMADD231PS %s, %s, %s", e.vec(15), e.vec(12), e.vec(8+i))
	}
	loops(e, "search", 4, func(i int) { visit(i, fmt.Sprintf("%d(SI)(AX*4)", i*e.width())) })
	visit(0, "(SI)(R11*4)")
	for _, r := range []struct {
		first       int
		instruction string
	}{{0, "VMINPS"}, {4, "VMAXPS"}, {8, "VADDPS"}} {
		for _, i := range []int{1, 2, 3} {
			e.p("%s %s, %s, %[3]s", r.instruction, e.vec(r.first+i), e.vec(r.first))
		}
		across(e, r.instruction, r.first)
	}
}

// loops writes a loop over a row: several vectors at a time, then one by one. What remains is less
// than a vector.
func loops(e *emitter, name string, vectors int, f func(i int)) {
	e.p("XORQ AX, AX")
	e.label(name)
	e.p("LEAQ %d(AX), CX; CMPQ CX, DX; JGT  %sEach", vectors*e.lanes, name)
	for i := range vectors {
		f(i)
	}
	e.p("MOVQ CX, AX; JMP  %s", name)
	e.label(name + "Each")
	e.p("LEAQ %d(AX), CX; CMPQ CX, DX; JGT  %sDone", e.lanes, name)
	f(0)
	e.p("MOVQ CX, AX; JMP  %sEach", name)
	e.label(name + "Done")
}

// across combines the elements of a register in its first one.
func across(e *emitter, instruction string, r int) {
	if e.lanes == 16 {
		e.p("VEXTRACTF64X4 $1, Z%d, Y12; %s Y12, Y%[1]d, Y%[1]d", r, instruction)
	}
	e.p("VEXTRACTF128 $1, Y%d, X12; %s X12, X%[1]d, X%[1]d", r, instruction)
	for _, order := range []int{0x4e, 0xb1} {
		e.p("VPERMILPS $%#x, X%d, X12; %s X12, X%[2]d, X%[2]d", order, r, instruction)
	}
}

// parameters writes the computation of a row's parameters. It leaves the least element in register
// 0, and steps per unit in register 5.
func parameters(e *emitter) {
	e.p("VSUBSS X0, X4, X3; VMULSS quantizing_wide(DI), X3, X6; VMULSS X15, X6, X6; VADDSS X6, X8, X8; VXORPS X5, X5, X5; VUCOMISS X15, X3; JEQ flat")
	e.p("VDIVSS X3, X14, X5; VMULSS X15, X5, X6; VADDSS X6, X8, X8")
	e.label("flat")
	e.p("VDIVSS X14, X3, X6; VMULSS quantizing_middle(DI), X6, X7; VADDSS X0, X7, X7; VUCOMISS X8, X8; JPC finite")
	e.p("INCQ quantizing_marked(DI); VXORPS X0, X0, X0; VXORPS X5, X5, X5; VMOVAPS X8, X6; VXORPS X7, X7, X7")
	e.label("finite")
	e.p("VMOVSS X6, (R10); VMOVSS X7, 4(R10)")
}

// encode writes the codes of a row.
func encode(e *emitter, words bool) {
	e.p("VBROADCASTSS X0, %s; VBROADCASTSS X5, %s; VBROADCASTSS quantizing_magic(DI), %s", e.vec(0), e.vec(5), e.vec(1))
	if e.lanes == 8 {
		e.p("VPBROADCASTD quantizing_base(DI), Y2")
	}
	size := 1
	if words {
		size = 2
	}
	store := func(i int, from, to string) {
		v := e.vec(8 + i)
		e.p("VMOVUPS %s, %s; VSUBPS %[3]s, %[2]s, %[2]s; VMULPS %[4]s, %[2]s, %[2]s; VADDPS %[5]s, %[2]s, %[2]s", from, v, e.vec(0), e.vec(5), e.vec(1))
		r := 8 + i
		switch {
		case e.lanes == 16 && words:
			e.p("VPMOVDW Z%d, Y%[1]d; VMOVDQU Y%[1]d, %s", r, to)
		case e.lanes == 16:
			e.p("VPMOVDB Z%d, X%[1]d; VMOVDQU X%[1]d, %s", r, to)
		default:
			e.p("VPSUBD Y2, Y%d, Y%[1]d; VEXTRACTI128 $1, Y%[1]d, X12; VPACKSSDW X12, X%[1]d, X%[1]d", r)
			if words {
				e.p("VMOVDQU X%d, %s", r, to)
			} else {
				e.p("VPACKUSWB X%d, X%[1]d, X%[1]d; VMOVQ X%[1]d, %s", r, to)
			}
		}
	}
	loops(e, "encode", 4, func(i int) {
		store(i, fmt.Sprintf("%d(SI)(AX*4)", i*e.width()), fmt.Sprintf("%d(R8)(AX*%d)", i*e.lanes*size, size))
	})
	store(0, "(SI)(R11*4)", fmt.Sprintf("(R8)(R11*%d)", size))
}
