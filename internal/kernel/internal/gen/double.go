package main

import (
	"math"
)

type doubles struct{ *emitter }

// writeDoubles writes the functions on vectors of float64s. They do the same operations as their
// twins in double.go and package elementary, in the same order.
func writeDoubles(e *emitter) {
	e.constants = table{"reals", 8, reals}
	e.bitwise = func(op string) string {
		if e.lanes == 16 {
			return "VP" + op + "Q"
		}
		return "VP" + op
	}
	g := &doubles{e}
	g.writeConstants()
	// X is the argument and Y the result; the others are scratch.
	g.registers(0, "X", "Y", "N", "R", "P", "T", "U", "F", "S", "Z", "W", "Mask", "V")
	write := func(name, params string, body func()) {
		g.function(function{name: name, params: params + " *float64, blocks int", body: func(int) { body() }})
	}
	for _, f := range []struct{ name, params, ops string }{
		{"dAdd", "dst, x, y", "VMOVUPD x, X; VADDPD  y, X, X"},
		{"dSub", "dst, x, y", "VMOVUPD x, X; VSUBPD  y, X, X"},
		{"dMul", "dst, x, y", "VMOVUPD x, X; VMULPD  y, X, X"},
		{"dDiv", "dst, x, y", "VMOVUPD x, X; VDIVPD  y, X, X"},
		{"dSqrt", "dst, x", "VSQRTPD x, X"},
		{"dAbs", "dst, x", "VMOVUPD x, X; AND abs, X, X"},
		{"dNeg", "dst, x", "VMOVUPD x, X; XOR sign, X, X"},
	} {
		write(f.name, f.params, func() { g.p("%s; VMOVUPD X, dst", f.ops) })
	}
	for _, f := range []struct {
		name string
		body func()
	}{
		{"dExp", g.exp}, {"dExpm1", g.expm1}, {"dSigmoid", g.sigmoid}, {"dTanh", g.tanh}, {"dLog", g.log}, {"dLog1p", g.log1p},
		{"dSin", func() { g.sine("") }}, {"dCos", func() { g.sine("VPADDQ bit0, T, T; ") }},
	} {
		write(f.name, "dst, x", func() { g.p("VMOVUPD x, X"); f.body(); g.p("VMOVUPD Y, dst") })
	}
}

func double(name string, x float64) constant { return constant{name, math.Float64bits(x)} }

// reals are the constants of package elementary, which has the formulas.
var reals = []constant{
	double("log2e", math.Log2E), double("ln2High", 6.93147180369123816490e-01), double("ln2Low", 1.90821492927058770002e-10),
	double("magic", 3<<51), double("least", -746), double("most", 710), double("lowest", -60), double("far", 40),
	double("half", 0.5), double("one", 1), double("two", 2),
	double("e13", 1.0/6227020800), double("e12", 1.0/479001600), double("e11", 1.0/39916800), double("e10", 1.0/3628800),
	double("e9", 1.0/362880), double("e8", 1.0/40320), double("e7", 1.0/5040), double("e6", 1.0/720), double("e5", 1.0/120),
	double("e4", 1.0/24), double("e3", 1.0/6),
	double("l1", 6.666666666666735130e-01), double("l2", 3.999999999940941908e-01), double("l3", 2.857142874366239149e-01),
	double("l4", 2.222219843214978396e-01), double("l5", 1.818357216161805012e-01), double("l6", 1.531383769920937332e-01),
	double("l7", 1.479819860511658591e-01),
	double("smallest", 0x1p-1022), double("up", 0x1p54), double("upBits", 54), double("exponent", 1<<52+1023),
	double("inf", math.Inf(1)), double("minusInf", math.Inf(-1)), double("nan", math.NaN()), double("minusOne", -1), double("zero", 0),
	double("twoOverPi", 2/math.Pi), double("piHigh", 1.5707963267948966), double("piLow", 6.123233995736766e-17),
	double("s1", -1.66666666666666324348e-01), double("s2", 8.33333333332248946124e-03), double("s3", -1.98412698298579493134e-04),
	double("s4", 2.75573137070700676789e-06), double("s5", -2.50507602534068634195e-08), double("s6", 1.58969099521155010221e-10),
	double("c1", 4.16666666666666019037e-02), double("c2", -1.38888888888741095749e-03), double("c3", 2.48015872894767294178e-05),
	double("c4", -2.75573143513906633035e-07), double("c5", 2.08757232129817482790e-09), double("c6", -1.13596475577881948265e-11),
	{"sign", 1 << 63}, {"abs", 1<<63 - 1}, {"bias", 1023}, {"lessBias", 1022},
	{"mantissa", 0x3ff<<52 - 0x3fe6a09e667f3bcd}, {"oneBits", 0x3ff << 52}, {"exponentBits", 0x433 << 52}, {"bit0", 1}, {"bit1", 2},
}

// Predicates of comparisons.
const (
	equal          = 0
	less           = 0x11
	notLess        = 0x15
	notLessOrEqual = 0x16
)

// choose sets dst to a where x compares with y, and to b elsewhere.
func (g *doubles) choose(x string, predicate int, y, a, b, dst string) {
	// With AVX-512 comparisons set mask registers, with AVX2 and NEON all bits of an element.
	if g.lanes == 16 {
		g.p("VCMPPD $%d, %s, %s, K1; VBLENDMPD %s, %s, K1, %s", predicate, y, x, a, b, dst)
	} else {
		g.p("VCMPPD $%d, %s, %s, Mask; VBLENDVPD Mask, %s, %s, %s", predicate, y, x, a, b, dst)
	}
}

// special sets Y to the value of a function at arguments that compare with y.
func (g *doubles) special(predicate int, y, value string) {
	g.choose("X", predicate, y, value, "Y", "Y")
}

// clamp computes X = min(max(X, least), most). NaN stays.
func (g *doubles) clamp(least, most string) {
	g.p("VMOVUPD %s, T", least)
	g.bound("MAXPD", "T", "X")
	g.p("VMOVUPD %s, T", most)
	g.bound("MINPD", "T", "X")
}

// reduce splits X into n·ln 2 + r. N is n, T a number whose last bits are n, and S e^r - 1.
func (g *doubles) reduce() {
	g.p("VMOVUPD magic, T; VFMADD231PD log2e, X, T; VSUBPD magic, T, N")
	g.p("VMOVAPD X, R; VFNMADD231PD ln2High, N, R; VFNMADD231PD ln2Low, N, R")
	g.polynomial("P", "R", "e13 e12 e11 e10 e9 e8 e7 e6 e5 e4 e3 half")
	g.p("VMULPD R, R, S; VFMADD213PD R, P, S")
}

// exponent turns a register whose last bits are n into 2^n.
func (g *doubles) exponent(register, bias string) {
	g.p("VPADDQ %s, %s, %[2]s; VPSLLQ $52, %[2]s, %[2]s", bias, register)
}

func (g *doubles) exp() {
	g.clamp("least", "most")
	g.reduce()
	// 2^n may leave the range of normal numbers on the way, so it is applied in two halves.
	g.p("VMOVUPD magic, T; VFMADD231PD half, N, T; VSUBPD magic, T, U; VSUBPD U, N, U; VADDPD magic, U, U")
	g.exponent("T", "bias")
	g.exponent("U", "bias")
	g.p("VADDPD one, S, S; VMULPD T, S, S; VMULPD U, S, Y")
}

func (g *doubles) sigmoid() {
	g.p("XOR sign, X, X")
	g.exp()
	g.p("VADDPD one, Y, Y; VMOVUPD one, T; VDIVPD Y, T, Y")
}

// clampedExpm1 computes Y = e^X - 1.
func (g *doubles) clampedExpm1() {
	g.reduce()
	g.exponent("T", "lessBias")
	g.p("VSUBPD half, T, U; VFMADD213PD U, T, S; VADDPD S, S, Y")
}

func (g *doubles) expm1() {
	g.p("VMOVAPD X, F")
	g.clamp("lowest", "most")
	g.clampedExpm1()
	g.p("AND sign, F, F; OR F, Y, Y") // -0 stays
}

func (g *doubles) tanh() {
	g.p("AND sign, X, F; AND abs, X, X; VADDPD X, X, X; VMOVUPD far, T")
	g.bound("MINPD", "T", "X")
	g.clampedExpm1()
	g.p("VADDPD two, Y, U; VDIVPD U, Y, Y; OR F, Y, Y")
}

// logOf computes Y = log(u) for a positive number. N is the exponent, F + 1 the mantissa.
func (g *doubles) logOf(u string) {
	g.p("VMULPD up, %s, T; VXORPS Y2, Y2, Y2", u) // N = 0: to clear the lower half of a register clears all of it
	// Numbers that are not normal are scaled. The second choice is by the same comparison as the
	// first.
	g.choose(u, less, "smallest", "T", u, "R")
	if g.lanes == 16 {
		g.p("VBLENDMPD upBits, N, K1, N")
	} else {
		g.p("VBLENDVPD Mask, upBits, N, N")
	}
	g.p("VPADDQ mantissa, R, T; VPSRLQ $52, T, T; OR exponentBits, T, P; VSUBPD exponent, P, P; VSUBPD N, P, N")
	g.p("VPSLLQ $52, T, T; VPSUBQ T, R, R; VPADDQ oneBits, R, R; VSUBPD one, R, F")
	g.p("VADDPD two, F, T; VDIVPD T, F, S; VMULPD S, S, Z; VMULPD Z, Z, W")
	g.polynomial("P", "W", "l6 l4 l2")
	g.p("VMULPD W, P, P")
	g.polynomial("T", "W", "l7 l5 l3 l1")
	g.p("VFMADD213PD P, Z, T; VMULPD F, F, U; VMULPD half, U, U; VADDPD U, T, T; VMULPD ln2Low, N, P; VFMADD231PD T, S, P")
	g.p("VSUBPD P, U, U; VSUBPD U, F, Y; VFMADD231PD ln2High, N, Y")
}

func (g *doubles) log() {
	g.logOf("X")
	g.special(equal, "zero", "minusInf")
	g.special(less, "zero", "nan")
	g.special(notLess, "inf", "X")
}

func (g *doubles) log1p() {
	g.p("VADDPD one, X, V")
	g.logOf("V")
	g.p("VSUBPD one, V, T; VSUBPD T, X, T; VDIVPD V, T, T; VADDPD T, Y, Y")
	g.p("AND sign, X, F; OR F, Y, Y") // -0 stays
	g.special(equal, "minusOne", "minusInf")
	g.special(less, "minusOne", "nan")
	g.special(notLess, "inf", "X")
}

// sine computes the sine of an argument that is not too large. shift may change the quadrant, which
// is the last bits of T.
func (g *doubles) sine(shift string) {
	g.p("VMOVUPD magic, T; VFMADD231PD twoOverPi, X, T; VSUBPD magic, T, N")
	g.p("VFNMADD231PD piHigh, N, X; VFNMADD231PD piLow, N, X")
	g.p("%sAND sign, X, R; AND abs, X, X; VMULPD X, X, Z", shift)
	g.polynomial("P", "Z", "s6 s5 s4 s3 s2 s1")
	g.p("VMULPD Z, X, S; VFMADD213PD X, P, S; XOR R, S, S") // S is the sine of the rest
	g.polynomial("P", "Z", "c6 c5 c4 c3 c2 c1")
	g.p("VMULPD Z, Z, W; VMULPD P, W, W; VMULPD half, Z, U; VSUBPD W, U, U; VMOVUPD one, W; VSUBPD U, W, U") // and U the cosine
	switch {
	case g.lanes == 16:
		g.p("VPTESTMQ bit0, T, K1; VBLENDMPD U, S, K1, Y")
	case g.arm():
		g.p("VPTESTMQ bit0, T, Mask; VBLENDVPD Mask, U, S, Y")
	default: // the first bit of the mask decides
		g.p("VPSLLQ $63, T, Mask; VBLENDVPD Mask, U, S, Y")
	}
	g.p("AND bit1, T, T; VPSLLQ $62, T, T; XOR T, Y, Y")
}
