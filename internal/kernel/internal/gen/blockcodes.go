package main

import "fmt"

// writeBlockCodes writes the functions of weights that are codes of 2, 4 or 8 bits, whose argument is struct
// codeTile in blockcodes.go. Of a panel, blockInts multiplies integers, blockDot multiplies one row of x with what the codes mean, and
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
		if bits <= 4 {
			blockInts(e, bits, 1)
			blockInts(e, bits, groupRows)
		}
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

// groupRows is how many rows are multiplied at a time where there are as many, by a function of their own.
const groupRows = 4

// blockInts writes a function that adds to the sums of a panel, for some rows of integers, the products with codes of
// some bits. Of a block, sums of integers are exact; then what the scales and zeros say follows. Integers are dwords,
// of four bytes that meet every eighth bit of a word of codes or, on arm64, of a float: those of all rows behind each
// other. The registers are those of blockCodes, and
//
//	R12  scales and sums of the block, of all rows
//	R13  the sums of the panel, row by row
func blockInts(e *emitter, bits, rows int) {
	acc := func(r, i int) string { return e.vec(r*e.vecs + i) }
	raw := func(i int) string { return e.vec(rows*e.vecs + i) }
	part := func(i int) string { return e.vec((rows+1)*e.vecs + i) }
	other := func(k int) string { return e.vec((rows+2)*e.vecs + k) }
	mask, x, t, ones := other(0), other(1), other(2), other(3)
	each := func(f func(i int)) {
		for i := range e.vecs {
			f(i)
		}
	}
	parts, field := 8/bits, "bytesMask"
	if e.arm() {
		parts, field = 32/bits, "mask"
	}
	e.open(fmt.Sprintf("blockInts%dx%d", bits, rows), "t *codeTile", "DI")
	e.p("MOVQ codeTile_codes(DI), SI; MOVQ codeTile_scales(DI), DX; MOVQ codeTile_zeros(DI), R8; MOVQ codeTile_zeroStep(DI), R9")
	e.p("MOVQ codeTile_at(DI), R10; MOVQ codeTile_blocks(DI), R11; MOVQ codeTile_words(DI), AX")
	e.p("MOVQ codeTile_params(DI), R12; MOVQ codeTile_sums(DI), R13; VBROADCASTSS codeTile_%s(DI), %s", field, mask)
	if e.lanes == 8 {
		e.p("VBROADCASTSS codeTile_ones(DI), %s", ones)
	}
	e.label("block")
	for r := range rows {
		each(func(i int) { e.p("%s %s, %[2]s, %[2]s", e.zero, acc(r, i)) })
	}
	e.p("MOVQ AX, CX")
	e.label("word")
	each(func(i int) { e.p("VMOVUPS %d(SI), %s", i*e.width(), raw(i)) })
	for s := range parts {
		each(func(i int) {
			e.p("AND %s, %s, %s", mask, raw(i), part(i))
			if e.arm() {
				e.p("VCVTDQ2PS %s, %[1]s", part(i))
			}
			if s < parts-1 {
				e.p("VPSRLD $%d, %s, %[2]s", bits, raw(i))
			}
		})
		for r := range rows {
			at := fmt.Sprintf("%d(R10)", 4*(s*rows+r))
			switch {
			case e.arm():
				e.p("VBROADCASTSS %s, %s", at, x)
				each(func(i int) { e.p("VFMADD231PS %s, %s, %s", x, part(i), acc(r, i)) })
			case e.lanes == 16:
				each(func(i int) { e.p("VPDPBUSD.BCST %s, %s, %s", at, part(i), acc(r, i)) })
			default:
				e.p("VBROADCASTSS %s, %s", at, x)
				each(func(i int) {
					e.p("VPMADDUBSW %s, %s, %s; VPMADDWD %[4]s, %[3]s, %[3]s; VPADDD %[3]s, %[5]s, %[5]s", x, part(i), t, ones, acc(r, i))
				})
			}
		}
	}
	e.p("ADDQ $%d, SI; ADDQ $%d, R10; DECQ CX; JNZ  word", e.vecs*e.width(), 4*parts*rows)
	// The sum of a block is (sum - zero·(sum of integers))·(scale·scale of the row).
	zero, scale, factor, sum := raw(0), raw(1), part(0), part(1)
	each(func(i int) {
		e.p("VMOVUPS %d(R8), %s; VMOVUPS %[1]d(DX), %[3]s", i*e.width(), zero, scale)
		for r := range rows {
			if !e.arm() {
				e.p("VCVTDQ2PS %s, %[1]s", acc(r, i))
			}
			e.p("VBROADCASTSS %d(R12), %s; VFNMADD231PS %[2]s, %[3]s, %[4]s", 8*r+4, x, zero, acc(r, i))
			e.p("VBROADCASTSS %d(R12), %s; VMULPS %[2]s, %[3]s, %[4]s", 8*r, x, scale, factor)
			at := (r*e.vecs + i) * e.width()
			e.p("VMOVUPS %d(R13), %s; VFMADD231PS %[3]s, %[4]s, %[2]s; VMOVUPS %[2]s, %[1]d(R13)", at, sum, factor, acc(r, i))
		}
	})
	e.p("ADDQ $%d, DX; ADDQ R9, R8; ADDQ $%d, R12; DECQ R11; JNZ  block", e.vecs*e.width(), 8*rows)
	e.end()
}
