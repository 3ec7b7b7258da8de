package main

import "fmt"

// exponentials writes the functions of exp.go for vectors. They do the same operations in the same
// order, so the bits are the same.
func (g *vectors) exponentials() {
	streams := g.chains("X", "T", "Q", "N") // then partial sums, and what all use
	g.registers(g.firstSum()+g.sums(), "Least", "Most", "One")
	limits := func() { g.p("VBROADCASTSS least, Least; VBROADCASTSS most, Most; VBROADCASTSS one, One") }
	zeros := func() {
		for i := range g.sums() {
			g.p("%s %s, %[2]s, %[2]s", g.zero, g.sum(i))
		}
	}
	limitsAndSums := func() { limits(); zeros() }
	storeSums := func() {
		for i := range g.sums() {
			g.p("VMOVUPS %s, %d(R9)", g.sum(i), i*g.width())
		}
	}
	shifted := func() { g.p("VMOVUPS src, X; VSUBPS  shift, X, X"); g.exp() }
	if g.lanes == 8 {
		g.expFour(streams, storeSums)
		g.registers(g.firstSum()+g.sums(), "Least", "Most", "One")
	} else {
		g.function(function{
			name: "exp", params: "dst, src *float32, blocks int, shift float32, sums *[16]float64",
			before: limitsAndSums,
			body:   func(i int) { shifted(); g.p("VMOVUPS X, dst"); g.addToSums(i) },
			after:  storeSums, streams: 4, registers: streams,
		})
	}
	g.function(function{
		name: "expSum", params: "src *float32, blocks int, shift float32, sums *[16]float64",
		before: limitsAndSums,
		body:   func(i int) { shifted(); g.addToSums(i) },
		after:  storeSums, streams: 4, registers: streams,
	})
	g.function(function{
		name: "floatSums", params: "src *float32, blocks int, sums *[16]float64",
		before: zeros, body: func(i int) { g.p("VMOVUPS src, X"); g.addToSums(i) }, after: storeSums,
		streams: 1, registers: streams,
	})
	g.function(function{
		name: "logSoftmaxDeriv", params: "dst, y, dy *float32, blocks int, sum float32",
		before: limits,
		body: func(int) {
			g.p("VMOVUPS y, X")
			g.exp()
			g.p("VMULPS  sum, X, X; VMOVUPS dy, T; VSUBPS  X, T, X; VMOVUPS X, dst")
		},
		streams: 4, registers: streams,
	})
	g.function(function{
		name: "sigmoid", params: "dst, src *float32, blocks int",
		before: limits,
		body: func(int) {
			g.p("VMOVUPS src, X; XOR  sign, X, X")
			g.exp()
			g.p("VADDPS  One, X, X; VDIVPS  X, One, X; VMOVUPS X, dst")
		},
		streams: 4, registers: streams,
	})
	g.erfc()
	g.oddFunctions()
}

// oddFunctions writes those that compute with absolute values, and give results the signs of arguments.
func (g *vectors) oddFunctions() {
	streams := g.chains("X", "T", "Arg", "Q", "N")
	free := 24
	if g.lanes < 16 {
		free = 10
	}
	g.registers(free, "Far", "One")
	g.function(function{
		name: "tanh", params: "dst, src *float32, blocks int",
		before: func() { g.p("VBROADCASTSS far, Far; VBROADCASTSS one, One") },
		body: func(int) {
			g.p("VMOVUPS src, Arg; AND  abs, Arg, X; VADDPS  X, X, X")
			g.bound("MINPS", "Far", "X")
			g.expm1()
			g.p("VADDPS One, Q, T; VDIVPS T, Q, Q")
			g.p("AND sign, Arg, Arg; OR Arg, Q, Q; VMOVUPS Q, dst")
		},
		streams: 4, registers: streams,
	})
	g.registers(free, "FarLow", "Most")
	g.function(function{
		name: "expm1", params: "dst, src *float32, blocks int",
		before: func() { g.p("VBROADCASTSS low, FarLow; VBROADCASTSS most, Most") },
		body: func(int) {
			g.p("VMOVUPS src, Arg; VMOVUPS Arg, X")
			g.bound("MAXPS", "FarLow", "X")
			g.bound("MINPS", "Most", "X")
			g.expm1()
			g.p("VADDPS Q, Q, Q")
			g.p("AND sign, Arg, Arg; OR Arg, Q, Q; VMOVUPS Q, dst")
		},
		streams: 4, registers: streams,
	})
	g.registers(free, "Most", "One")
	g.function(function{
		name: "erf", params: "dst, src *float32, blocks int",
		before: func() { g.p("VBROADCASTSS erfEnd, Most; VBROADCASTSS one, One") },
		body: func(int) {
			g.p("VMOVUPS src, Arg; AND  abs, Arg, X")
			g.bound("MINPS", "Most", "X")
			g.p("VMULPS X, X, T")
			g.polynomial("Q", "T", "erfA5 erfA4 erfA3 erfA2 erfA1 erfA0")
			g.p("VMULPS X, Q, Q")
			g.polynomial("X", "T", "erfB5 erfB4 erfB3 erfB2 erfB1 One")
			g.p("VDIVPS X, Q, Q")
			g.bound("MINPS", "One", "Q")
			g.p("AND sign, Arg, Arg; OR Arg, Q, Q; VMOVUPS Q, dst")
		},
		streams: 4, registers: streams,
	})
}

// expFour is exp with AVX2, for four vectors at a time. Where no argument is far from zero, no exponential leaves the range
// of normal numbers on the way: then n is added to its exponent, and nothing is bounded. One load of a constant serves all
// four, and their chains leave a processor enough to do that looks ahead by less than two chains. Sums, which would make
// them longer, are added up afterwards, from the first-level cache. A softmax of 43×1500 takes 0.82 of the time that it
// took with two chains (Zen 4, 2026-11-30).
func (g *vectors) expFour(streams func(int), after func()) {
	g.registers(12, "One", "A", "B", "shift")
	g.open("exp", "dst, src *float32, blocks int, shift float32, sums *[16]float64", "DI", "SI", "CX", g.names["shift"], "R9")
	each := func(instruction string) {
		for i := range 4 {
			g.registers(3*i, "X", "T", "Q")
			g.names["src"], g.names["dst"] = fmt.Sprintf("%d(SI)(AX*1)", 32*i), fmt.Sprintf("%d(DI)(AX*1)", 32*i)
			g.p("%s", instruction)
		}
	}
	g.p("VBROADCASTSS one, One; XORQ AX, AX")
	g.label("several")
	g.p("SUBQ $2, CX; JLT  few; VMOVUPS abs, A")
	each("VMOVUPS src, X")
	each("VSUBPS shift, X, X")
	each("VANDPS A, X, Q")
	// The bits of absolute values are in their order, NaN above all.
	g.p("VPMAXUD Y2, Y5, Y2; VPMAXUD Y8, Y11, Y8; VPMAXUD Y2, Y8, Y2; VMOVUPS expFar, A; VPMAXUD A, Y2, Y2; VPCMPEQD A, Y2, Y2")
	g.p("VPMOVMSKB Y2, DX; CMPL DX, $-1; JNE  wider; VMOVUPS log2e, A; VMOVUPS magic, B")
	each("VMOVAPS B, T")
	each("VFMADD231PS A, X, T")
	each("VSUBPS B, T, Q")
	g.p("VMOVUPS ln2High, A; VMOVUPS ln2Low, B")
	each("VFNMADD231PS A, Q, X")
	each("VFNMADD231PS B, Q, X")
	g.p("VMOVUPS exp0, A; VMOVUPS exp1, B")
	each("VMOVAPS A, Q")
	each("VFMADD213PS B, X, Q")
	for i := 2; i < 6; i++ {
		g.p("VMOVUPS exp%d, A", i)
		each("VFMADD213PS A, X, Q")
	}
	each("VFMADD213PS One, X, Q")
	each("VFMADD213PS One, X, Q")
	each("VPSLLD $23, T, T")
	each("VPADDD T, Q, Q")
	each("VMOVUPS Q, dst")
	g.p("ADDQ $128, AX; JMP  several")
	// Two blocks, or the last one, in the way of any arguments.
	g.label("wider")
	g.p("MOVQ $2, DX; JMP  bounded")
	g.label("few")
	g.p("ADDQ $2, CX; JZ   done; MOVQ CX, DX; XORQ CX, CX")
	g.label("bounded")
	g.registers(10, "Least", "Most")
	g.p("VBROADCASTSS least, Least; VBROADCASTSS most, Most")
	g.label("next")
	g.weave(function{registers: streams, body: func(int) {
		g.p("VMOVUPS src, X; VSUBPS  shift, X, X")
		g.exp()
		g.p("VMOVUPS X, dst")
	}}, map[string]string{"dst": "DI", "src": "SI"}, 2)
	g.p("ADDQ $64, AX; DECQ DX; JNZ  next; JMP  several")
	g.label("done")
	g.sumStored()
	after()
	g.end()
}

// chains returns a function that names the registers of a stream. The last two are one where n need not
// be kept.
func (g *vectors) chains(names ...string) func(stream int) {
	return func(stream int) {
		if g.lanes < 16 {
			last := len(names) - 1
			g.registers(stream*last, names[:last]...)
			g.names[names[last]] = g.names[names[last-1]]
			return
		}
		g.registers(stream*len(names), names...)
		g.names["Large"] = fmt.Sprintf("K%d", 1+stream)
	}
}

// erfc is erfc for vectors, and x times that of -t or of -x/root, see GELUVec and GELUOfVec. It has no sums, whose
// registers it uses: constants have those from firstHoisted on.
func (g *vectors) erfc() {
	streams := g.chains("X", "T", "Arg", "Low", "Arm", "Q", "N")
	if g.lanes == 16 {
		g.registers(24, "Least", "Wide")
	} else {
		g.registers(12, "Least", "Wide")
	}
	g.names["One"] = g.constant("one") // which leaves AVX2 two registers for numbers
	for _, f := range []struct{ name, params, load, store string }{
		{"erfc", "dst, src *float32, blocks int", "VMOVUPS src, Arg", "VMOVUPS Q, dst"},
		{"gelu", "dst, x, t *float32, blocks int", "VMOVUPS t, Arg; XOR  sign, Arg, Arg", "VMULPS x, Q, Q; VMOVUPS Q, dst"},
		{"geluOf", "dst, x *float32, blocks int, root, factor float32", "VMOVUPS x, Arg; VDIVPS root, Arg, Arg; XOR  sign, Arg, Arg", "VMULPS x, Q, Q; VMULPS factor, Q, Q; VMOVUPS Q, dst"},
	} {
		g.function(function{
			name: f.name, params: f.params,
			before: func() { g.p("VBROADCASTSS least, Least; VBROADCASTSS wide, Wide") },
			body: func(int) {
				g.p("%s; AND  abs, Arg, T", f.load)
				g.bound("MINPS", "Wide", "T")
				// The square as two float32s: -X and Low.
				g.p("VMULPS T, T, X; XOR  sign, X, X; VMOVUPS X, Low; VFMADD231PS T, T, Low")
				g.p("VMOVUPS half, Arm; VFMADD213PS One, T, Arm; VMOVUPS One, Q; VDIVPS Arm, Q, Arm")
				g.bound("MAXPS", "Least", "X")
				g.reduce("magicTwice")
				g.p("VSUBPS Low, X, X")
				g.scaled()
				g.polynomial("Q", "Arm", "erfc9 erfc8 erfc7 erfc6 erfc5 erfc4 erfc3 erfc2 erfc1 erfc0")
				g.p("VMULPS Arm, Q, Q; VMULPS X, Q, Q")
				// For negative arguments, 2 less the result.
				g.p("AND  sign, Arg, T; XOR  T, Q, Q; VPSRAD $31, Arg, Arg; AND  two, Arg, Arg; VADDPS Arg, Q, Q; %s", f.store)
			},
			streams: 2, registers: streams,
		})
	}
}

// expm1 computes Q = (e**X - 1)/2.
func (g *vectors) expm1() {
	g.reduce("magicHalf")
	g.polynomial("Q", "X", "exp0 exp1 exp2 exp3 exp4 exp5")
	g.p("VMULPS X, Q, Q; VFMADD213PS X, X, Q")
	g.p("VPSLLD $23, T, T; VSUBPS half, T, X; VFMADD213PS X, T, Q") // T is 2**n/2
}

// reduce computes N = n and X = r of X = n·ln 2 + r. The last bits of T become n and what is added to an
// exponent: magic is the number that rounds, with that.
func (g *vectors) reduce(magic string) {
	g.p("VMOVUPS %s, T; VFMADD231PS log2e, X, T; VSUBPS %[1]s, T, N", magic)
	g.p("VFNMADD231PS ln2High, N, X; VFNMADD231PS ln2Low, N, X")
}

// exp replaces X by e**X.
func (g *vectors) exp() {
	if g.lanes == 16 {
		// Up to the least argument the result is zero. It must not come out of the scaling: a result that
		// underflows takes as long as hundreds of others, and what a softmax masks is there.
		g.p("VCMPPS $%d, Least, X, Large", notLessOrEqual)
		g.bound("MINPS", "Most", "X")
		g.reduce("magicTwice")
		g.expReduced()
		g.p("VSCALEFPS.Z N, Q, Large, X")
		return
	}
	g.bound("MAXPS", "Least", "X")
	g.bound("MINPS", "Most", "X")
	g.reduce("magicTwice")
	g.scaled()
}

// expReduced computes Q = e**r.
func (g *vectors) expReduced() { g.polynomial("Q", "X", "exp0 exp1 exp2 exp3 exp4 exp5 One One") }

// scaled sets X to 2**n·e**r.
func (g *vectors) scaled() {
	g.expReduced()
	if g.lanes == 16 {
		g.p("VSCALEFPS N, Q, X")
		return
	}
	// 2**n may leave the range of normal numbers on the way, so it is applied in two halves.
	g.p("VPSRAD $1, T, X; VPSUBD X, T, T; VPSLLD $23, T, T; VPSLLD $23, X, X; VMULPS T, Q, Q; VMULPS Q, X, X")
}

// sums is the number of registers that hold partial sums.
func (g *vectors) sums() int { return 2 * blockBytes / g.width() }

// firstSum is the first register for partial sums, behind those of the streams.
func (g *vectors) firstSum() int {
	switch g.lanes {
	case 16:
		return 20
	case 8:
		return 6
	}
	return 3
}

// sum is a register for partial sums.
func (g *vectors) sum(i int) string { return g.vec(g.firstSum() + i) }

// sumStored adds what is stored in the AX bytes from DI on to the partial sums, in the order of addToSums.
func (g *vectors) sumStored() {
	for i := range g.sums() {
		g.p("%s %s, %[2]s, %[2]s", g.zero, g.sum(i))
	}
	g.p("MOVQ AX, CX; XORQ AX, AX")
	g.label("sum")
	for i := range g.sums() {
		g.p("VCVTPS2PD %d(DI)(AX*1), Y%d; VADDPD Y%[2]d, %s, %[3]s", 16*i, i, g.sum(i))
	}
	g.p("ADDQ $%d, AX; CMPQ AX, CX; JNE  sum", blockBytes)
}

// addToSums adds X, vector i of a block, to the partial sums.
func (g *vectors) addToSums(i int) {
	if g.arm() {
		for half := range 2 {
			g.lengthen(g.names["T"], g.names["X"], half == 1)
			g.p("VADDPD T, %s, %[1]s", g.sum(2*i+half))
		}
		return
	}
	half, upper := "X"+g.names["X"][1:], "VEXTRACTF128"
	if g.lanes == 16 {
		half, upper = "Y"+g.names["X"][1:], "VEXTRACTF64X4"
	}
	g.p("VCVTPS2PD %s, T; VADDPD T, %s, %[2]s", half, g.sum(2*i))
	g.p("%s $1, X, %s; VCVTPS2PD %[2]s, T; VADDPD T, %s, %[3]s", upper, half, g.sum(2*i+1))
}
