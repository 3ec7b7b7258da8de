package main

import (
	"fmt"
	"slices"
)

// maxRows is the height of the highest tile. With 6×4 accumulators and 4 vectors of W, AVX-512 has
// four registers left for elements of x; with 6×2 and 2, AVX2 has two. NEON has 6×4 accumulators,
// too, two vectors of W, and four elements of each row of x in six registers.
//
// All heights pay. With those of 3 and 5 rows made of two others, products of 3 rows took 1.5 to
// 1.6 times as long with AVX-512, and up to 1.9 with AVX2, those of 5 rows 1.2 to 1.6, of 15 rows
// 1.1 to 1.2, of 31 rows 1.04, and of 150 rows 1.00 (Zen 4, 160×1536 to 1024×1024 weights,
// 2026-11-23): reading W takes as long for one row as for three.
const maxRows = 6

// rowAhead is how far ahead a tile of one row fetches its panel to the first-level cache, in bytes,
// beside what fetchOwn (ahead.go) fetches to the second: a W of 411 MB was read at 14.9 GB/s without,
// at 18.2 with 2048 alone, at 19.3 with both, and at 16 with 2048 and twice as far in fetchOwn
// (Sapphire Rapids, 2026-11-26). Kernels of AVX2 leave it to the processor: W in memory was read at 34
// GB/s without and 29 with it, in huge pages, and 20 and 15 in others (Zen 4, 2026-11-29).
const rowAhead = 1024

// rowVecs are the widths, in vectors of AVX2, of tiles of one row that are wider than a panel: with the two sums of a
// panel each step would wait for the one before. They read panels that lie beside each other, packed or in place:
// of 1500×64 elements in place, a product took half as long with eight (Zen 4, 2026-11-29).
var rowVecs = [...]int{8, 4}

// unroll is how many steps of k the inner loop makes at a time.
const unroll = 4

// tiles writes the kernels of products: a function for every height of a tile of the result (1 to 6
// rows) and every width (1 to 4 vectors of AVX-512 or NEON, 1 or 2 of AVX2), and one that chooses
// among them.
//
// Their argument is struct tile in tile.go. The registers:
//
//	DI        the arguments
//	SI, R8    the first and the fourth row of x, at the current step of k
//	R9, R10   the distance of two rows of x, and of two steps of k, in bytes
//	BX        the panel of W, at the current step of k
//	DX        remaining panels
//	R11       finished columns, in bytes
//	R13, AX   the distance of two steps of k in the panel, and of three, in bytes
//	CX        remaining steps
//	R14, R12  what is read next, and the distance of two fetches of it, in bytes
//
// R12, R13, AX and CX are scratch outside of the loop over k. See runs.go for the registers of rows that
// are made of runs.
//
// The accumulators come first among the vector registers, then the vectors of W of the current
// step, then the elements of x.
type tiles struct {
	*emitter
	rows, n int    // of the kernel that is written: its height, and its width in vectors
	done    string // the field with the number of rows above the tile; empty if there are none
}

func writeTiles(e *emitter) {
	g := &tiles{emitter: e}
	if g.lanes == 8 {
		g.writeMask("tailMask", 8)
	}
	all := kernels(maxRows, g.vecs, 0)
	if g.lanes == 8 {
		for _, n := range rowVecs {
			all = append(all, [2]int{1, n})
		}
	}
	g.dispatch("tile", "t *tile", all, g.name)
	for _, k := range slices.Backward(all) {
		g.kernel(k[0], k[1])
	}
}

func (g *tiles) name(rows, n int) string { return fmt.Sprintf("tile%dx%d%s<>", rows, n, g.suffix) }

// dispatch writes the function that Go calls, which jumps to the kernel for the height and the
// width of the tile. Kernels have no frame: they find the argument where the function does, and
// return to its caller.
func (g *tiles) dispatch(function, params string, kernels [][2]int, name func(rows, n int) string) {
	g.open(function, params, "DI")
	g.p("MOVQ tile_rows(DI), AX; MOVQ tile_vecs(DI), CX")
	for i, k := range kernels {
		rows, n := k[0], k[1]
		if i == 0 || kernels[i-1][0] != rows {
			g.p("CMPQ AX, $%d; JNE  not%[1]d", rows)
		}
		g.p("CMPQ CX, $%d; JEQ  to%dx%[1]d", n, rows)
		if i+1 == len(kernels) || kernels[i+1][0] != rows {
			g.label(fmt.Sprintf("not%d", rows))
		}
	}
	g.p("RET")
	for _, k := range kernels {
		g.label(fmt.Sprintf("to%dx%d", k[0], k[1]))
		g.p("JMP %s(SB)", name(k[0], k[1]))
	}
}

// kernels returns all heights and widths of tiles, the largest first, except for one height.
func kernels(tall, wide, except int) (list [][2]int) {
	for rows := tall; rows >= 1; rows-- {
		for n := wide; n >= 1 && rows != except; n-- {
			list = append(list, [2]int{rows, n})
		}
	}
	return list
}

func (g *tiles) acc(row, v int) string { return g.vec(row*g.n + v) }

// panelBytes is the width of a panel.
func (g *tiles) panelBytes() int { return g.n * g.lanes * 4 }

// kernel writes the function for tiles of the given height and width.
func (g *tiles) kernel(rows, n int) {
	g.rows, g.n = rows, n
	g.line("\nTEXT %s(SB), NOSPLIT, $0-8\n", g.name(rows, n))
	if g.lanes == 16 {
		g.p("MOVL  tile_mask(DI), AX; KMOVW AX, K1")
	}
	if !g.arm() {
		g.label("tiles")
	}
	g.p("MOVQ tile_panels(DI), DX; MOVQ tile_xRow(DI), R9; MOVQ tile_xStep(DI), R10; XORQ R11, R11")
	g.p("MOVQ tile_w(DI), BX")
	if !g.arm() {
		g.p("MOVQ tile_ahead(DI), R14")
	}
	// Panels of a group follow each other in W and in y. The columns that are finished, in R11,
	// count for everything that has columns: y, the bias, the scale and what is added.
	g.label("panel")
	g.rowPointers()
	g.prefetch()
	g.start()
	g.loop()
	g.epilogue()
	g.p("ADDQ tile_wSkip(DI), BX; ADDQ $%d, R11; DECQ DX; JNZ  panel", g.panelBytes())
	if !g.arm() {
		g.advance()
	}
	g.end()
}

// advance begins the next tile, if there is one, as tile.advance does. Where there is nothing to point at, distances
// are zero, but for that of the residual.
func (g *tiles) advance() {
	g.p("CMPQ tile_tiles(DI), $1; JLE  bottom; DECQ tile_tiles(DI)")
	move := func(field string) {
		g.p("MOVQ tile_%sRow(DI), AX; IMULQ tile_rows(DI), AX; ADDQ AX, tile_%[1]s(DI)", field)
	}
	for _, field := range []string{"x", "p", "q", "y"} {
		move(field)
	}
	g.p("MOVQ tile_flags(DI), R13")
	g.when("tileResidual", "moved", func() { move("r") })
	g.p("MOVQ tile_moveTile(DI), AX; ADDQ AX, tile_move(DI); MOVQ tile_aheadTile(DI), AX; ADDQ AX, tile_ahead(DI); JMP  tiles")
	g.label("bottom")
}

// rowPointers points at the rows of x.
func (g *tiles) rowPointers() {
	if g.arm() {
		g.rowPointersNEON()
		return
	}
	g.p("MOVQ tile_x(DI), SI")
	// An address has a base and once, twice or four times a distance: one pointer reaches three
	// rows.
	if g.rows > 3 {
		g.p("LEAQ (SI)(R9*2), R8; ADDQ R9, R8")
	}
}

// prefetch fetches what is added to the sums at the end. It usually is not in a cache, and usually
// the result overwrites it.
func (g *tiles) prefetch() {
	g.prefetchRows("tileAdd", "tile_q", "tile_qRow", "onlySums")
	g.prefetchRows("tileResidual", "tile_r", "tile_rRow", "fetched")
}

// prefetchRows fetches the current columns of the rows that a pointer and a distance say, if a flag
// is set.
func (g *tiles) prefetchRows(flag, field, stride, next string) {
	g.p("TESTQ $const_%s, tile_flags(DI); JZ    %s", flag, next)
	g.pointer(field, stride)
	// The loop over k gives the lines time to arrive.
	g.eachRow("AX", "R12", func(row int) { g.prefetchPanel("AX", 0) })
	g.label(next)
}

// prefetchPanel fetches a row of a panel, from an offset on.
func (g *tiles) prefetchPanel(ptr string, at int) {
	for end := at + g.panelBytes(); at < end; at += 64 {
		g.p("PREFETCHT0 %d(%s)", at, ptr)
	}
}

// start clears the accumulators, or loads the sums of an earlier part of k, and fetches those of
// the next panel.
func (g *tiles) start() {
	g.p("MOVQ  tile_p(DI), AX; TESTQ AX, AX; JNZ   resume")
	for i := range g.rows * g.n {
		g.p("%s %s, %[2]s, %[2]s", g.zero, g.vec(i))
	}
	g.p("JMP begin")
	g.label("resume")
	g.p("ADDQ R11, AX")
	g.loadMask()
	g.p("MOVQ tile_pRow(DI), R12")
	g.eachRow("AX", "R12", func(row int) {
		for v := range g.n {
			g.load("AX", v, g.acc(row, v))
		}
		// The sums of the next panel are beside these.
		g.prefetchPanel("AX", g.panelBytes())
	})
	g.label("begin")
}

// loop writes the sum over k.
func (g *tiles) loop() {
	g.loopOverRuns()
	if g.arm() {
		g.loopNEON()
		return
	}
	// Four steps at a time: their addresses in the panel are BX, and BX with one, two or three
	// times the distance, so BX moves once. The remaining steps, fewer than four, are made one by
	// one.
	distance := "tile_wStep(DI)"
	if g.wide() {
		distance = "tile_wPanel(DI)"
		g.p("MOVQ tile_wStep(DI), R8")
	}
	g.p("MOVQ %s, R13; LEAQ (R13)(R13*2), AX; MOVQ tile_aheadStep(DI), R12; MOVQ tile_k(DI), CX; SHRQ $2, CX; JZ   rest", distance)
	g.label("steps")
	for u := range unroll {
		g.step(u)
		g.fetchAhead()
	}
	if !g.wide() {
		g.p("LEAQ (BX)(R13*4), BX")
	}
	g.p("DECQ CX; JNZ  steps")
	g.label("rest")
	g.p("MOVQ tile_k(DI), CX; ANDQ $%d, CX; JZ   done", unroll-1)
	g.label("step")
	g.step(0)
	g.fetchAhead()
	if !g.wide() {
		g.p("ADDQ R13, BX")
	}
	g.p("DECQ CX; JNZ  step")
	g.label("done")
}

// wide reports whether the tile has several panels side by side. Their distance is in R13, and that of two steps in R8.
func (g *tiles) wide() bool { return g.n > g.vecs }

// step writes one step of k, the u-th from BX on.
func (g *tiles) step(u int) {
	distances := []string{"(BX)", "(BX)(R13*1)", "(BX)(R13*2)", "(BX)(AX*1)"}
	if g.wide() {
		g.p("VBROADCASTSS (SI), %s", g.vec(g.x))
		for v := range g.n {
			g.p("VFMADD231PS %d%s, %s, %s", v%g.vecs*g.lanes*4, distances[v/g.vecs], g.vec(g.x), g.acc(0, v))
		}
		g.p("ADDQ R10, SI; ADDQ R8, BX")
		return
	}
	w := distances[u]
	for v := range g.n {
		g.p("VMOVUPS %d%s, %s", v*g.lanes*4, w, g.vec(g.w+v))
	}
	if g.rows == 1 && g.lanes == 16 {
		for at := 0; at < g.panelBytes(); at += 64 {
			g.p("PREFETCHT0 %d%s", at+rowAhead, w)
		}
	}
	at := []string{"(SI)", "(SI)(R9*1)", "(SI)(R9*2)", "(R8)", "(R8)(R9*1)", "(R8)(R9*2)"}
	for row := range g.rows {
		x := g.vec(g.x + row%g.numX)
		g.p("VBROADCASTSS %s, %s", at[row], x)
		for v := range g.n {
			g.p("VFMADD231PS %s, %s, %s", g.vec(g.w+v), x, g.acc(row, v))
		}
	}
	g.p("ADDQ R10, SI")
	if g.rows > 3 {
		g.p("ADDQ R10, R8")
	}
}

// fetchAhead fetches a line of what is read next. Wide tiles leave it to the processor: see rowAhead.
func (g *tiles) fetchAhead() {
	if !g.wide() {
		g.p("%s (R14); ADDQ R12, R14", g.fetch())
	}
}

// fetch is what fetches weights: to all caches, or to the second level alone, as took less time with weights in memory (Zen 4,
// 2026-11-30). To all, products of 32 rows took 0.97 of the time with AVX-512, but those of one to three rows up to 1.6
// times as long, which wait for nothing else; with AVX2 those of two to four rows took 0.7 to 0.9, and of six up to 1.3
// times as long.
func (g *tiles) fetch() string {
	if g.lanes == 16 && g.rows > 3 || g.lanes == 8 && g.rows > 1 && g.rows < 5 {
		return "PREFETCHT0"
	}
	return "PREFETCHT1"
}

// eachRow calls f for the rows of the tile, and moves ptr from one to the next.
func (g *tiles) eachRow(ptr, stride string, f func(row int)) {
	for row := range g.rows {
		f(row)
		if row < g.rows-1 {
			g.p("ADDQ %s, %s", stride, ptr)
		}
	}
}

// load loads vector v of a row. The last vector may be partial.
func (g *tiles) load(ptr string, v int, dst string) {
	// Only the last vector of a panel is masked. In a whole panel its mask has all bits, so that
	// one kernel serves both.
	off := v * g.lanes * 4
	switch {
	case v < g.n-1 || g.arm():
		g.p("VMOVUPS %d(%s), %s", off, ptr, dst)
	case g.lanes == 16:
		g.p("VMOVUPS.Z %d(%s), K1, %s", off, ptr, dst)
	default:
		g.p("VMASKMOVPS %d(%s), %s, %s", off, ptr, g.mask(), dst)
	}
}

// loadMask loads the mask of the last vector of a row. AVX-512 has it in K1.
func (g *tiles) loadMask() {
	if g.lanes == 8 {
		g.p("MOVQ    tile_tail(DI), R13; NEGQ    R13; LEAQ    tailMask<>+32(SB), R12; VMOVUPS (R12)(R13*4), %s", g.mask())
	}
}

// mask is the register with the mask of the last vector, outside of the loop over k.
func (g *tiles) mask() string { return g.vec(g.w) }

// tmp is a scratch register in an epilogue.
func (g *tiles) tmp(i int) string { return g.vec(g.w + 1 + i) }
