package array

// Work returns how long an operation on n arguments takes for an element once they are in
// registers, in picoseconds, as measured on one core of an AMD EPYC (Zen 5) on 2026-11-22. t is the
// type in which it computes. It serves to compare expressions, not to predict times.
func (o Opcode) Work(t DType, n int) int {
	work := scalarWork
	switch o {
	case Identity, Cast, Second:
		return castWork
	case Add, Mul, Sub, TrueDiv, Neg, Inv, Abs, Sqr, Sqrt:
		if t.IsFloat() {
			work = vectorWork
		}
	case Exp, Log, Tanh, Sigmoid, Exp2, Log2, Softplus, Expm1, Log1p:
		work = 800
	case Sin, Cos:
		work = 1200
	case Tan, Arcsin, Arccos, Arctan, Arctan2, Sinh, Cosh, Arcsinh, Arccosh, Arctanh, LogAddExp, Log10, Log1mexp, Cbrt, Hypot:
		work = 12000
	case Erf, Erfc, Erfcx, Erfinv, Erfcinv, Xlogy, Xlog1py:
		work = 25000
	case Pow:
		work = 28000
	case Gamma, GammaLn, Psi, Polygamma:
		work = 40000
	}
	if t.IsHalf() {
		work += halfWork
	}
	if o == Add || o == Mul {
		return work * max(n-1, 1)
	}
	return work
}

const (
	castWork   = 50
	halfWork   = 3000 // of half floats, converting forth and back; measured on 2026-11-26
	vectorWork = 100
	scalarWork = 4000 // what has no kernel in vector instructions
)

// Work returns how long a program takes for an element, see [Opcode.Work].
func (p *Program) Work() int {
	sum := 0
	for _, in := range p.code {
		sum += in.op.Work(in.typ, int(in.numArgs))
	}
	return sum
}
