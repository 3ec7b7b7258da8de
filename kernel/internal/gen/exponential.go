package main

import "fmt"

// exponentials writes the functions of exp.go for vectors. They do the same operations in the same
// order, so the bits are the same.
func (g *vectors) exponentials() {
	streams := g.chains("X", "N", "R", "Q", "T") // then partial sums, and what all use
	free := g.firstSum() + max(5, g.sums())
	if g.lanes == 16 {
		free = g.firstSum() + g.sums()
	}
	g.registers(free, "Least", "Most", "One")
	limits := func() { g.p("VBROADCASTSS least, Least; VBROADCASTSS most, Most; VBROADCASTSS one, One") }
	limitsAndSums := func() {
		limits()
		for i := range g.sums() {
			g.p("%s %s, %[2]s, %[2]s", g.zero, g.sum(i))
		}
	}
	storeSums := func() {
		for i := range g.sums() {
			g.p("VMOVUPS %s, %d(R9)", g.sum(i), i*g.width())
		}
	}
	shifted := func() { g.p("VMOVUPS src, X; VSUBPS  shift, X, X"); g.exp() }
	g.function(function{
		name: "exp", params: "dst, src *float32, blocks int, shift float32, sums *[16]float64",
		before: limitsAndSums,
		body:   func(i int) { shifted(); g.p("VMOVUPS X, dst"); g.addToSums(i) },
		after:  storeSums, streams: 4, registers: streams,
	})
	g.function(function{
		name: "expSum", params: "src *float32, blocks int, shift float32, sums *[16]float64",
		before: limitsAndSums,
		body:   func(i int) { shifted(); g.addToSums(i) },
		after:  storeSums, streams: 4, registers: streams,
	})
	g.function(function{
		name: "logSoftmaxDeriv", params: "dst, y, dy *float32, blocks int, sum float32",
		before: limits,
		body: func(int) {
			g.p("VMOVUPS y, X")
			g.exp()
			g.p("VMULPS  sum, X, X; VMOVUPS dy, R; VSUBPS  X, R, X; VMOVUPS X, dst")
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
	streams = g.chains("X", "N", "R", "Q", "T", "Arg")
	if g.lanes == 16 {
		free = 24
	} else {
		g.registers(free, "Arg")
		free++
	}
	g.registers(free, "Far", "One")
	g.function(function{
		name: "tanh", params: "dst, src *float32, blocks int",
		before: func() { g.p("VBROADCASTSS far, Far; VBROADCASTSS one, One") },
		body: func(int) {
			g.p("VMOVUPS src, Arg; AND  abs, Arg, X; VADDPS  X, X, X")
			g.bound("MINPS", "Far", "X")
			g.expm1()
			g.p("VCVTPS2DQ N, N; VPADDD bias, N, N; VPSLLD $23, N, N") // 2**n
			g.p("VMULPS N, Q, Q; VSUBPS One, N, N; VADDPS N, Q, Q")    // e**2|x| - 1
			g.p("VADDPS two, Q, T; VDIVPS T, Q, Q")
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
			g.p("VCVTPS2DQ N, N; VPADDD halfBias, N, N; VPSLLD $23, N, N") // 2**n/2
			g.p("VMULPS N, Q, Q; VSUBPS half, N, N; VADDPS N, Q, Q; VADDPS Q, Q, Q")
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
			g.p("VMULPS X, X, R; VMULPS erfA5, R, Q; VMULPS erfB5, R, T")
			for i := 4; i > 0; i-- {
				g.p("VADDPS erfA%d, Q, Q; VMULPS R, Q, Q; VADDPS erfB%[1]d, T, T; VMULPS R, T, T", i)
			}
			g.p("VADDPS erfA0, Q, Q; VMULPS X, Q, Q; VADDPS One, T, T; VDIVPS T, Q, Q")
			g.bound("MINPS", "One", "Q")
			g.p("AND sign, Arg, Arg; OR Arg, Q, Q; VMOVUPS Q, dst")
		},
		streams: 4, registers: streams,
	})
}

// chains returns a function that names the registers of a stream. Where there is one stream only, its
// registers are the first five, and the sixth and later ones have their names already.
func (g *vectors) chains(names ...string) func(stream int) {
	return func(stream int) {
		if g.lanes < 16 {
			g.registers(0, names[:5]...)
			return
		}
		g.registers(stream*len(names), names...)
		g.names["Large"] = fmt.Sprintf("K%d", 1+stream)
	}
}

// erfc is erfc for vectors, and x times that of -t, see GELUVec. It has no sums, whose registers it uses: constants have those from
// firstHoisted on.
func (g *vectors) erfc() {
	streams := g.chains("X", "N", "R", "Q", "T", "Arg", "Low", "Arm")
	if g.lanes == 16 {
		g.registers(24, "Least", "Wide", "One")
	} else {
		g.registers(10, "Least", "Wide", "One", "Arg", "Low", "Arm")
	}
	for _, f := range []struct{ name, params, load, store string }{
		{"erfc", "dst, src *float32, blocks int", "VMOVUPS src, Arg", "VMOVUPS Q, dst"},
		{"gelu", "dst, x, t *float32, blocks int", "VMOVUPS t, Arg; XOR  sign, Arg, Arg", "VMULPS x, Q, Q; VMOVUPS Q, dst"},
	} {
		g.function(function{
			name: f.name, params: f.params,
			before: func() { g.p("VBROADCASTSS least, Least; VBROADCASTSS wide, Wide; VBROADCASTSS one, One") },
			body: func(int) {
				g.p("%s; AND  abs, Arg, T", f.load)
				g.bound("MINPS", "Wide", "T")
				// The square as two float32s: -X and Low.
				g.p("VMULPS T, T, X; XOR  sign, X, X; VMOVUPS X, Low; VFMADD231PS T, T, Low")
				g.p("VMULPS half, T, T; VADDPS One, T, T; VDIVPS T, One, Arm")
				g.bound("MAXPS", "Least", "X")
				g.reduce()
				g.p("VSUBPS Low, R, R")
				g.expm1Reduced()
				g.scaled()
				g.p("VMULPS erfc%d, Arm, Q", erfcTerms-1)
				for i := erfcTerms - 2; i > 0; i-- {
					g.p("VADDPS erfc%d, Q, Q; VMULPS Arm, Q, Q", i)
				}
				g.p("VADDPS erfc0, Q, Q; VMULPS Arm, Q, Q; VMULPS X, Q, Q")
				// For negative arguments, 2 less the result.
				g.p("AND  sign, Arg, T; XOR  T, Q, Q; VPSRAD $31, Arg, Arg; AND  two, Arg, Arg; VADDPS Arg, Q, Q; %s", f.store)
			},
			streams: 2, registers: streams,
		})
	}
}

// expm1 computes Q = e**r - 1 and N of X = n·ln 2 + r.
func (g *vectors) expm1() {
	g.reduce()
	g.expm1Reduced()
}

// reduce computes N and R of X = n·ln 2 + r.
func (g *vectors) reduce() {
	g.p("VMULPS log2e, X, N; VADDPS magic, N, N; VSUBPS magic, N, N")
	g.p("VMULPS ln2High, N, T; VSUBPS T, X, R; VMULPS ln2Low, N, T; VSUBPS T, R, R")
}

// expm1Reduced computes Q = e**r - 1.
func (g *vectors) expm1Reduced() {
	g.p("VMULPS exp0, R, Q")
	for i := range 4 {
		g.p("VADDPS exp%d, Q, Q; VMULPS R, Q, Q", i+1)
	}
	g.p("VADDPS exp5, Q, Q; VMULPS R, R, T; VMULPS T, Q, Q; VADDPS R, Q, Q")
}

// exp replaces X by e**X.
func (g *vectors) exp() {
	if g.lanes == 16 {
		// Up to the least argument the result is zero. It must not come out of the scaling: a result that
		// underflows takes as long as hundreds of others, and what a softmax masks is there.
		g.p("VCMPPS $%d, Least, X, Large", notLessOrEqual)
		g.bound("MINPS", "Most", "X")
		g.expm1()
		g.p("VADDPS One, Q, Q; VSCALEFPS.Z N, Q, Large, X")
		return
	}
	g.bound("MAXPS", "Least", "X")
	g.bound("MINPS", "Most", "X")
	g.expm1()
	g.scaled()
}

// scaled sets X to 2**n·(Q + 1).
func (g *vectors) scaled() {
	g.p("VADDPS One, Q, Q")
	if g.lanes == 16 {
		g.p("VSCALEFPS N, Q, X")
		return
	}
	// 2**n may leave the range of normal numbers on the way, so it is applied in two halves.
	g.p("VCVTPS2DQ N, N; VPSRAD $1, N, T; VPSUBD T, N, N; VPADDD bias, T, T; VPADDD bias, N, N")
	g.p("VPSLLD $23, T, T; VPSLLD $23, N, N; VMULPS T, Q, Q; VMULPS N, Q, X")
}

// sums is the number of registers that hold partial sums.
func (g *vectors) sums() int { return 2 * blockBytes / g.width() }

// firstSum is the first register for partial sums.
func (g *vectors) firstSum() int {
	if g.lanes == 16 {
		return 20
	}
	return 5
}

// sum is a register for partial sums.
func (g *vectors) sum(i int) string { return g.vec(g.firstSum() + i) }

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
