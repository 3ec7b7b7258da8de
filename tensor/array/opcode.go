package array

import (
	"fmt"
	"strings"
)

// An Opcode is an element-wise operation. Names and meanings are Theano's.
type Opcode uint8

// The element-wise operations.
const (
	Identity Opcode = iota // x
	Cast                   // x with another element type
	Second                 // y, broadcast to the shape of x; Theano also calls it fill
	Switch                 // y where x, else z
	Add
	Mul
	Sub
	TrueDiv
	IntDiv // rounded towards minus infinity, as in Python; 0 for integers divided by 0
	Mod    // with the sign of the divisor, as in Python
	Pow
	Maximum // NaN if one of them is
	Minimum
	Neg
	Inv // 1/x
	Abs
	Sgn // -1, 0 or 1; NaN of NaN
	Sqr
	Sqrt
	Exp
	Expm1 // exp(x) - 1
	Exp2
	Log
	Log1p // log(1 + x)
	Log2
	Log10
	LogAddExp // log(exp(x) + exp(y))
	Sigmoid   // 1/(1 + exp(-x))
	Softplus  // log(1 + exp(x))
	Erf
	Erfc // 1 - erf(x)
	Sin
	Cos
	Tan
	Arcsin
	Arccos
	Arctan
	Arctan2
	Sinh
	Cosh
	Tanh
	Arcsinh
	Arccosh
	Arctanh
	Deg2rad
	Rad2deg
	Floor
	Ceil
	Trunc
	Round // halves to even
	Eq
	Neq
	Lt
	Le
	Gt
	Ge
	IsNan
	IsInf
	And
	Or
	Xor
	Invert
	Gamma
	GammaLn    // log(|gamma(x)|)
	Psi        // the derivative of log(gamma(x)), also called digamma
	Erfinv     // the number whose erf is x
	Erfcinv    // the number whose erfc is x
	Log1mexp   // log(1 - exp(x))
	Cbrt       // the cube root
	Erfcx      // exp(x**2)*erfc(x)
	Polygamma  // the derivative of psi(y) of order x, an integer
	Xlogy      // x*log(y), and 0 where x is 0
	Xlog1py    // x*log(1 + y), and 0 where x is 0
	Copysign   // |x| with the sign of y
	Hypot      // sqrt(x**2 + y**2)
	NumOpcodes // how many there are
)

// A typing says in which type an operation computes, and which type its result has.
type typing uint8

const (
	same     typing = iota // as its arguments
	second                 // as its second argument
	choice                 // as its second and third argument; the first is a bool
	arith                  // as its arguments, but bools count as int64
	real_                  // as its arguments, but bools and integers count as floats: see DType.real
	quotient               // as its arguments, but bools and integers count as float64
	compare                // as its arguments; the result is a bool
	test                   // as quotient; the result is a bool
	logic                  // as its arguments, which must not be floats
)

// maxArgs is the largest number of arguments of the operations that take a fixed number.
const maxArgs = 3

type opInfo struct {
	name     string
	args     int8 // -1: one or more
	typing   typing
	commutes bool
}

var ops = func() (table [NumOpcodes]opInfo) {
	for _, family := range []struct {
		first Opcode
		opInfo
	}{ // successive operations that differ only in their names
		{Identity, opInfo{"identity cast", 1, same, false}},
		{Second, opInfo{"second", 2, second, false}},
		{Switch, opInfo{"switch", 3, choice, false}},
		{Add, opInfo{"add mul", -1, arith, true}},
		{Sub, opInfo{"sub", 2, arith, false}},
		{TrueDiv, opInfo{"true_div", 2, quotient, false}},
		{IntDiv, opInfo{"int_div mod pow", 2, arith, false}},
		{Maximum, opInfo{"maximum minimum", 2, same, true}},
		{Neg, opInfo{"neg", 1, arith, false}},
		{Inv, opInfo{"inv", 1, quotient, false}},
		{Abs, opInfo{"abs sgn sqr", 1, arith, false}},
		{Sqrt, opInfo{"sqrt exp expm1 exp2 log log1p log2 log10", 1, real_, false}},
		{LogAddExp, opInfo{"logaddexp", 2, real_, true}},
		{Sigmoid, opInfo{"sigmoid softplus erf erfc sin cos tan arcsin arccos arctan", 1, real_, false}},
		{Arctan2, opInfo{"arctan2", 2, real_, false}},
		{Sinh, opInfo{"sinh cosh tanh arcsinh arccosh arctanh deg2rad rad2deg floor ceil trunc round", 1, real_, false}},
		{Eq, opInfo{"eq neq", 2, compare, true}},
		{Lt, opInfo{"lt le gt ge", 2, compare, false}},
		{IsNan, opInfo{"isnan isinf", 1, test, false}},
		{And, opInfo{"and or xor", 2, logic, true}},
		{Invert, opInfo{"invert", 1, logic, false}},
		{Gamma, opInfo{"gamma gammaln psi erfinv erfcinv log1mexp cbrt erfcx", 1, real_, false}},
		{Polygamma, opInfo{"polygamma xlogy xlog1py copysign", 2, real_, false}},
		{Hypot, opInfo{"hypot", 2, real_, true}},
	} {
		for i, name := range strings.Fields(family.name) {
			table[int(family.first)+i] = opInfo{name, family.args, family.typing, family.commutes}
		}
	}
	return table
}()

// String returns the name of the operation.
func (o Opcode) String() string {
	if int(o) >= len(ops) {
		return fmt.Sprintf("Op(%d)", uint8(o))
	}
	return ops[o].name
}

// NumArgs returns the number of arguments, or -1 for one or more.
func (o Opcode) NumArgs() int { return int(ops[o].args) }

// Commutes reports whether the order of the arguments is irrelevant.
func (o Opcode) Commutes() bool { return ops[o].commutes }

// ParseOpcode returns the operation with the given name, and whether there is one.
func ParseOpcode(name string) (Opcode, bool) {
	for o := range NumOpcodes {
		if ops[o].name == name {
			return o, true
		}
	}
	return 0, false
}

// Types returns the type in which the operation computes on arguments of the given types, and the
// type of its result. It reports false if the operation is not defined for them. For Cast, whose
// result does not depend on its argument, both are the type of the argument.
func (o Opcode) Types(args ...DType) (compute, result DType, ok bool) {
	if len(args) == 0 {
		return 0, 0, false
	}
	switch ops[o].typing {
	case second:
		return args[1], args[1], true
	case choice:
		d := Upcast(args[1], args[2])
		return d, d, true
	}
	d := Upcast(args[0], args[1:]...)
	switch ops[o].typing {
	case arith:
		d = d.Number()
	case real_:
		d = d.real()
	case quotient:
		d = d.Float()
	case compare:
		return d, Bool, true
	case test:
		return d.Float(), Bool, true
	case logic:
		return d, d, !d.IsFloat()
	}
	return d, d, true
}

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
	halfWork   = 160 // of half floats, converting forth and back; of float16s on a Zen 4, 2026-12-01
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
