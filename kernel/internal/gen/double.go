package main

import (
	"fmt"
	"math"
)

// doubleBlock is how many float64s a function treats at a time, with either instruction set.
const doubleBlock = 8

// writeDoubles writes functions on vectors of float64s. They do the same operations as their twins in double.go, in the same order.
func writeDoubles(e *emitter) {
	g := &doubles{emitter: e}
	g.constants()
	for _, op := range []struct{ name, ins string }{{"dAdd", "VADDPD"}, {"dSub", "VSUBPD"}, {"dMul", "VMULPD"}, {"dDiv", "VDIVPD"}} {
		g.function(op.name, []string{"dst", "x", "y"}, func(at func(string) string) {
			g.p("VMOVUPD %s, %s", at("x"), g.vec(0))
			g.p("%s  %s, %s, %[3]s", op.ins, at("y"), g.vec(0))
			g.p("VMOVUPD %s, %s", g.vec(0), at("dst"))
		})
	}
	g.function("dSqrt", []string{"dst", "x"}, func(at func(string) string) {
		g.p("VSQRTPD %s, %s", at("x"), g.vec(0))
		g.p("VMOVUPD %s, %s", g.vec(0), at("dst"))
	})
	for _, f := range []struct{ name, ins, bits string }{{"dAbs", "AND", "abs"}, {"dNeg", "XOR", "sign"}} {
		g.function(f.name, []string{"dst", "x"}, func(at func(string) string) {
			g.p("VMOVUPD %s, %s", at("x"), g.vec(0))
			g.bit(f.ins, 0, 0, f.bits)
			g.p("VMOVUPD %s, %s", g.vec(0), at("dst"))
		})
	}
	for _, f := range []struct {
		name string
		body func()
	}{{"dExp", g.exp}, {"dExpm1", g.expm1}, {"dSigmoid", g.sigmoid}, {"dTanh", g.tanh}, {"dLog", g.log}, {"dLog1p", g.log1p},
		{"dSin", func() { g.sine(false) }}, {"dCos", func() { g.sine(true) }}} {
		g.function(f.name, []string{"dst", "x"}, func(at func(string) string) {
			g.p("VMOVUPD %s, %s", at("x"), g.vec(dX))
			f.body()
			g.p("VMOVUPD %s, %s", g.vec(dY), at("dst"))
		})
	}
}

// Registers: the argument and the result, then scratch.
const (
	dX = iota
	dY
	dN
	dR
	dP
	dT
	dU
	dF
	dS
	dZ
	dW
	dMask
)

// A real is a constant of float64s that stands in memory.
type real struct {
	name string
	bits uint64
}

func double(name string, x float64) real { return real{name, math.Float64bits(x)} }

// reals are those of double.go, which has the formulas.
var reals = []real{
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
	{"sign", 1 << 63}, {"abs", 1<<63 - 1}, {"bias", 1023}, {"lessBias", 1022}, {"mantissa", 0x3ff<<52 - 0x3fe6a09e667f3bcd}, {"oneBits", 0x3ff << 52},
	{"exponentBits", 0x433 << 52}, {"bit0", 1}, {"bit1", 2},
}

type doubles struct{ *emitter }

func (g *doubles) width() int { return g.lanes / 2 }

// constants writes the table of constants, each a vector long.
func (g *doubles) constants() {
	g.line("\n")
	for i, c := range reals {
		for l := range g.width() {
			g.line("DATA reals<>+%d(SB)/8, $0x%016x // %s\n", 8*(i*g.width()+l), c.bits, c.name)
		}
	}
	g.line("GLOBL reals<>(SB), RODATA|NOPTR, $%d\n", 8*len(reals)*g.width())
}

// k is a constant as an operand.
func (g *doubles) k(name string) string {
	for i, c := range reals {
		if c.name == name {
			return fmt.Sprintf("reals<>+%d(SB)", 8*i*g.width())
		}
	}
	panic("no constant " + name)
}

// function writes a function of vectors. body is called for every vector of a block.
func (g *doubles) function(name string, args []string, body func(at func(string) string)) {
	decl := ""
	for i, v := range args {
		if i > 0 {
			decl += ", "
		}
		decl += v
	}
	g.line("\n// func %s%s(%s *float64, blocks int)\nTEXT ·%[1]s%[2]s(SB), NOSPLIT, $0-%[4]d\n", name, g.suffix, decl, 8*len(args)+8)
	reg := map[string]string{}
	for i, v := range args {
		reg[v] = pointers[i]
		g.p("MOVQ %s+%d(FP), %s", v, 8*i, pointers[i])
	}
	g.p("MOVQ blocks+%d(FP), CX", 8*len(args))
	g.p("XORQ AX, AX")
	g.label("next")
	for i := range doubleBlock / g.width() {
		body(func(v string) string { return fmt.Sprintf("%d(%s)(AX*1)", 8*i*g.width(), reg[v]) })
	}
	g.p("ADDQ $%d, AX", 8*doubleBlock)
	g.p("DECQ CX")
	g.p("JNZ  next")
	g.p("VZEROUPPER")
	g.p("RET")
}

// load puts a constant into a register.
func (g *doubles) load(name string, reg int) { g.p("VMOVUPD %s, %s", g.k(name), g.vec(reg)) }

// op writes dst = x op y. y is a register or a constant.
func (g *doubles) op(ins string, dst, x int, y any) {
	g.p("%s %s, %s, %s", ins, g.operand(y), g.vec(x), g.vec(dst))
}

func (g *doubles) operand(y any) string {
	if name, ok := y.(string); ok {
		return g.k(name)
	}
	return g.vec(y.(int))
}

// horner writes p = p·r + c for each of the constants.
func (g *doubles) horner(p, r int, names ...string) {
	for _, n := range names {
		g.p("VFMADD213PD %s, %s, %s", g.k(n), g.vec(r), g.vec(p))
	}
}

// bit writes a bitwise operation: AND, OR or XOR.
func (g *doubles) bit(name string, dst, x int, y any) {
	ins := "VP" + name
	if g.reg == "Z" {
		ins += "Q"
	}
	g.op(ins, dst, x, y)
}

func (g *doubles) shift(ins string, n, reg int) { g.p("%s $%d, %s, %[3]s", ins, n, g.vec(reg)) }

// Predicates of comparisons.
const (
	equal   = 0
	less    = 0x11
	notLess = 0x15
)

// replace writes dst = value where x compares with y, and dst elsewhere.
func (g *doubles) replace(dst int, value string, x, predicate int, y string) {
	if g.reg == "Z" {
		g.p("VCMPPD $%d, %s, %s, K1", predicate, g.k(y), g.vec(x))
		g.p("VBLENDMPD %s, %s, K1, %[2]s", g.operandOf(value), g.vec(dst))
		return
	}
	g.p("VCMPPD $%d, %s, %s, %s", predicate, g.k(y), g.vec(x), g.vec(dMask))
	g.p("VBLENDVPD %s, %s, %s, %[3]s", g.vec(dMask), g.operandOf(value), g.vec(dst))
}

// operandOf is a constant, or the argument.
func (g *doubles) operandOf(value string) string {
	if value == "x" {
		return g.vec(dX)
	}
	return g.k(value)
}

// clamp writes x = min(max(x, least), most), where NaN stays.
func (g *doubles) clamp(x int, least, most string) {
	g.load(least, dT)
	g.op("VMAXPD", x, dT, x)
	g.load(most, dT)
	g.op("VMINPD", x, dT, x)
}

// reduce splits x into n·ln 2 + r: it leaves n in dN, with a number whose last bits are n in dT, and e^r - 1 in dS.
func (g *doubles) reduce(x int) {
	g.load("magic", dT)
	g.p("VFMADD231PD %s, %s, %s", g.k("log2e"), g.vec(x), g.vec(dT))
	g.op("VSUBPD", dN, dT, "magic")
	g.p("VMOVAPD %s, %s", g.vec(x), g.vec(dR))
	g.p("VFNMADD231PD %s, %s, %s", g.k("ln2High"), g.vec(dN), g.vec(dR))
	g.p("VFNMADD231PD %s, %s, %s", g.k("ln2Low"), g.vec(dN), g.vec(dR))
	g.load("e13", dP)
	g.horner(dP, dR, "e12", "e11", "e10", "e9", "e8", "e7", "e6", "e5", "e4", "e3", "half")
	g.op("VMULPD", dS, dR, dR)
	g.p("VFMADD213PD %s, %s, %s", g.vec(dR), g.vec(dP), g.vec(dS))
}

// exponent makes 2^n of a number whose last bits are n.
func (g *doubles) exponent(reg int, bias string) {
	g.op("VPADDQ", reg, reg, bias)
	g.shift("VPSLLQ", 52, reg)
}

// expOf writes dY = e^x, where x is clamped.
func (g *doubles) expOf(x int) {
	g.clamp(x, "least", "most")
	g.reduce(x)
	g.load("magic", dT)
	g.p("VFMADD231PD %s, %s, %s", g.k("half"), g.vec(dN), g.vec(dT))
	g.op("VSUBPD", dU, dT, "magic")
	g.op("VSUBPD", dU, dN, dU)
	g.op("VADDPD", dU, dU, "magic")
	g.exponent(dT, "bias")
	g.exponent(dU, "bias")
	g.op("VADDPD", dS, dS, "one")
	g.op("VMULPD", dS, dS, dT)
	g.op("VMULPD", dY, dS, dU)
}

func (g *doubles) exp() { g.expOf(dX) }

func (g *doubles) sigmoid() {
	g.bit("XOR", dX, dX, "sign")
	g.expOf(dX)
	g.op("VADDPD", dY, dY, "one")
	g.load("one", dT)
	g.op("VDIVPD", dY, dT, dY)
}

// expm1Of writes dY = e^x - 1, where x is clamped.
func (g *doubles) expm1Of(x int) {
	g.reduce(x)
	g.exponent(dT, "lessBias")
	g.op("VSUBPD", dU, dT, "half")
	g.p("VFMADD213PD %s, %s, %s", g.vec(dU), g.vec(dT), g.vec(dS))
	g.op("VADDPD", dY, dS, dS)
}

func (g *doubles) expm1() {
	g.p("VMOVAPD %s, %s", g.vec(dX), g.vec(dF))
	g.clamp(dX, "lowest", "most")
	g.expm1Of(dX)
	g.bit("AND", dF, dF, "sign")
	g.bit("OR", dY, dY, dF)
}

func (g *doubles) tanh() {
	g.bit("AND", dF, dX, "sign")
	g.bit("AND", dX, dX, "abs")
	g.op("VADDPD", dX, dX, dX)
	g.load("far", dT)
	g.op("VMINPD", dX, dT, dX)
	g.expm1Of(dX)
	g.op("VADDPD", dU, dY, "two")
	g.op("VDIVPD", dY, dY, dU)
	g.bit("OR", dY, dY, dF)
}

// logOf writes dY = log(u) for a positive number.
func (g *doubles) logOf(u int) {
	// Numbers that are not normal are scaled; dN is how much.
	g.op("VMULPD", dT, u, "up")
	g.p("VXORPS %s, %[1]s, %[1]s", g.narrow(dN))
	if g.reg == "Z" {
		g.p("VCMPPD $%d, %s, %s, K1", less, g.k("smallest"), g.vec(u))
		g.p("VBLENDMPD %s, %s, K1, %s", g.vec(dT), g.vec(u), g.vec(dR))
		g.p("VBLENDMPD %s, %s, K1, %[2]s", g.k("upBits"), g.vec(dN))
	} else {
		g.p("VCMPPD $%d, %s, %s, %s", less, g.k("smallest"), g.vec(u), g.vec(dMask))
		g.p("VBLENDVPD %s, %s, %s, %s", g.vec(dMask), g.vec(dT), g.vec(u), g.vec(dR))
		g.p("VBLENDVPD %s, %s, %s, %[3]s", g.vec(dMask), g.k("upBits"), g.vec(dN))
	}
	g.op("VPADDQ", dT, dR, "mantissa")
	g.shift("VPSRLQ", 52, dT)
	g.bit("OR", dP, dT, "exponentBits")
	g.op("VSUBPD", dP, dP, "exponent")
	g.op("VSUBPD", dN, dP, dN) // k
	g.shift("VPSLLQ", 52, dT)
	g.op("VPSUBQ", dR, dR, dT)
	g.op("VPADDQ", dR, dR, "oneBits")
	g.op("VSUBPD", dF, dR, "one")
	g.op("VADDPD", dT, dF, "two")
	g.op("VDIVPD", dS, dF, dT)
	g.op("VMULPD", dZ, dS, dS)
	g.op("VMULPD", dW, dZ, dZ)
	g.load("l6", dP)
	g.horner(dP, dW, "l4", "l2")
	g.op("VMULPD", dP, dP, dW)
	g.load("l7", dT)
	g.horner(dT, dW, "l5", "l3", "l1")
	g.p("VFMADD213PD %s, %s, %s", g.vec(dP), g.vec(dZ), g.vec(dT)) // R
	g.op("VMULPD", dU, dF, dF)
	g.op("VMULPD", dU, dU, "half")
	g.op("VADDPD", dT, dT, dU)
	g.op("VMULPD", dP, dN, "ln2Low")
	g.p("VFMADD231PD %s, %s, %s", g.vec(dT), g.vec(dS), g.vec(dP))
	g.op("VSUBPD", dU, dU, dP)
	g.op("VSUBPD", dY, dF, dU)
	g.p("VFMADD231PD %s, %s, %s", g.k("ln2High"), g.vec(dN), g.vec(dY))
}

// narrow is the name of the lower half of a register, or of all of it: to clear either clears both.
func (g *doubles) narrow(i int) string { return fmt.Sprintf("Y%d", i) }

func (g *doubles) log() {
	g.logOf(dX)
	g.replace(dY, "minusInf", dX, equal, "zero")
	g.replace(dY, "nan", dX, less, "zero")
	g.replace(dY, "x", dX, notLess, "inf")
}

func (g *doubles) log1p() {
	g.op("VADDPD", dMask+1, dX, "one")
	g.logOf(dMask + 1)
	g.op("VSUBPD", dT, dMask+1, "one")
	g.op("VSUBPD", dT, dX, dT)
	g.op("VDIVPD", dT, dT, dMask+1)
	g.op("VADDPD", dY, dY, dT)
	g.bit("AND", dF, dX, "sign")
	g.bit("OR", dY, dY, dF)
	g.replace(dY, "minusInf", dX, equal, "minusOne")
	g.replace(dY, "nan", dX, less, "minusOne")
	g.replace(dY, "x", dX, notLess, "inf")
}

// sine writes the sine, or the cosine, of an argument that is not too large.
func (g *doubles) sine(cosine bool) {
	g.load("magic", dT)
	g.p("VFMADD231PD %s, %s, %s", g.k("twoOverPi"), g.vec(dX), g.vec(dT))
	g.op("VSUBPD", dN, dT, "magic")
	g.p("VFNMADD231PD %s, %s, %s", g.k("piHigh"), g.vec(dN), g.vec(dX))
	g.p("VFNMADD231PD %s, %s, %s", g.k("piLow"), g.vec(dN), g.vec(dX))
	if cosine {
		g.op("VPADDQ", dT, dT, "bit0")
	}
	g.bit("AND", dR, dX, "sign")
	g.bit("AND", dX, dX, "abs")
	g.op("VMULPD", dZ, dX, dX)
	g.load("s6", dP)
	g.horner(dP, dZ, "s5", "s4", "s3", "s2", "s1")
	g.op("VMULPD", dS, dX, dZ)
	g.p("VFMADD213PD %s, %s, %s", g.vec(dX), g.vec(dP), g.vec(dS)) // sine of |r|
	g.bit("XOR", dS, dS, dR)
	g.load("c6", dP)
	g.horner(dP, dZ, "c5", "c4", "c3", "c2", "c1")
	g.op("VMULPD", dW, dZ, dZ)
	g.op("VMULPD", dW, dW, dP)
	g.op("VMULPD", dU, dZ, "half")
	g.op("VSUBPD", dU, dU, dW)
	g.load("one", dW)
	g.op("VSUBPD", dU, dW, dU) // cosine
	if g.reg == "Z" {
		g.p("VPTESTMQ %s, %s, K1", g.k("bit0"), g.vec(dT))
		g.p("VBLENDMPD %s, %s, K1, %s", g.vec(dU), g.vec(dS), g.vec(dY))
	} else {
		g.p("VPSLLQ $63, %s, %s", g.vec(dT), g.vec(dMask))
		g.p("VBLENDVPD %s, %s, %s, %s", g.vec(dMask), g.vec(dU), g.vec(dS), g.vec(dY))
	}
	g.bit("AND", dT, dT, "bit1")
	g.shift("VPSLLQ", 62, dT)
	g.bit("XOR", dY, dY, dT)
}
