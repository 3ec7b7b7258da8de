package main

import "strings"

// arithmetic writes what elementwise.go, activation.go and reduce.go do, for vectors. In an instruction, the name of a vector
// stands for its elements; the result comes last; what comes first is the subtrahend, and what a comparison with NaN returns.
// Numbers are in Y15 and Y14.
func (g *vectors) arithmetic() {
	const zero, one = "VXORPS Y13, Y13, Y13", "VBROADCASTSS one, Y13"
	for _, f := range []struct {
		name    string
		vectors string
		numbers string
		before  string
		ops     []string // of which the result is in Y0
	}{
		{"add", "dst x", "", "", []string{"VMOVUPS dst, Y0", "VADDPS x, Y0, Y0"}},
		{"addScaled", "dst x", "alpha", "", []string{"VMULPS x, Y15, Y0", "VADDPS dst, Y0, Y0"}},
		{"addNumber", "dst x", "alpha", "", []string{"VADDPS x, Y15, Y0"}},
		{"fma", "dst x", "alpha", "", []string{"VMOVUPS dst, Y0", "VFMADD231PS x, Y15, Y0"}},
		{"scale", "dst x", "alpha", "", []string{"VMULPS x, Y15, Y0"}},
		{"scaleFloor", "dst x", "alpha floor", "", []string{"VMULPS x, Y15, Y0", "VMAXPS Y0, Y14, Y0"}},
		{"mul", "dst x y", "", "", []string{"VMOVUPS x, Y0", "VMULPS y, Y0, Y0"}},
		{"addMul", "dst x y", "", "", []string{"VMOVUPS x, Y0", "VMULPS y, Y0, Y0", "VADDPS dst, Y0, Y0"}},
		{"addScaledMul", "dst x y", "alpha", "", []string{"VMULPS x, Y15, Y0", "VMULPS y, Y0, Y0", "VADDPS dst, Y0, Y0"}},
		{"mulAdd", "dst x y z", "", "", []string{"VMOVUPS x, Y0", "VMULPS y, Y0, Y0", "VADDPS z, Y0, Y0"}},
		{"subMul", "dst x y z", "", "", []string{"VMOVUPS x, Y0", "VSUBPS y, Y0, Y0", "VMULPS z, Y0, Y0"}},
		{"centreDeriv", "dst dy y mean scale slope", "", "", []string{
			"VMOVUPS dy, Y0", "VSUBPS mean, Y0, Y0", "VMULPS scale, Y0, Y0",
			"VMOVUPS y, Y1", "VFMADD231PS slope, Y1, Y0",
		}},
		{"relu", "dst x", "", zero, []string{"VMAXPS x, Y13, Y0"}},
		{"reluDeriv", "dst y dy", "", zero, []string{"VCMPPS $0x11, y, Y13, Y0", "VANDPS dy, Y0, Y0"}}, // where 0 < y
		{"sigmoidDeriv", "dst y dy", "", one, []string{"VMOVUPS y, Y0", "VMULPS dy, Y0, Y1", "VSUBPS Y0, Y13, Y0", "VMULPS Y0, Y1, Y0"}},
		{"tanhDeriv", "dst y dy", "", one, []string{"VMOVUPS y, Y0", "VMULPS Y0, Y0, Y0", "VSUBPS Y0, Y13, Y0", "VMULPS dy, Y0, Y0"}},
	} {
		g.function(function{
			name: f.name, vectors: strings.Fields(f.vectors), numbers: strings.Fields(f.numbers),
			before: func() { g.op(f.before, nil) },
			body: func(i int, at func(string) string) {
				for _, op := range f.ops {
					g.op(op, at)
				}
				g.p("VMOVUPS Y0, %s", at("dst"))
			},
		})
	}
	g.signs()
	g.colSums()
	g.colProducts()
	g.doubles("sums", false)
	g.doubles("squares", true)
	for _, f := range []struct {
		name    string
		vectors string
		start   string
		ops     []string // that add to the partial results in Y14
	}{
		{"dot", "x y", "VXORPS Y14, Y14, Y14", []string{"VMOVUPS x, Y0", "VMULPS y, Y0, Y0", "VADDPS Y0, Y14, Y14"}},
		{"max", "x", "VBROADCASTSS minusInf, Y14", []string{"VMOVUPS x, Y0", "VMAXPS Y14, Y0, Y14"}},
	} {
		// The partial results of the second vector of a block are in Y13.
		second := func(op string, i int) string {
			if i == 0 {
				return op
			}
			return strings.ReplaceAll(op, "Y14", "Y13")
		}
		g.function(function{
			name: f.name, vectors: strings.Fields(f.vectors), sums: "float32",
			before: func() {
				g.op(f.start, nil)
				g.op(second(f.start, 1), nil)
			},
			body: func(i int, at func(string) string) {
				for _, op := range f.ops {
					g.op(second(op, i), at)
				}
			},
			after: func() {
				g.p("VMOVUPS Y14, (R9)")
				g.p("VMOVUPS Y13, 32(R9)")
			},
		})
	}
}

// doubles writes a function that adds the elements of a vector to sum, or their squares, in double precision.
func (g *vectors) doubles(name string, square bool) {
	g.line("\n// func %s%s(sum *float64, x *float32, blocks int)\nTEXT ·%[1]s%[2]s(SB), NOSPLIT, $0-24\n", name, g.suffix)
	g.p("MOVQ sum+0(FP), DI")
	g.p("MOVQ x+8(FP), DX")
	g.p("MOVQ blocks+16(FP), CX")
	g.label("next")
	for i := range block / 4 {
		g.p("VCVTPS2PD %d(DX), Y0", 16*i)
		if square {
			g.p("VMULPD Y0, Y0, Y0")
		}
		g.p("VADDPD %d(DI), Y0, Y0", 32*i)
		g.p("VMOVUPD Y0, %d(DI)", 32*i)
	}
	g.p("ADDQ $%d, DX", 4*block)
	g.p("ADDQ $%d, DI", 8*block)
	g.p("DECQ CX")
	g.p("JNZ  next")
	g.p("VZEROUPPER")
	g.p("RET")
}

// colSums writes the function that adds alpha times the sum of each of some groups of rows, of 16 columns, to dst.
func (g *vectors) colSums() {
	g.line("\n// func colSums%s(dst *float32, alpha float32, x *float32, stride uintptr, rows, groups int)\nTEXT ·colSums%[1]s(SB), NOSPLIT, $0-48\n", g.suffix)
	g.p("MOVQ dst+0(FP), DI")
	g.p("VBROADCASTSS alpha+8(FP), Y15")
	g.p("MOVQ x+16(FP), DX")
	g.p("MOVQ stride+24(FP), R8")
	g.p("MOVQ rows+32(FP), BX")
	g.p("MOVQ groups+40(FP), CX")
	for i := range block / 8 {
		g.p("VMOVUPS %d(DI), Y%d", 32*i, 2+i)
	}
	g.label("group")
	g.p("MOVQ BX, AX")
	for i := range block / 8 {
		g.p("VMOVUPS %d(DX), Y%d", 32*i, i)
	}
	g.p("ADDQ R8, DX")
	g.p("DECQ AX")
	g.label("next")
	for i := range block / 8 {
		g.p("VADDPS %d(DX), Y%d, Y%[2]d", 32*i, i)
	}
	g.p("ADDQ R8, DX")
	g.p("DECQ AX")
	g.p("JNZ  next")
	for i := range block / 8 {
		g.p("VFMADD231PS Y15, Y%d, Y%d", i, 2+i)
	}
	g.p("DECQ CX")
	g.p("JNZ  group")
	for i := range block / 8 {
		g.p("VMOVUPS Y%d, %d(DI)", 2+i, 32*i)
	}
	g.p("VZEROUPPER")
	g.p("RET")
}

// colProducts writes the function that adds the products of the elements of x and y, of some pairs of rows of 16 columns, to dst in double
// precision. The products of a pair are added in single precision first. The sums stay in registers meanwhile.
func (g *vectors) colProducts() {
	g.line("\n// func colProducts%s(dst *float64, x, y *float32, strideX, strideY uintptr, pairs int)\nTEXT ·colProducts%[1]s(SB), NOSPLIT, $0-48\n", g.suffix)
	g.p("MOVQ dst+0(FP), DI")
	g.p("MOVQ x+8(FP), DX")
	g.p("MOVQ y+16(FP), SI")
	g.p("MOVQ strideX+24(FP), R8")
	g.p("MOVQ strideY+32(FP), R9")
	g.p("MOVQ pairs+40(FP), CX")
	for i := range block / 4 {
		g.p("VMOVUPD %d(DI), Y%d", 32*i, 4+i)
	}
	g.label("next")
	for i := range block / 8 {
		g.p("VMOVUPS %d(DX)(R8*1), Y%d", 32*i, i)
		g.p("VMULPS %d(SI)(R9*1), Y%d, Y%[2]d", 32*i, i)
		g.p("VMOVUPS %d(DX), Y%d", 32*i, 2+i)
		g.p("VFMADD231PS %d(SI), Y%d, Y%d", 32*i, 2+i, i)
	}
	g.p("LEAQ (DX)(R8*2), DX")
	g.p("LEAQ (SI)(R9*2), SI")
	for i := range block / 8 {
		g.p("VCVTPS2PD X%d, Y12", i)
		g.p("VEXTRACTF128 $1, Y%d, X13", i)
		g.p("VCVTPS2PD X13, Y13")
		g.p("VADDPD Y12, Y%d, Y%[1]d", 4+2*i)
		g.p("VADDPD Y13, Y%d, Y%[1]d", 5+2*i)
	}
	g.p("DECQ CX")
	g.p("JNZ  next")
	for i := range block / 4 {
		g.p("VMOVUPD Y%d, %d(DI)", 4+i, 32*i)
	}
	g.p("VZEROUPPER")
	g.p("RET")
}

// signs writes the functions that keep one bit an element: which ones are positive.
func (g *vectors) signs() {
	g.line("\n// func reluSigns%s(dst, x *float32, signs *uint16, blocks int)\nTEXT ·reluSigns%[1]s(SB), NOSPLIT, $0-32\n", g.suffix)
	g.p("MOVQ dst+0(FP), DI")
	g.p("MOVQ x+8(FP), SI")
	g.p("MOVQ signs+16(FP), DX")
	g.p("MOVQ blocks+24(FP), CX")
	g.p("VXORPS Y13, Y13, Y13")
	g.label("next")
	for i := range 2 {
		g.p("VMAXPS %d(SI), Y13, Y%d", 32*i, i)
		g.p("VCMPPS $0x11, Y%d, Y13, Y%d", i, 2+i) // where 0 < y
		g.p("VMOVUPS Y%d, %d(DI)", i, 32*i)
	}
	g.p("VMOVMSKPS Y2, AX")
	g.p("VMOVMSKPS Y3, BX")
	g.p("SHLL $8, BX")
	g.p("ORL  BX, AX")
	g.p("MOVW AX, (DX)")
	g.p("ADDQ $%d, DI", 4*block)
	g.p("ADDQ $%d, SI", 4*block)
	g.p("ADDQ $2, DX")
	g.p("DECQ CX")
	g.p("JNZ  next")
	g.p("VZEROUPPER")
	g.p("RET")

	g.line("\n")
	for i := range block {
		g.line("DATA bits<>+%d(SB)/4, $%d\n", 4*i, 1<<i)
	}
	g.line("GLOBL bits<>(SB), RODATA|NOPTR, $%d\n", 4*block)
	g.line("\n// func signsDeriv%s(dst, dy *float32, signs *uint16, blocks int)\nTEXT ·signsDeriv%[1]s(SB), NOSPLIT, $0-32\n", g.suffix)
	g.p("MOVQ dst+0(FP), DI")
	g.p("MOVQ dy+8(FP), SI")
	g.p("MOVQ signs+16(FP), DX")
	g.p("MOVQ blocks+24(FP), CX")
	g.p("VMOVDQU bits<>+0(SB), Y12")
	g.p("VMOVDQU bits<>+32(SB), Y13")
	g.label("next")
	g.p("VPBROADCASTW (DX), Y0")
	for i := range 2 {
		g.p("VPAND Y%d, Y0, Y%d", 12+i, 1+i)
		g.p("VPCMPEQD Y%d, Y%d, Y%d", 12+i, 1+i, 1+i)
		g.p("VANDPS %d(SI), Y%d, Y%d", 32*i, 1+i, 1+i)
		g.p("VMOVUPS Y%d, %d(DI)", 1+i, 32*i)
	}
	g.p("ADDQ $%d, DI", 4*block)
	g.p("ADDQ $%d, SI", 4*block)
	g.p("ADDQ $2, DX")
	g.p("DECQ CX")
	g.p("JNZ  next")
	g.p("VZEROUPPER")
	g.p("RET")
}

// op writes an instruction in which names of vectors and of constants stand for what they name.
func (g *vectors) op(text string, at func(string) string) {
	if text == "" {
		return
	}
	name, rest, _ := strings.Cut(text, " ")
	operands := strings.Split(rest, ", ")
	for i, o := range operands {
		switch {
		case strings.HasPrefix(o, "Y"), strings.HasPrefix(o, "$"):
		case at == nil:
			operands[i] = g.k(o)
		default:
			operands[i] = at(o)
		}
	}
	g.p("%s %s", name, strings.Join(operands, ", "))
}
