package main

// writeDoubleTiles writes the kernel of products of float64s: c += alpha·a·b for a tile of c that
// fits the registers. a and b are packed: the elements of a column of a, and of a row of b, follow
// each other.
func writeDoubleTiles(e *emitter) {
	if e.arm() {
		writeDoubleTilesNEON(e)
		return
	}
	rows, vecs := e.lanes/2, 3
	acc := func(i, j int) string { return e.vec(i*vecs + j) }
	b := func(j int) string { return e.vec(rows*vecs + j) }
	x := e.vec(rows*vecs + vecs)
	e.open("dTile", "a, b *float64, k int, c *float64, stride uintptr, alpha float64", "SI", "DX", "CX", "DI", "R8", "-")
	for i := range rows * vecs {
		e.p("%s %s, %[2]s, %[2]s", e.zero, e.vec(i))
	}
	e.p("MOVQ DI, R9")
	for range rows { // c, which is needed at the end
		for at := 0; at < vecs*e.width(); at += 64 {
			e.p("PREFETCHT0 %d(R9)", at)
		}
		e.p("ADDQ R8, R9")
	}
	// A step is an outer product of a column of a, whose elements are broadcast, and a row of b.
	// The accumulators take all registers but those for the row and one for an element.
	e.label("step")
	for j := range vecs {
		e.p("VMOVUPD %d(DX), %s", j*e.width(), b(j))
	}
	for i := range rows {
		e.p("VBROADCASTSD %d(SI), %s", 8*i, x)
		for j := range vecs {
			e.p("VFMADD231PD %s, %s, %s", b(j), x, acc(i, j))
		}
	}
	e.p("ADDQ $%d, SI; ADDQ $%d, DX; DECQ CX; JNZ  step", 8*rows, vecs*e.width())
	// alpha was not loaded before, because all registers are taken.
	e.p("VBROADCASTSD alpha+40(FP), %s", x)
	for i := range rows {
		for j := range vecs {
			e.p("VMOVUPD %d(DI), %s; VFMADD231PD %s, %s, %[2]s; VMOVUPD %[2]s, %[1]d(DI)", j*e.width(), b(j), acc(i, j), x)
		}
		e.p("ADDQ R8, DI")
	}
	e.end()
}
