package main

// The rows of x may be made of runs: adjacent elements, as many in each. Then tile_runs points at a
// table that says where they are: for each run as many pointers as the highest tile has rows, which
// tile_move moves. A sum goes on from run to run in its register, however short runs are. The steps
// of W follow each other without gaps, so its distances are constants.
//
// The registers beside those of tiles:
//
//	SI, R8, R9, R10, R13, AX   the run of each row (R19 to R24 on arm64)
//	R12                        the current element of all runs, in bytes (R14 on arm64)
//	R15                        the current line of the table (R16 on arm64, and R17 is its end)
var runPointers = []string{"SI", "R8", "R9", "R10", "R13", "AX"}

// loopOverRuns writes the sum over runs, which is skipped if x is a matrix. Wide tiles have no runs.
func (g *tiles) loopOverRuns() {
	if g.arm() {
		g.loopOverRunsNEON()
		return
	}
	if g.wide() {
		return
	}
	g.p("MOVQ  tile_runs(DI), R15; TESTQ R15, R15; JZ    matrix")
	g.label("run")
	for row := range g.rows {
		g.p("MOVQ %d(R15), %s; ADDQ tile_move(DI), %[2]s", 8*row, runPointers[row])
	}
	g.p("XORQ R12, R12; MOVQ tile_run(DI), CX; SHRQ $2, CX; JZ   runRest")
	g.label("runSteps")
	for u := range unroll {
		g.stepOfRun(u)
		if g.lanes == 16 || u == 0 {
			g.fetchAheadOfRun()
		}
	}
	g.p("ADDQ $%d, R12; ADDQ $%d, BX; DECQ CX; JNZ  runSteps", 4*unroll, unroll*g.panelBytes())
	g.label("runRest")
	g.p("MOVQ tile_run(DI), CX; ANDQ $%d, CX; JZ   runDone", unroll-1)
	g.label("runStep")
	g.stepOfRun(0)
	if g.lanes == 16 {
		g.fetchAheadOfRun()
	}
	g.p("ADDQ $4, R12; ADDQ $%d, BX; DECQ CX; JNZ  runStep", g.panelBytes())
	g.label("runDone")
	g.p("ADDQ $%d, R15; CMPQ R15, tile_runsEnd(DI); JNE  run; JMP  done", 8*maxRows)
	g.label("matrix")
}

// stepOfRun writes a step of k, the u-th from the current one on.
func (g *tiles) stepOfRun(u int) {
	for v := range g.n {
		g.p("VMOVUPS %d(BX), %s", u*g.panelBytes()+v*g.lanes*4, g.vec(g.w+v))
	}
	for row := range g.rows {
		x := g.vec(g.x + row%g.numX)
		g.p("VBROADCASTSS %d(%s)(R12*1), %s", 4*u, runPointers[row], x)
		for v := range g.n {
			g.p("VFMADD231PS %s, %s, %s", g.vec(g.w+v), x, g.acc(row, v))
		}
	}
}

// fetchAheadOfRun is fetchAhead, whose distance has no register here.
func (g *tiles) fetchAheadOfRun() { g.p("%s (R14); ADDQ tile_aheadStep(DI), R14", g.fetch()) }

// loopOverRunsNEON is loopOverRuns for arm64.
func (g *tiles) loopOverRunsNEON() {
	g.line("\tMOVD tile_runs(R0), R16\n\tCBZ R16, matrix\n\tMOVD tile_runsEnd(R0), R17\n\tMOVD tile_wStep(R0), R15\n")
	g.label("run")
	g.line("\tMOVD tile_move(R0), R3\n")
	for row := range g.rows {
		g.line("\tMOVD %d(R16), %s\n\tADD R3, %[2]s\n", 8*row, rowPointers[row])
	}
	g.line("\tMOVD ZR, %s\n\tMOVD tile_run(R0), R5\n\tLSR $2, R5\n\tCBZ R5, runRest\n", stepOffset)
	g.label("runSteps")
	g.loadRows()
	for u := range unroll {
		g.stepNEON(u)
	}
	g.line("\tADD $16, %s\n\tSUBS $1, R5\n\tBNE runSteps\n", stepOffset)
	g.label("runRest")
	g.line("\tMOVD tile_run(R0), R5\n\tAND $%d, R5\n\tCBZ R5, runDone\n", unroll-1)
	g.label("runStep")
	g.loadElements()
	g.stepNEON(0)
	g.line("\tADD $4, %s\n\tSUBS $1, R5\n\tBNE runStep\n", stepOffset)
	g.label("runDone")
	g.line("\tADD $%d, R16\n\tCMP R17, R16\n\tBNE run\n\tB done\n", 8*maxRows)
	g.label("matrix")
}
