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
	if e.lanes == 8 {
		e.writeByteOrder()
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
		e.p("VMOVSS quantizing_low(DI), X0; VMOVSS quantizing_perUnit(DI), X5; CMPB quantizing_step(DI), $%d; JEQ coding", encodeStep)
		extremes(e)
		// The sum of what is strange is 0 or NaN.
		e.p("CMPB quantizing_step(DI), $%d; JNE all; VADDSS X8, X0, X0; VMOVSS X0, (R10); VMOVSS X4, 4(R10); JMP next", searchStep)
		e.label("all")
		parameters(e)
		e.label("coding")
		encode(e, words)
		e.label("next")
		e.p("ADDQ quantizing_xRow(DI), SI; ADDQ quantizing_codesRow(DI), R8; ADDQ $8, R10; DECQ R9; JNZ  row")
		e.end()
	}
}

// What a function does for a row, as quantize.go has it: find the extremes, or use given parameters.
const (
	searchStep = 1
	encodeStep = 2
)

// writeByteOrder writes the order of the dwords of four vectors whose elements are packed to bytes.
func (e *emitter) writeByteOrder() {
	e.line("\n")
	for i := range 4 {
		e.line("DATA byteOrder<>+%d(SB)/8, $%#018x\n", 8*i, i|(i+4)<<32)
	}
	e.line("GLOBL byteOrder<>(SB), RODATA|NOPTR, $32\n")
}

// extremes writes the search for the least and the greatest element, to registers 0 and 4. An
// element of register 8 is NaN if an element of the row is not finite.
func extremes(e *emitter) {
	e.p("VMOVUPS (SI), %s", e.vec(0))
	// Four vectors at a time, with extremes of their own, because each minimum waits for the one
	// before.
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
	loops(e, "search", 4, func(n int) {
		for i := range n {
			visit(i, fmt.Sprintf("%d(SI)(AX*4)", i*e.width()))
		}
	})
	// The last vector overlaps the one before. To look at an element twice changes neither extreme,
	// and a sum that is zero or NaN stays so.
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

// loops writes a loop over a row: several vectors at a time, then one by one. f writes what is done
// with n vectors. What remains is less than a vector.
func loops(e *emitter, name string, vectors int, f func(n int)) {
	e.p("XORQ AX, AX")
	e.label(name)
	e.p("LEAQ %d(AX), CX; CMPQ CX, DX; JGT  %sEach", vectors*e.lanes, name)
	f(vectors)
	e.p("MOVQ CX, AX; JMP  %s", name)
	e.label(name + "Each")
	e.p("LEAQ %d(AX), CX; CMPQ CX, DX; JGT  %sDone", e.lanes, name)
	f(1)
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
	// As in parameters in Go: X8 becomes NaN if anything is strange, and a constant row has no
	// steps per unit.
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
	size := 1
	if words {
		size = 2
	}
	// AVX-512 takes the last byte or word of every dword. AVX2 has no such instruction: it packs
	// signed integers with saturation, and so begins with integers, not with the bits of rounded
	// floats.
	some := encodeAVX512
	if e.lanes == 8 {
		some = encodeAVX2
		e.p("VXORPS Y1, Y1, Y1; VSUBSS X0, X1, X0; VBROADCASTSS X0, Y0; VBROADCASTSS X5, Y5")
		if words {
			e.p("VBROADCASTSS quantizing_middle(DI), Y1; VCVTPS2DQ Y1, Y1; VPACKUSDW Y1, Y1, Y1")
		} else {
			e.p("VMOVDQU byteOrder<>(SB), Y1")
		}
	} else {
		e.p("VBROADCASTSS X0, Z0; VBROADCASTSS X5, Z5; VBROADCASTSS quantizing_magic(DI), Z1")
	}
	loops(e, "encode", 4, func(n int) {
		some(e, n, words, "%d(SI)(AX*4)", fmt.Sprintf("%%d(R8)(AX*%d)", size))
	})
	// The last vector writes some codes again, with the same values.
	some(e, 1, words, "%d(SI)(R11*4)", fmt.Sprintf("%%d(R8)(R11*%d)", size))
}

// encodeAVX512 writes the codes of n vectors. The last bits of a float that is rounded to an
// integer are its code. from and to are addresses without the offset.
func encodeAVX512(e *emitter, n int, words bool, from, to string) {
	for i := range n {
		r := 8 + i
		e.p("VMOVUPS "+from+", Z%d; VSUBPS Z0, Z%[2]d, Z%[2]d; VMULPS Z5, Z%[2]d, Z%[2]d; VADDPS Z1, Z%[2]d, Z%[2]d", 64*i, r)
		if words {
			e.p("VPMOVDW Z%d, Y%[1]d; VMOVDQU Y%[1]d, "+to, r, 32*i)
		} else {
			e.p("VPMOVDB Z%d, X%[1]d; VMOVDQU X%[1]d, "+to, r, 16*i)
		}
	}
}

// encodeAVX2 writes the codes of one or four vectors. Integers of NaN are negative, and become the
// least code. Y0 is minus the least element, Y1 the middle of words or the order of bytes.
func encodeAVX2(e *emitter, n int, words bool, from, to string) {
	for i := range n {
		e.p("VADDPS "+from+", Y0, Y%d; VMULPS Y5, Y%[2]d, Y%[2]d; VCVTPS2DQ Y%[2]d, Y%[2]d", 32*i, 8+i)
	}
	switch {
	case n == 1:
		e.p("VEXTRACTI128 $1, Y8, X12; VPACKUSDW X12, X8, X8")
		if words {
			e.p("VPSUBW X1, X8, X8; VMOVDQU X8, "+to, 0)
		} else {
			e.p("VPACKUSWB X8, X8, X8; VMOVQ X8, "+to, 0)
		}
		return
	case words:
		for i := 0; i < n; i += 2 {
			// Packing interleaves the halves of registers.
			e.p("VPACKUSDW Y%d, Y%d, Y%[2]d; VPERMQ $0xd8, Y%[2]d, Y%[2]d; VPSUBW Y1, Y%[2]d, Y%[2]d; VMOVDQU Y%[2]d, "+to, 9+i, 8+i, 16*i)
		}
	default:
		e.p("VPACKUSDW Y9, Y8, Y8; VPACKUSDW Y11, Y10, Y10; VPACKUSWB Y10, Y8, Y8; VPERMD Y8, Y1, Y8; VMOVDQU Y8, "+to, 0)
	}
}
