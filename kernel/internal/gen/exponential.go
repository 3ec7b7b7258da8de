package main

// Registers of the exponentials: an argument, its parts, and scratch; then partial sums; then constants that must be in
// registers.
const (
	regX = iota
	regN
	regR
	regQ
	regT
	regSums // 4 of them

	regLeast = iota + 4
	regMost
	regOne
)

// exponentials writes the functions of exp.go for vectors. They do the same operations in the same order, so the bits are the
// same.
func (g *vectors) exponentials() {
	reg := g.vec
	limits := func() {
		g.load("least", reg(regLeast))
		g.load("most", reg(regMost))
		g.load("one", reg(regOne))
	}
	shifted := func(i int, at func(string) string) {
		g.p("VMOVUPS %s, %s", at("src"), reg(regX))
		g.p("VSUBPS  %s, %s, %[2]s", g.number(0), reg(regX))
		g.exp()
	}
	g.function(function{
		name: "exp", vectors: []string{"dst", "src"}, numbers: []string{"shift"}, sums: "float64",
		before: func() { limits(); g.clearSums() },
		body: func(i int, at func(string) string) {
			shifted(i, at)
			g.p("VMOVUPS %s, %s", reg(regX), at("dst"))
			g.addToSums(i)
		},
		after: g.storeSums,
	})
	g.function(function{
		name: "expSum", vectors: []string{"src"}, numbers: []string{"shift"}, sums: "float64",
		before: func() { limits(); g.clearSums() },
		body: func(i int, at func(string) string) {
			shifted(i, at)
			g.addToSums(i)
		},
		after: g.storeSums,
	})
	g.function(function{
		name: "logSoftmaxDeriv", vectors: []string{"dst", "y", "dy"}, numbers: []string{"sum"},
		before: limits,
		body: func(i int, at func(string) string) {
			g.p("VMOVUPS %s, %s", at("y"), reg(regX))
			g.exp()
			g.p("VMULPS  %s, %s, %[2]s", g.number(0), reg(regX))
			g.p("VMOVUPS %s, %s", at("dy"), reg(regR))
			g.p("VSUBPS  %s, %s, %[1]s", reg(regX), reg(regR))
			g.p("VMOVUPS %s, %s", reg(regX), at("dst"))
		},
	})
	g.function(function{
		name: "sigmoid", vectors: []string{"dst", "src"},
		before: limits,
		body: func(i int, at func(string) string) {
			g.p("VMOVUPS %s, %s", at("src"), reg(regX))
			g.p("%s  %s, %s, %[3]s", g.bits("XOR"), g.k("sign"), reg(regX))
			g.exp()
			g.p("VADDPS  %s, %s, %[2]s", reg(regOne), reg(regX))
			g.p("VDIVPS  %s, %s, %[1]s", reg(regX), reg(regOne))
			g.p("VMOVUPS %s, %s", reg(regX), at("dst"))
		},
	})
	arg := reg(regLeast) // which is free here
	g.function(function{
		name: "tanh", vectors: []string{"dst", "src"},
		before: func() {
			g.load("far", reg(regMost))
			g.load("one", reg(regOne))
		},
		body: func(i int, at func(string) string) {
			g.p("VMOVUPS %s, %s", at("src"), arg)
			g.p("%s  %s, %s, %s", g.bits("AND"), g.k("abs"), arg, reg(regX))
			g.p("VADDPS  %s, %[1]s, %[1]s", reg(regX))
			g.p("VMINPS  %s, %s, %[1]s", reg(regX), reg(regMost)) // the first operand is what comes out of a comparison with NaN
			g.expm1()
			g.p("VCVTPS2DQ %s, %[1]s", reg(regN))
			g.p("VPADDD %s, %s, %[2]s", g.k("bias"), reg(regN))
			g.p("VPSLLD $23, %s, %[1]s", reg(regN))
			g.p("VMULPS %s, %s, %[2]s", reg(regN), reg(regQ))
			g.p("VSUBPS %s, %s, %[2]s", reg(regOne), reg(regN))
			g.p("VADDPS %s, %s, %[2]s", reg(regN), reg(regQ))
			g.p("VADDPS %s, %s, %s", g.k("two"), reg(regQ), reg(regT))
			g.p("VDIVPS %s, %s, %[2]s", reg(regT), reg(regQ))
			g.p("%s %s, %s, %[3]s", g.bits("AND"), g.k("sign"), arg)
			g.p("%s %s, %s, %[3]s", g.bits("OR"), arg, reg(regQ))
			g.p("VMOVUPS %s, %s", reg(regQ), at("dst"))
		},
	})
}

// load writes a load of a constant to all lanes.
func (g *vectors) load(name, dst string) { g.p("VBROADCASTSS %s, %s", g.k(name), dst) }

// bits is the instruction for an operation on bits.
func (g *vectors) bits(op string) string {
	if g.lanes == 16 {
		return "VP" + op + "D"
	}
	return "V" + op + "PS"
}

// expm1 makes q = e**r - 1 and n of x = n·ln 2 + r.
func (g *vectors) expm1() {
	reg := g.vec
	g.p("VMULPS %s, %s, %s", g.k("log2e"), reg(regX), reg(regN))
	g.p("VADDPS %s, %s, %[2]s", g.k("magic"), reg(regN))
	g.p("VSUBPS %s, %s, %[2]s", g.k("magic"), reg(regN))
	g.p("VMULPS %s, %s, %s", g.k("ln2High"), reg(regN), reg(regT))
	g.p("VSUBPS %s, %s, %s", reg(regT), reg(regX), reg(regR))
	g.p("VMULPS %s, %s, %s", g.k("ln2Low"), reg(regN), reg(regT))
	g.p("VSUBPS %s, %s, %[2]s", reg(regT), reg(regR))
	g.p("VMULPS %s, %s, %s", g.k("exp0"), reg(regR), reg(regQ))
	for _, c := range []string{"exp1", "exp2", "exp3", "exp4"} {
		g.p("VADDPS %s, %s, %[2]s", g.k(c), reg(regQ))
		g.p("VMULPS %s, %s, %[2]s", reg(regR), reg(regQ))
	}
	g.p("VADDPS %s, %s, %[2]s", g.k("exp5"), reg(regQ))
	g.p("VMULPS %s, %[1]s, %s", reg(regR), reg(regT))
	g.p("VMULPS %s, %s, %[2]s", reg(regT), reg(regQ))
	g.p("VADDPS %s, %s, %[2]s", reg(regR), reg(regQ))
}

// exp replaces x by e**x.
func (g *vectors) exp() {
	reg := g.vec
	// The first operand is what comes out of a comparison with NaN.
	g.p("VMAXPS %s, %s, %[1]s", reg(regX), reg(regLeast))
	g.p("VMINPS %s, %s, %[1]s", reg(regX), reg(regMost))
	g.expm1()
	g.p("VADDPS %s, %s, %[2]s", reg(regOne), reg(regQ))
	if g.lanes == 16 {
		g.p("VSCALEFPS %s, %s, %s", reg(regN), reg(regQ), reg(regX))
		return
	}
	// 2**n may leave the range of normal numbers on the way, so it is applied in two halves.
	g.p("VCVTPS2DQ %s, %[1]s", reg(regN))
	g.p("VPSRAD $1, %s, %s", reg(regN), reg(regT))
	g.p("VPSUBD %s, %s, %[2]s", reg(regT), reg(regN))
	g.p("VPADDD %s, %s, %[2]s", g.k("bias"), reg(regT))
	g.p("VPADDD %s, %s, %[2]s", g.k("bias"), reg(regN))
	g.p("VPSLLD $23, %s, %[1]s", reg(regT))
	g.p("VPSLLD $23, %s, %[1]s", reg(regN))
	g.p("VMULPS %s, %s, %[2]s", reg(regT), reg(regQ))
	g.p("VMULPS %s, %s, %s", reg(regN), reg(regQ), reg(regX))
}

// numSums is how many registers hold the partial sums.
func (g *vectors) numSums() int { return block * 2 / g.lanes }

func (g *vectors) clearSums() {
	for i := range g.numSums() {
		s := g.vec(regSums + i)
		g.p("%s %s, %[2]s, %[2]s", g.zero, s)
	}
}

// addToSums adds x, the i-th vector of a block, to the partial sums.
func (g *vectors) addToSums(i int) {
	half, upper := "X", "VEXTRACTF128"
	if g.lanes == 16 {
		half, upper = "Y", "VEXTRACTF64X4"
	}
	for h := range 2 {
		if h == 0 {
			g.p("VCVTPS2PD %s%d, %s", half, regX, g.vec(regT))
		} else {
			g.p("%s $1, %s, %s%d", upper, g.vec(regX), half, regX)
			g.p("VCVTPS2PD %s%d, %s", half, regX, g.vec(regT))
		}
		s := g.vec(regSums + 2*i + h)
		g.p("VADDPD %s, %s, %[2]s", g.vec(regT), s)
	}
}

func (g *vectors) storeSums() {
	for i := range g.numSums() {
		g.p("VMOVUPS %s, %d(R9)", g.vec(regSums+i), 4*g.lanes*i)
	}
}
