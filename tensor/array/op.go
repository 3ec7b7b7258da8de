package array

import "strconv"

// An Opcode is an element-wise operation: a row of the table below. Names and meanings are Theano's.
type Opcode uint8

// The element-wise operations.
const (
	Identity Opcode = iota // x
	Cast                   // x in another type of elements
	Second                 // y, broadcast to the shape of x: what Theano also calls fill
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
	NumOpcodes
)

// A typing says of which type an operation computes, and of which type its result is.
type typing uint8

const (
	same    typing = iota // as its arguments
	second                // as its second argument
	choice                // as its second and third argument; the first is a bool
	arith                 // as its arguments, but bools count as integers
	real_                 // as its arguments, but bool and int64 count as float64
	compare               // as its arguments; the result is a bool
	test                  // as real_; the result is a bool
	logic                 // as its arguments, which are no floats
)

// MaxArgs is the largest number of arguments of the operations that take a fixed number.
const MaxArgs = 3

type opInfo struct {
	name     string
	args     int8 // -1: one or more
	typing   typing
	commutes bool
}

var ops = [NumOpcodes]opInfo{
	Identity:  {"identity", 1, same, false},
	Cast:      {"cast", 1, same, false},
	Second:    {"second", 2, second, false},
	Switch:    {"switch", 3, choice, false},
	Add:       {"add", -1, arith, true},
	Mul:       {"mul", -1, arith, true},
	Sub:       {"sub", 2, arith, false},
	TrueDiv:   {"true_div", 2, real_, false},
	IntDiv:    {"int_div", 2, arith, false},
	Mod:       {"mod", 2, arith, false},
	Pow:       {"pow", 2, arith, false},
	Maximum:   {"maximum", 2, same, true},
	Minimum:   {"minimum", 2, same, true},
	Neg:       {"neg", 1, arith, false},
	Inv:       {"inv", 1, real_, false},
	Abs:       {"abs", 1, arith, false},
	Sgn:       {"sgn", 1, arith, false},
	Sqr:       {"sqr", 1, arith, false},
	Sqrt:      {"sqrt", 1, real_, false},
	Exp:       {"exp", 1, real_, false},
	Expm1:     {"expm1", 1, real_, false},
	Exp2:      {"exp2", 1, real_, false},
	Log:       {"log", 1, real_, false},
	Log1p:     {"log1p", 1, real_, false},
	Log2:      {"log2", 1, real_, false},
	Log10:     {"log10", 1, real_, false},
	LogAddExp: {"logaddexp", 2, real_, true},
	Sigmoid:   {"sigmoid", 1, real_, false},
	Softplus:  {"softplus", 1, real_, false},
	Erf:       {"erf", 1, real_, false},
	Erfc:      {"erfc", 1, real_, false},
	Sin:       {"sin", 1, real_, false},
	Cos:       {"cos", 1, real_, false},
	Tan:       {"tan", 1, real_, false},
	Arcsin:    {"arcsin", 1, real_, false},
	Arccos:    {"arccos", 1, real_, false},
	Arctan:    {"arctan", 1, real_, false},
	Arctan2:   {"arctan2", 2, real_, false},
	Sinh:      {"sinh", 1, real_, false},
	Cosh:      {"cosh", 1, real_, false},
	Tanh:      {"tanh", 1, real_, false},
	Arcsinh:   {"arcsinh", 1, real_, false},
	Arccosh:   {"arccosh", 1, real_, false},
	Arctanh:   {"arctanh", 1, real_, false},
	Deg2rad:   {"deg2rad", 1, real_, false},
	Rad2deg:   {"rad2deg", 1, real_, false},
	Floor:     {"floor", 1, real_, false},
	Ceil:      {"ceil", 1, real_, false},
	Trunc:     {"trunc", 1, real_, false},
	Round:     {"round", 1, real_, false},
	Eq:        {"eq", 2, compare, true},
	Neq:       {"neq", 2, compare, true},
	Lt:        {"lt", 2, compare, false},
	Le:        {"le", 2, compare, false},
	Gt:        {"gt", 2, compare, false},
	Ge:        {"ge", 2, compare, false},
	IsNan:     {"isnan", 1, test, false},
	IsInf:     {"isinf", 1, test, false},
	And:       {"and", 2, logic, true},
	Or:        {"or", 2, logic, true},
	Xor:       {"xor", 2, logic, true},
	Invert:    {"invert", 1, logic, false},
}

// String returns the name of the operation.
func (o Opcode) String() string {
	if int(o) >= len(ops) {
		return "Op(" + strconv.Itoa(int(o)) + ")"
	}
	return ops[o].name
}

// NumArgs returns how many arguments the operation takes, -1 for one or more.
func (o Opcode) NumArgs() int { return int(ops[o].args) }

// Commutes reports whether the order of the arguments is irrelevant.
func (o Opcode) Commutes() bool { return ops[o].commutes }

// ParseOpcode returns the operation of that name and whether there is one.
func ParseOpcode(name string) (Opcode, bool) {
	for o := range NumOpcodes {
		if ops[o].name == name {
			return o, true
		}
	}
	return 0, false
}

// Types returns of which type the operation computes on arguments of some types, and of which type the result is. It reports false
// if it is not defined for them. A Cast is not known by its arguments: both types are theirs.
func (o Opcode) Types(args ...DType) (compute, result DType, ok bool) {
	if len(args) == 0 {
		return 0, 0, false
	}
	switch ops[o].typing {
	case second:
		return args[1], args[1], true
	case choice:
		d := upcast(args[1], args[2])
		return d, d, true
	}
	d := Upcast(args[0], args[1:]...)
	switch ops[o].typing {
	case arith:
		d = max(d, Int64)
	case real_:
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
