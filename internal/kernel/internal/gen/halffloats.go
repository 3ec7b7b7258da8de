package main

// halfFloats writes the functions that make float32s of float16s, and float16s of float32s. Both kinds of processors keep
// the first bits of the fraction of NaN, and set the first one.
func (g *vectors) halfFloats() {
	const loop = "DECQ CX; JNZ next"
	g.open("widenHalf", "dst *float32, x *uint16, blocks int", "DI", "SI", "CX")
	g.label("next")
	if g.arm() {
		g.p("VMOVUPS (SI), V0; VMOVUPS 16(SI), V1")
		for i := range 2 {
			g.halves("fcvtl.4h", g.vec(2+2*i), g.vec(i))
			g.halves("fcvtl2.8h", g.vec(3+2*i), g.vec(i))
		}
		g.parts(func(i int) { g.p("VMOVUPS V%d, %d(DI)", 2+i, i*g.width()) })
	} else {
		g.parts(func(i int) { g.p("VCVTPH2PS %d(SI), Y%d; VMOVUPS Y%[2]d, %d(DI)", i*g.width()/2, i, i*g.width()) })
	}
	g.p("ADDQ $32, SI; ADDQ $64, DI; " + loop)
	g.end()

	g.open("roundHalf", "dst *uint16, x *float32, blocks int", "DI", "SI", "CX")
	g.label("next")
	if g.arm() {
		g.parts(func(i int) { g.p("VMOVUPS %d(SI), V%d", i*g.width(), 2+i) })
		for i := range 2 {
			g.halves("fcvtn.4h", g.vec(i), g.vec(2+2*i))
			g.halves("fcvtn2.8h", g.vec(i), g.vec(3+2*i))
		}
		g.p("VMOVUPS V0, (DI); VMOVUPS V1, 16(DI)")
	} else {
		g.parts(func(i int) {
			g.p("VMOVUPS %d(SI), Y%d; VCVTPS2PH $0, Y%[2]d, %d(DI)", i*g.width(), i, i*g.width()/2) // to the nearest, of two the even one
		})
	}
	g.p("ADDQ $64, SI; ADDQ $32, DI; " + loop)
	g.end()
}
