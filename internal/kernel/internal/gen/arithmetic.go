package main

import (
	"fmt"
	"strings"
)

// arithmetic writes what elementwise.go, activation.go, reduce.go and colsums.go do, for AVX2 and
// arm64.
func (g *vectors) arithmetic() {
	const unary, zero, one = "dst, x *float32, blocks int", "VXORPS Y13, Y13, Y13", "VBROADCASTSS one, Y13"
	for _, f := range []struct{ name, params, before, ops string }{
		{"add", "dst, x *float32, blocks int", "", "VMOVUPS dst, Y0; VADDPS x, Y0, Y0"},
		{"addScaled", "dst, x *float32, blocks int, alpha float32", "", "VMULPS x, alpha, Y0; VADDPS dst, Y0, Y0"},
		{"addNumber", "dst, x *float32, blocks int, alpha float32", "", "VADDPS x, alpha, Y0"},
		{"fma", "dst, x *float32, blocks int, alpha float32", "", "VMOVUPS dst, Y0; VFMADD231PS x, alpha, Y0"},
		{"scale", "dst, x *float32, blocks int, alpha float32", "", "VMULPS x, alpha, Y0"},
		{"scaleFloor", "dst, x *float32, blocks int, alpha float32, floor float32", "", "VMULPS x, alpha, Y0; VMAXPS Y0, floor, Y0"},
		{"mul", "dst, x, y *float32, blocks int", "", "VMOVUPS x, Y0; VMULPS y, Y0, Y0"},
		{"sum", "dst, x, y *float32, blocks int", "", "VMOVUPS x, Y0; VADDPS y, Y0, Y0"},
		{"sub", "dst, x, y *float32, blocks int", "", "VMOVUPS x, Y0; VSUBPS y, Y0, Y0"},
		{"div", "dst, x, y *float32, blocks int", "", "VMOVUPS x, Y0; VDIVPS y, Y0, Y0"},
		{"neg", unary, "VBROADCASTSS sign, Y13", "VXORPS x, Y13, Y0"}, {"abs", unary, "VBROADCASTSS abs, Y13", "VANDPS x, Y13, Y0"},
		{"sqrt", unary, "", "VSQRTPS x, Y0"}, {"round", unary, "", "VROUNDPS $8, x, Y0"}, // halves to even
		{"floor", unary, "", "VROUNDPS $9, x, Y0"}, {"ceil", unary, "", "VROUNDPS $10, x, Y0"}, {"trunc", unary, "", "VROUNDPS $11, x, Y0"},
		// VMAXPS and VMINPS return their first operand, x, where one of both is NaN, or both are
		// zeros. So what is left is a y that is NaN: it does not equal itself.
		{"larger", "dst, x, y *float32, blocks int", "", "VMOVUPS y, Y0; VMAXPS x, Y0, Y1; VCMPPS $0, Y0, Y0, Y2; VBLENDVPS Y2, Y1, Y0, Y0"},
		{"smaller", "dst, x, y *float32, blocks int", "", "VMOVUPS y, Y0; VMINPS x, Y0, Y1; VCMPPS $0, Y0, Y0, Y2; VBLENDVPS Y2, Y1, Y0, Y0"},
		// NaN is the first operand, and stays. Zeros of both signs don't meet: see HardSigmoidVec.
		{"hardSigmoid", "dst, x *float32, blocks int, slope, offset, lo, hi float32", "",
			"VMULPS x, slope, Y0; VADDPS offset, Y0, Y0; VMINPS Y0, hi, Y0; VMAXPS Y0, lo, Y0"},
		{"hardSwish", "dst, x *float32, blocks int, slope, offset, lo, hi float32", "",
			"VMOVUPS x, Y1; VMULPS Y1, slope, Y0; VADDPS offset, Y0, Y0; VMINPS Y0, hi, Y0; VMAXPS Y0, lo, Y0; VMULPS Y1, Y0, Y0"},
		{"leaky", "dst, x *float32, blocks int, slope, lo float32", "",
			"VMOVUPS x, Y0; VMULPS Y0, slope, Y1; VMAXPS Y1, Y0, Y0; VMAXPS Y0, lo, Y0"},
		{"addMul", "dst, x, y *float32, blocks int", "", "VMOVUPS x, Y0; VMULPS y, Y0, Y0; VADDPS dst, Y0, Y0"},
		{"addScaledMul", "dst, x, y *float32, blocks int, alpha float32", "", "VMULPS x, alpha, Y0; VMULPS y, Y0, Y0; VADDPS dst, Y0, Y0"},
		{"mulAdd", "dst, x, y, z *float32, blocks int", "", "VMOVUPS x, Y0; VMULPS y, Y0, Y0; VADDPS z, Y0, Y0"},
		{"subMul", "dst, x, y, z *float32, blocks int", "", "VMOVUPS x, Y0; VSUBPS y, Y0, Y0; VMULPS z, Y0, Y0"},
		{"standardize", "dst, x *float32, blocks int, mean, scale float32", "", "VMOVUPS x, Y0; VSUBPS mean, Y0, Y0; VMULPS scale, Y0, Y0"},
		{"standardizeTo", "dst, x, gain, bias *float32, blocks int, mean, scale float32", "",
			"VMOVUPS x, Y0; VSUBPS mean, Y0, Y0; VMULPS scale, Y0, Y0; VMULPS gain, Y0, Y0; VADDPS bias, Y0, Y0"},
		{"centreDeriv", "dst, dy, y, mean, scale, slope *float32, blocks int", "",
			"VMOVUPS dy, Y0; VSUBPS mean, Y0, Y0; VMULPS scale, Y0, Y0; VMOVUPS y, Y1; VFMADD231PS slope, Y1, Y0"},
		// NaN stays: of NaN and a number, VMAXPS returns its first operand.
		{"relu", "dst, x *float32, blocks int", zero, "VMAXPS x, Y13, Y0"},
		{"reluDeriv", "dst, y, dy *float32, blocks int", zero, "VCMPPS $0x11, y, Y13, Y0; VANDPS dy, Y0, Y0"}, // where 0 < y
		{"sigmoidDeriv", "dst, y, dy *float32, blocks int", one,
			"VMOVUPS y, Y0; VMULPS dy, Y0, Y1; VSUBPS Y0, Y13, Y0; VMULPS Y0, Y1, Y0"},
		{"tanhDeriv", "dst, y, dy *float32, blocks int", one,
			"VMOVUPS y, Y0; VMULPS Y0, Y0, Y0; VSUBPS Y0, Y13, Y0; VMULPS dy, Y0, Y0"},
	} {
		before := func() { g.p("%s", f.before) }
		if f.before == "" {
			before = nil
		}
		g.function(function{name: f.name, params: f.params, before: before, body: func(int) { g.p("%s; VMOVUPS Y0, dst", f.ops) }})
	}
	g.depthwise()
	g.sliding()
	g.winograd()
	g.signs()
	g.colSums()
	g.colProducts()
	g.rowSums("rowSums", "x *float32, stride uintptr, blocks int, sums *[32]float64")
	g.rowSums("rowSquares", "x *float32, stride uintptr, blocks int, sums *[32]float64, means *[4]float32")
	g.pairMoments("firstMoments", true)
	g.pairMoments("nextMoments", false)
	g.doubles("sums", "")
	g.doubles("squares", "VMULPD Y0, Y0, Y0; ")
	// Of NaN and a number, VMAXPS returns its first operand, the largest number so far.
	g.partial("max", "x *float32, blocks int, most *[1]float32", "VBROADCASTSS minusInf, Y14", "VMOVUPS x, Y0; VMAXPS Y14, Y0, Y14", g.storeLargest)
	g.extremes()
	g.bytes()
	g.halfFloats()
	g.evens()
	g.interleave()
	g.interleave3()
	g.partial("dot", "x, y *float32, blocks int, sums *[16]float32", "VXORPS Y14, Y14, Y14", "VMOVUPS x, Y0; VMULPS y, Y0, Y0; VADDPS Y0, Y14, Y14", func() {
		g.parts(func(i int) { g.p("VMOVUPS Y%d, %d(R9)", 14-i, i*g.width()) })
	})
}

// partial writes a reduction. The ops add to partial results, which begin as start. Those of the vectors of
// a block are in Y14, Y13 and so on.
func (g *vectors) partial(name, params, start, ops string, after func()) {
	part := func(ops string, i int) string { return strings.ReplaceAll(ops, "Y14", fmt.Sprintf("Y%d", 14-i)) }
	g.function(function{
		name: name, params: params,
		before: func() { g.parts(func(i int) { g.p("%s", part(start, i)) }) },
		body:   func(i int) { g.p("%s", part(ops, i)) },
		after:  after,
	})
}

// extremes writes a function that stores the least and the largest elements by their place in a block, and sums
// that are 0, or NaN if an element is not finite.
func (g *vectors) extremes() {
	parts := block / g.lanes
	reg := func(k, i int) string { return g.vec(3 + k*parts + i) }
	g.function(function{
		name: "extremes", params: "x *float32, blocks int, ends *[48]float32",
		before: func() {
			g.p("VBROADCASTSS minusInf, %s; VXORPS Y1, Y1, Y1", reg(1, 0))
			g.p("VSUBPS %s, Y1, %s", reg(1, 0), reg(0, 0))
			g.parts(func(i int) {
				g.p("VMOVAPS %s, %s; VMOVAPS %s, %s; VXORPS %[5]s, %[5]s, %[5]s", reg(0, 0), reg(0, i), reg(1, 0), reg(1, i), reg(2, i))
			})
		},
		body: func(i int) {
			g.p("VMOVUPS x, Y0; VMINPS %s, Y0, %[1]s; VMAXPS %[2]s, Y0, %[2]s; VFMADD231PS Y1, Y0, %s", reg(0, i), reg(1, i), reg(2, i))
		},
		after: func() {
			for k := range 3 {
				g.parts(func(i int) { g.p("VMOVUPS %s, %d(R9)", reg(k, i), (k*parts+i)*g.width()) })
			}
		},
	})
}

// bytes writes the functions that keep the last 8 bits of integers, which floats are rounded to towards zero: of x, and
// of x/scale, rounded to the nearest integer, plus zero, within bounds. Those of what no int32 is are 0, as they are of
// -2³¹.
func (g *vectors) bytes() {
	g.open("bytes", "dst *uint8, x *float32, blocks int", "DI", "SI", "CX")
	g.packBytes("ADDQ $64, SI", func(i int) { g.p("VMOVUPS %d(SI), Y%d", i*g.width(), i) })
	lo, hi := g.vec(10), g.vec(11)
	g.open("codes", "dst *uint8, x, scale, zero *float32, blocks int, lo, hi float32", "DI", "SI", "DX", "R8", "CX", lo, hi)
	g.packBytes("ADDQ $64, SI; ADDQ $64, DX; ADDQ $64, R8", func(i int) {
		g.p("VMOVUPS %d(SI), Y%d; VDIVPS %[1]d(DX), Y%[2]d, Y%[2]d; VROUNDPS $8, Y%[2]d, Y%[2]d", i*g.width(), i)
		// NaN is the first operand, and stays.
		g.p("VADDPS %d(R8), Y%d, Y%[2]d; VMAXPS Y%[2]d, %[3]s, Y%[2]d; VMINPS Y%[2]d, %[4]s, Y%[2]d", i*g.width(), i, lo, hi)
	})
}

// packBytes writes the loop that makes bytes of blocks of floats.
func (g *vectors) packBytes(advance string, load func(i int)) {
	if g.arm() {
		g.line("\tMOVD $0x4f000000, %s // 2³¹\n\tVDUP %[1]s, V8.S4\n", scratch)
	} else {
		g.p("VPCMPEQD Y13, Y13, Y13; VPSRLD $24, Y13, Y13")
	}
	g.label("next")
	g.parts(func(i int) {
		load(i)
		if g.arm() {
			g.word("fcmgt.4s", "V9", "V8", g.vec(i)) // arm64 rounds large numbers to the largest integer
			g.word("fcvtzs.4s", g.vec(i), g.vec(i))
			g.word("and.16b", g.vec(i), g.vec(i), "V9")
		} else {
			g.p("VCVTTPS2DQ Y%d, Y%[1]d; VPAND Y13, Y%[1]d, Y%[1]d", i)
		}
	})
	if g.arm() {
		g.word("uzp1.8h", "V0", "V0", "V1")
		g.word("uzp1.8h", "V2", "V2", "V3")
		g.word("uzp1.16b", "V0", "V0", "V2")
		g.p("VMOVUPS V0, (DI)")
	} else {
		g.p("VPACKUSDW Y1, Y0, Y0; VPERMQ $0xd8, Y0, Y0; VEXTRACTI128 $1, Y0, X1; VPACKUSWB X1, X0, X0; VMOVDQU X0, (DI)")
	}
	g.p("%s; ADDQ $16, DI; DECQ CX; JNZ next", advance)
	g.end()
}

// evens writes the function that keeps every second float of blocks twice as long.
func (g *vectors) evens() {
	g.open("evens", "dst, x *float32, blocks int", "DI", "SI", "CX")
	g.label("next")
	g.parts(func(i int) {
		first, v := 2*i*g.width(), g.vec(i)
		if g.arm() {
			g.p("VMOVUPS %d(SI), %s; VMOVUPS %d(SI), V%d", first, v, first+g.width(), temp)
			g.word("uzp1.4s", v, v, g.vec(temp))
		} else {
			// VSHUFPS works on each half of the vectors.
			g.p("VMOVUPS %d(SI), %s; VSHUFPS $0x88, %d(SI), %[2]s, %[2]s; VPERMPD $0xd8, %[2]s, %[2]s", first, v, first+g.width())
		}
		g.p("VMOVUPS %s, %d(DI)", v, i*g.width())
	})
	g.p("ADDQ $128, SI; ADDQ $64, DI; DECQ CX; JNZ next")
	g.end()
}

// interleave writes the function that takes turns with the elements of two vectors.
func (g *vectors) interleave() {
	g.open("interleave", "dst, x, y *float32, blocks int", "DI", "SI", "DX", "CX")
	g.label("next")
	g.parts(func(i int) {
		at := i * g.width()
		if g.arm() {
			g.p("VMOVUPS %d(SI), V0; VMOVUPS %[1]d(DX), V1", at)
			g.word("zip1.4s", "V2", "V0", "V1")
			g.word("zip2.4s", "V3", "V0", "V1")
			g.p("VMOVUPS V2, %d(DI); VMOVUPS V3, %d(DI)", 2*at, 2*at+g.width())
		} else {
			// The instructions work on each half of the vectors.
			g.p("VMOVUPS %d(SI), Y0; VUNPCKLPS %[1]d(DX), Y0, Y1; VUNPCKHPS %[1]d(DX), Y0, Y2", at)
			g.p("VPERM2F128 $0x20, Y2, Y1, Y0; VPERM2F128 $0x31, Y2, Y1, Y1; VMOVUPS Y0, %d(DI); VMOVUPS Y1, %d(DI)", 2*at, 2*at+g.width())
		}
	})
	g.p("ADDQ $64, SI; ADDQ $64, DX; ADDQ $128, DI; DECQ CX; JNZ next")
	g.end()
}

// interleave3 writes the function that takes turns with the elements of three vectors.
func (g *vectors) interleave3() {
	g.open("interleave3", "dst, x, y, z *float32, blocks int", "DI", "SI", "DX", "BX", "CX")
	g.label("next")
	g.parts(func(i int) {
		for v, from := range []string{"SI", "DX", "BX"} {
			g.p("VMOVUPS %d(%s), %s", i*g.width(), from, g.vec(v))
		}
		if g.arm() {
			g.line("\tVST3.P [V0.S4, V1.S4, V2.S4], 48(%s)\n", general["DI"])
			return
		}
		// Of each half of x, y and z: x0 x2 y0 y2, y1 y3 z1 z3, z0 z2 x1 x3, and of these what is stored.
		g.p("VSHUFPS $0x88, Y1, Y0, Y3; VSHUFPS $0xdd, Y2, Y1, Y4; VSHUFPS $0xd8, Y0, Y2, Y5")
		g.p("VSHUFPS $0x88, Y5, Y3, Y0; VSHUFPS $0xd8, Y3, Y4, Y1; VSHUFPS $0xdd, Y4, Y5, Y2")
		for v := range 3 {
			g.p("VMOVUPS X%d, %d(DI); VEXTRACTF128 $1, Y%[1]d, %[3]d(DI)", v, 96*i+16*v, 96*i+48+16*v)
		}
	})
	g.p("ADDQ $64, SI; ADDQ $64, DX; ADDQ $64, BX")
	if !g.arm() {
		g.p("ADDQ $192, DI")
	}
	g.p("DECQ CX; JNZ next")
	g.end()
}

// storeLargest stores the largest of partial results, of which none is NaN.
func (g *vectors) storeLargest() {
	for i := block/g.lanes - 1; i > 0; i-- {
		g.p("VMAXPS Y%d, Y14, Y14", 14-i)
	}
	if g.arm() {
		g.line("\tWORD $0x%08x // fmaxv s14, v14.4s\n\tFMOVS F14, (R9)\n", words["fmaxv"]|14<<5|14)
		return
	}
	g.p("VEXTRACTF128 $1, Y14, X13; VMAXPS X13, X14, X14; VPERMILPS $0x4e, X14, X13; VMAXPS X13, X14, X14")
	g.p("VPERMILPS $0xb1, X14, X13; VMAXPS X13, X14, X14; VMOVSS X14, (R9)")
}

// parts calls f for each vector of a block.
func (g *vectors) parts(f func(i int)) {
	for i := range block / g.lanes {
		f(i)
	}
}

// doubles writes a function that adds the elements of a vector to sum in double precision, after
// some instructions on Y0.
func (g *vectors) doubles(name, ops string) {
	g.open(name, "sum *float64, x *float32, blocks int", "DI", "DX", "CX")
	g.label("next")
	half := g.lanes / 2
	for i := range block / half {
		g.lengthenFrom(4*half*i, "DX", "Y0")
		g.p(ops+"VADDPD %d(DI), Y0, Y0; VMOVUPD Y0, %[1]d(DI)", 8*half*i)
	}
	g.p("ADDQ $%d, DX; ADDQ $%d, DI; DECQ CX; JNZ  next", 4*block, 8*block)
	g.end()
}

// lengthenFrom loads float32s as float64s.
func (g *vectors) lengthenFrom(at int, pointer, register string) {
	if g.arm() {
		g.line("\tFMOVD %d(%s), F%d\n", at, address(pointer), temp)
		g.lengthen(register, g.vec(temp), false)
		return
	}
	g.p("VCVTPS2PD %d(%s), %s", at, pointer, register)
}

// rowSums writes a function that sets sums to sums of the elements of four rows, or of the squares of what
// they differ by from a mean of each row: eight sums in double precision for each row, of the elements whose
// indexes have the same remainder. Four rows keep the adders busy, which would wait for each sum.
func (g *vectors) rowSums(name, params string) {
	const rows = 4
	squares := strings.HasSuffix(params, "means *[4]float32")
	half := g.lanes / 2 // float64s in a register
	each := 8 / half    // registers of sums of a row
	mean, value := rows*each, rows*each+rows
	g.open(name, params, []string{"DI", "R8", "CX", "R9", "R10"}[:len(strings.Split(params, ", "))]...)
	g.p("MOVQ DI, SI; ADDQ R8, SI; MOVQ SI, DX; ADDQ R8, DX; MOVQ DX, R11; ADDQ R8, R11")
	for i := range rows * each {
		g.p("VXORPS %s, %[1]s, %[1]s", g.vec(i))
	}
	if squares {
		for r := range rows {
			g.p("VBROADCASTSS %d(R10), %s", 4*r, g.vec(mean+r))
		}
	}
	g.label("next")
	for i := range block / g.lanes { // vectors of a row
		for r, pointer := range []string{"DI", "SI", "DX", "R11"} {
			v := g.vec(value)
			g.p("VMOVUPS %d(%s), %s", i*g.width(), pointer, v)
			if squares {
				g.p("VSUBPS %s, %s, %[2]s; VMULPS %[2]s, %[2]s, %[2]s", g.vec(mean+r), v)
			}
			for h := range 2 {
				sum := g.vec(r*each + (2*i+h)%each)
				if g.arm() {
					g.lengthen(g.vec(temp), v, h == 1)
					g.p("VADDPD %s, %s, %[2]s", g.vec(temp), sum)
					continue
				}
				low := "X" + v[1:]
				if h == 1 {
					g.p("VEXTRACTF128 $1, %s, %s", v, low)
				}
				wide := g.vec(value + 1)
				g.p("VCVTPS2PD %s, %s; VADDPD %[2]s, %s, %[3]s", low, wide, sum)
			}
		}
	}
	for _, r := range []string{"DI", "SI", "DX", "R11"} {
		g.p("ADDQ $%d, %s", 4*block, r)
	}
	g.p("DECQ CX; JNZ  next")
	for i := range rows * each {
		g.p("VMOVUPD %s, %d(R9)", g.vec(i), i*g.width())
	}
	g.end()
}

// colSums writes the function that adds alpha times the sum of each of some groups of rows, of 16
// columns, to dst.
func (g *vectors) colSums() {
	each := func(format string) {
		g.parts(func(i int) { g.p(format, i, block/g.lanes+i, i*g.width()) })
	}
	g.open("colSums", "dst *float32, alpha float32, x *float32, stride uintptr, rows, groups int", "DI", "Y15", "DX", "R8", "BX", "CX")
	each("VMOVUPS %[3]d(DI), Y%[2]d")
	g.label("group")
	g.p("MOVQ BX, AX")
	each("VMOVUPS %[3]d(DX), Y%[1]d")
	g.p("ADDQ R8, DX; DECQ AX")
	g.label("next")
	each("VADDPS %[3]d(DX), Y%[1]d, Y%[1]d")
	g.p("ADDQ R8, DX; DECQ AX; JNZ  next")
	each("VFMADD231PS Y15, Y%[1]d, Y%[2]d")
	g.p("DECQ CX; JNZ  group")
	each("VMOVUPS Y%[2]d, %[3]d(DI)")
	g.end()
}

// colProducts writes the function that adds the products of the elements of x and y, of some pairs
// of rows of 16 columns, to dst in double precision. The products of a pair are added in single
// precision first. The sums stay in registers meanwhile.
func (g *vectors) colProducts() {
	if g.arm() {
		g.colProductsNEON()
		return
	}
	g.open("colProducts", "dst *float64, x, y *float32, strideX, strideY uintptr, pairs int", "DI", "DX", "SI", "R8", "R9", "CX")
	// Sixteen sums in double precision fill four registers of AVX2; the float32s of two rows take
	// two.
	for i := range block / 4 {
		g.p("VMOVUPD %d(DI), Y%d", 32*i, 4+i)
	}
	g.label("next")
	for i := range block / 8 {
		g.p("VMOVUPS %d(DX)(R8*1), Y%d; VMULPS %[1]d(SI)(R9*1), Y%[2]d, Y%[2]d", 32*i, i)
		g.p("VMOVUPS %d(DX), Y%d; VFMADD231PS %[1]d(SI), Y%[2]d, Y%[3]d", 32*i, 2+i, i)
	}
	g.p("LEAQ (DX)(R8*2), DX; LEAQ (SI)(R9*2), SI")
	for i := range block / 8 {
		g.p("VCVTPS2PD X%d, Y12; VEXTRACTF128 $1, Y%[1]d, X13; VCVTPS2PD X13, Y13", i)
		g.p("VADDPD Y12, Y%d, Y%[1]d; VADDPD Y13, Y%d, Y%[2]d", 4+2*i, 5+2*i)
	}
	g.p("DECQ CX; JNZ  next")
	for i := range block / 4 {
		g.p("VMOVUPD Y%d, %d(DI)", 4+i, 32*i)
	}
	g.end()
}

// pairMoments writes a function that adds two rows of x to sum, or sets sum to theirs, and adds the
// products of the elements of x and y to product. It is colProducts for rows as a whole.
func (g *vectors) pairMoments(name string, first bool) {
	g.open(name, "sum *float32, product *float64, x0, x1, y0, y1 *float32, blocks int", "DI", "SI", "DX", "R8", "R9", "R10", "CX")
	g.label("next")
	g.parts(func(i int) {
		// Reading sums and writing them back for every pair of rows costs less than it seems: they
		// stay in the first-level cache, while x and y come from memory in long runs.
		at := i * g.width()
		g.p("VMOVUPS %d(DX), Y0; VMOVUPS %[1]d(R8), Y1", at)
		if first {
			g.p("VADDPS Y1, Y0, Y2")
		} else {
			g.p("VMOVUPS %d(DI), Y2; VADDPS Y0, Y2, Y2; VADDPS Y1, Y2, Y2", at)
		}
		g.p("VMOVUPS Y2, %d(DI); VMULPS %[1]d(R10), Y1, Y1; VFMADD231PS %[1]d(R9), Y0, Y1", at)
		if g.arm() {
			g.lengthen("V3", "V1", false)
			g.lengthen("V4", "V1", true)
		} else {
			g.p("VCVTPS2PD X1, Y3; VEXTRACTF128 $1, Y1, X1; VCVTPS2PD X1, Y4")
		}
		g.p("VADDPD %d(SI), Y3, Y3; VMOVUPD Y3, %[1]d(SI); VADDPD %[2]d(SI), Y4, Y4; VMOVUPD Y4, %[2]d(SI)", 2*at, 2*at+g.width())
	})
	for _, r := range []string{"DI", "DX", "R8", "R9", "R10"} {
		g.p("ADDQ $%d, %s", 4*block, r)
	}
	g.p("ADDQ $%d, SI; DECQ CX; JNZ  next", 8*block)
	g.end()
}

// signs writes the functions that keep one bit per element: which ones are positive.
func (g *vectors) signs() {
	if g.arm() {
		g.signsNEON()
		return
	}
	const next = "ADDQ $64, DI; ADDQ $64, SI; ADDQ $2, DX; DECQ CX; JNZ  next"
	g.open("reluSigns", "dst, x *float32, signs *uint16, blocks int", "DI", "SI", "DX", "CX")
	g.p("VXORPS Y13, Y13, Y13")
	g.label("next")
	for i := range 2 {
		g.p("VMAXPS %d(SI), Y13, Y%d; VCMPPS $0x11, Y%[2]d, Y13, Y%[3]d; VMOVUPS Y%[2]d, %[1]d(DI)", 32*i, i, 2+i) // where 0 < y
	}
	g.p("VMOVMSKPS Y2, AX; VMOVMSKPS Y3, BX; SHLL $8, BX; ORL  BX, AX; MOVW AX, (DX)")
	g.p(next)
	g.end()

	g.bits()
	g.open("signsDeriv", "dst, dy *float32, signs *uint16, blocks int", "DI", "SI", "DX", "CX")
	g.p("VMOVDQU bits<>+0(SB), Y12; VMOVDQU bits<>+32(SB), Y13")
	g.label("next")
	g.p("VPBROADCASTW (DX), Y0")
	for i := range 2 {
		g.p("VPAND Y%d, Y0, Y%d; VPCMPEQD Y%[1]d, Y%[2]d, Y%[2]d; VANDPS %[3]d(SI), Y%[2]d, Y%[2]d", 12+i, 1+i, 32*i)
		g.p("VMOVUPS Y%d, %d(DI)", 1+i, 32*i)
	}
	g.p(next)
	g.end()
}

// bits writes the table of the bits of the elements of a block.
func (g *vectors) bits() {
	g.line("\n")
	for i := range block {
		g.line("DATA bits<>+%d(SB)/4, $%d\n", 4*i, 1<<i)
	}
	g.line("GLOBL bits<>(SB), RODATA|NOPTR, $%d\n", 4*block)
}
