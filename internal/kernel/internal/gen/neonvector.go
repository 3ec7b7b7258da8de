package main

// colProductsNEON is colProducts for arm64.
func (g *vectors) colProductsNEON() {
	const products, sums = 0, 8 // the first registers for the products of a pair, and for sums
	g.open("colProducts", "dst *float64, x, y *float32, strideX, strideY uintptr, pairs int", "DI", "DX", "SI", "R8", "R9", "CX")
	for i := range block / 2 {
		g.p("VMOVUPD %d(DI), V%d", 16*i, sums+i)
	}
	g.label("next")
	g.line("\tADD R8, R2, R10\n\tADD R9, R1, R11\n") // the second rows
	g.parts(func(i int) { g.p("VMOVUPS %d(R10), V%d; VMULPS %[1]d(R11), V%[2]d, V%[2]d", 16*i, products+i) })
	g.parts(func(i int) {
		g.p("VMOVUPS %d(DX), V%d; VFMADD231PS %[1]d(SI), V%[2]d, V%[3]d", 16*i, products+4, products+i)
	})
	g.p("ADDQ R8, R10; ADDQ R9, R11; MOVQ R10, DX; MOVQ R11, SI")
	g.parts(func(i int) {
		for half := range 2 {
			g.lengthen(g.vec(temp), g.vec(products+i), half == 1)
			g.p("VADDPD V%d, V%d, V%[2]d", temp, sums+2*i+half)
		}
	})
	g.p("DECQ CX; JNZ next")
	for i := range block / 2 {
		g.p("VMOVUPD V%d, %d(DI)", sums+i, 16*i)
	}
	g.end()
}

// signsNEON is signs for arm64. The bits of the elements are in V12 to V15.
func (g *vectors) signsNEON() {
	const next = "ADDQ $64, DI; ADDQ $64, SI; ADDQ $2, DX; DECQ CX; JNZ next"
	g.bits()
	begin := func(name, params string) {
		g.open(name, params, "DI", "SI", "DX", "CX")
		g.line("\tMOVD $bits<>(SB), %s\n\tVLD1 (%[1]s), [V12.S4, V13.S4, V14.S4, V15.S4]\n", scratch)
	}
	begin("reluSigns", "dst, x *float32, signs *uint16, blocks int")
	g.p("VXORPS V11, V11, V11")
	g.label("next")
	g.parts(func(i int) {
		g.p("VMOVUPS %d(SI), V%d; VMAXPS V%[2]d, V11, V%[2]d; VMOVUPS V%[2]d, %[1]d(DI)", 16*i, i)
		g.p("VCMPPS $0x11, V%d, V11, V%[1]d; VPAND V%[2]d, V%[1]d, V%[1]d", i, 12+i) // where 0 < y
	})
	g.p("VPOR V1, V0, V0; VPOR V3, V2, V2; VPOR V2, V0, V0")
	g.line("\tVADDV V0.S4, V0\n\tVMOV V0.S[0], %s\n\tMOVH %[1]s, (R2)\n", scratch)
	g.p(next)
	g.end()

	begin("signsDeriv", "dst, dy *float32, signs *uint16, blocks int")
	g.label("next")
	g.line("\tMOVHU (R2), %s\n\tVDUP %[1]s, V0.S4\n", scratch)
	g.parts(func(i int) {
		g.word("cmtst.4s", "V1", "V0", g.vec(12+i))
		g.p("VANDPS %d(SI), V1, V1; VMOVUPS V1, %[1]d(DI)", 16*i)
	})
	g.p(next)
	g.end()
}
