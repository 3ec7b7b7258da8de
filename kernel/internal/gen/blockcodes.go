package main

import "fmt"

// writeBlockCodes writes the functions of weights that are codes of 2, 4 or 8 bits, whose argument is struct
// codeTile in blockcodes.go. Of a panel, blockDot multiplies one row of x with what the codes mean, and
// blockFloats stores what they mean. The registers:
//
//	DI          the arguments
//	SI, DX, R8  words of codes, scales and zeros of the block
//	R9          the distance of zeros
//	R10         the row of x, or what is stored
//	R11, CX     remaining blocks, and words of a block
//	AX          the words of a block
func writeBlockCodes(e *emitter) {
	e.bitwise = func(op string) string {
		if e.lanes == 16 {
			return "VP" + op + "D"
		}
		return "VP" + op
	}
	for _, bits := range []int{2, 4, 8} {
		blockCodes(e, bits, true)
		blockCodes(e, bits, false)
	}
}

// blockCodes writes a function for codes of some bits.
func blockCodes(e *emitter, bits int, dot bool) {
	group := func(k int) func(i int) string { return func(i int) string { return e.vec(k*e.vecs + i) } }
	sums, codes, scales, zeros, values := group(0), group(1), group(2), group(3), group(4)
	table, x := e.vec(5*e.vecs), e.vec(5*e.vecs+1)
	// A permutation of AVX-512 looks at the last four bits of each index: it masks them and makes them
	// floats at once.
	looksUp := e.lanes == 16 && bits <= 4
	name := "blockFloats"
	if dot {
		name = "blockDot"
	}
	e.open(fmt.Sprintf("%s%d", name, bits), "t *codeTile", "DI")
	e.p("MOVQ codeTile_codes(DI), SI; MOVQ codeTile_scales(DI), DX; MOVQ codeTile_zeros(DI), R8; MOVQ codeTile_zeroStep(DI), R9")
	e.p("MOVQ codeTile_at(DI), R10; MOVQ codeTile_blocks(DI), R11; MOVQ codeTile_words(DI), AX")
	if looksUp {
		e.p("VMOVUPS codeTile_table(DI), %s", table)
	} else {
		e.p("VBROADCASTSS codeTile_mask(DI), %s", table)
	}
	each := func(f func(i int)) {
		for i := range e.vecs {
			f(i)
		}
	}
	load := func(reg func(int) string, at string) {
		each(func(i int) { e.p("VMOVUPS %d(%s), %s", i*e.width(), at, reg(i)) })
	}
	if dot {
		each(func(i int) { e.p("%s %s, %[2]s, %[2]s", e.zero, sums(i)) })
	}
	e.label("block")
	load(scales, "DX")
	load(zeros, "R8")
	e.p("ADDQ $%d, DX; ADDQ R9, R8; MOVQ AX, CX", e.vecs*e.width())
	e.label("word")
	load(codes, "SI")
	e.p("ADDQ $%d, SI", e.vecs*e.width())
	for s := range 32 / bits {
		if dot {
			e.p("VBROADCASTSS %d(R10), %s", 4*s, x)
		}
		each(func(i int) {
			v := values(i)
			if looksUp {
				e.p("VPERMPS %s, %s, %s", table, codes(i), v)
			} else {
				e.p("AND %s, %s, %s; VCVTDQ2PS %[3]s, %[3]s", table, codes(i), v)
			}
			if s < 32/bits-1 {
				e.p("VPSRLD $%d, %s, %[2]s", bits, codes(i))
			}
			e.p("VSUBPS %s, %s, %[2]s; VMULPS %[3]s, %[2]s, %[2]s", zeros(i), v, scales(i))
			if dot {
				e.p("VFMADD231PS %s, %s, %s", x, v, sums(i))
			} else {
				e.p("VMOVUPS %s, %d(R10)", v, (s*e.vecs+i)*e.width())
			}
		})
	}
	step := 4
	if !dot {
		step = e.vecs * e.width()
	}
	e.p("ADDQ $%d, R10; DECQ CX; JNZ  word", 32/bits*step)
	e.p("DECQ R11; JNZ  block")
	if dot {
		e.p("MOVQ codeTile_sums(DI), R10")
		each(func(i int) { e.p("VMOVUPS %s, %d(R10)", sums(i), i*e.width()) })
	}
	e.end()
}
