package main

// writeDoubleTiles writes the kernel of products of float64s: c += alpha·a·b for a tile of c that fits the registers. a and b are packed: the
// elements of a column of a, and of a row of b, follow each other.
func writeDoubleTiles(e *emitter) {
	rows, vecs := 8, 3
	if e.lanes == 8 {
		rows = 4
	}
	width := e.lanes / 2 * 8 // bytes of a vector
	acc := func(i, j int) string { return e.vec(i*vecs + j) }
	b := func(j int) string { return e.vec(rows*vecs + j) }
	x := e.vec(rows*vecs + vecs)
	e.line("\n// func dTile%s(a, b *float64, k int, c *float64, stride uintptr, alpha float64)\nTEXT ·dTile%[1]s(SB), NOSPLIT, $0-48\n", e.suffix)
	for i, v := range []struct{ name, reg string }{{"a", "SI"}, {"b", "DX"}, {"k", "CX"}, {"c", "DI"}, {"stride", "R8"}} {
		e.p("MOVQ %s+%d(FP), %s", v.name, 8*i, v.reg)
	}
	for i := range rows {
		for j := range vecs {
			e.p("%s %s, %[2]s, %[2]s", e.zero, acc(i, j))
		}
	}
	e.p("MOVQ DI, R9")
	for range rows { // what is needed at the end
		for at := 0; at < vecs*width; at += 64 {
			e.p("PREFETCHT0 %d(R9)", at)
		}
		e.p("ADDQ R8, R9")
	}
	e.label("step")
	for j := range vecs {
		e.p("VMOVUPD %d(DX), %s", j*width, b(j))
	}
	for i := range rows {
		e.p("VBROADCASTSD %d(SI), %s", 8*i, x)
		for j := range vecs {
			e.p("VFMADD231PD %s, %s, %s", b(j), x, acc(i, j))
		}
	}
	e.p("ADDQ $%d, SI", 8*rows)
	e.p("ADDQ $%d, DX", vecs*width)
	e.p("DECQ CX")
	e.p("JNZ  step")
	e.p("VBROADCASTSD alpha+40(FP), %s", x)
	for i := range rows {
		for j := range vecs {
			e.p("VMOVUPD %d(DI), %s", j*width, b(j))
			e.p("VFMADD231PD %s, %s, %s", acc(i, j), x, b(j))
			e.p("VMOVUPD %s, %d(DI)", b(j), j*width)
		}
		e.p("ADDQ R8, DI")
	}
	e.p("VZEROUPPER")
	e.p("RET")
}
