package array

import (
	"math"

	"github.com/nnopt/nnopt/internal/kernel/elementary"
)

// A blockFunc computes dst[i] from a[i] and b[i]. The slices have one length. dst may be a or b.
type blockFunc[T any] func(dst, a, b []T)

// A predicate is a blockFunc whose result is a bool.
type predicate[T any] func(dst []bool, a, b []T)

// The kernels of the operations, by the type in which they compute.
var (
	int64Kernels                   = intTable[int64]()
	float64Kernels, float32Kernels = floatTables()
)

func copyBlock[T any](dst, a, _ []T)   { copy(dst, a) }
func secondBlock[T any](dst, _, b []T) { copy(dst, b) }

// arithmetic adds the kernels that all numbers have in common.
func arithmetic[T number](t *[NumOpcodes]blockFunc[T]) {
	t[Identity], t[Second] = copyBlock[T], secondBlock[T]
	t[Add] = func(dst, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = a[i] + b[i]
		}
	}
	t[Sub] = func(dst, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = a[i] - b[i]
		}
	}
	t[Mul] = func(dst, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = a[i] * b[i]
		}
	}
	t[Neg] = func(dst, a, _ []T) {
		a = a[:len(dst)]
		for i := range dst {
			dst[i] = -a[i]
		}
	}
	t[Sqr] = func(dst, a, _ []T) {
		a = a[:len(dst)]
		for i := range dst {
			dst[i] = a[i] * a[i]
		}
	}
	ordering(t)
}

// ordering adds the kernels that compare numbers.
func ordering[T number](t *[NumOpcodes]blockFunc[T]) {
	t[Abs] = func(dst, a, _ []T) {
		a = a[:len(dst)]
		for i := range dst {
			v := a[i]
			if v <= 0 {
				v = 0 - v // 0 - (-0) is +0
			}
			dst[i] = v
		}
	}
	t[Sgn] = func(dst, a, _ []T) {
		a = a[:len(dst)]
		one := T(1)
		for i := range dst {
			v := a[i]
			switch {
			case v > 0:
				v = one
			case v < 0:
				v = -one
			case v == 0:
				v = 0 // without a sign
			}
			dst[i] = v // NaN stays
		}
	}
	t[Maximum] = func(dst, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			x, y := a[i], b[i]
			// If y is NaN, both comparisons fail and y stays. So NaN spreads from either side, and of zeros the
			// first wins.
			if x >= y || x != x {
				y = x
			}
			dst[i] = y
		}
	}
	t[Minimum] = func(dst, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			x, y := a[i], b[i]
			if x <= y || x != x {
				y = x
			}
			dst[i] = y
		}
	}
}

// intTable returns the kernels of a type of integers, whose arithmetic wraps around.
func intTable[T integer]() (t [NumOpcodes]blockFunc[T]) {
	arithmetic(&t)
	// Loops of their own: a function that is passed to a common loop is not inlined, which takes a
	// third longer.
	t[IntDiv] = func(dst, a, b []T) {
		for i := range dst {
			dst[i] = floorDiv(a[i], b[i])
		}
	}
	t[Mod] = func(dst, a, b []T) {
		for i := range dst {
			dst[i] = floorMod(a[i], b[i])
		}
	}
	t[Pow] = func(dst, a, b []T) {
		for i := range dst {
			dst[i] = intPow(a[i], b[i])
		}
	}
	t[And] = func(dst, a, b []T) {
		for i := range dst {
			dst[i] = a[i] & b[i]
		}
	}
	t[Or] = func(dst, a, b []T) {
		for i := range dst {
			dst[i] = a[i] | b[i]
		}
	}
	t[Xor] = func(dst, a, b []T) {
		for i := range dst {
			dst[i] = a[i] ^ b[i]
		}
	}
	t[Invert] = func(dst, a, _ []T) {
		for i := range dst {
			dst[i] = ^a[i]
		}
	}
	return t
}

// truthTable computes bools as the numbers 0 and 1.
func truthTable() *[NumOpcodes]blockFunc[uint8] {
	t := intTable[uint8]()
	t[Invert] = func(dst, a, _ []uint8) {
		for i := range dst {
			dst[i] = a[i] ^ 1
		}
	}
	return &t
}

// floorDiv returns the floor of a/b, and 0 if b is 0.
func floorDiv[T integer](a, b T) T {
	if b == 0 {
		return 0
	}
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// floorDivFloat returns the quotient that belongs to the remainder, as Python does. The floor of
// a/b may be larger by one, if a/b was rounded up to a whole number, as 1/0.1 is.
func floorDivFloat(a, b float64) float64 {
	if b == 0 {
		return a / b
	}
	r := math.Mod(a, b)
	q := (a - r) / b // whole, up to rounding
	if r != 0 && (r < 0) != (b < 0) {
		q--
	}
	if q == 0 {
		return math.Copysign(0, a/b)
	}
	return math.Round(q)
}

func floorMod[T integer](a, b T) T {
	if b == 0 {
		return 0
	}
	r := a % b
	if r != 0 && (r < 0) != (b < 0) {
		r += b
	}
	return r
}

// floorModFloat returns the remainder with the sign of b, also where it is zero, as Python does.
func floorModFloat(a, b float64) float64 {
	r := math.Mod(a, b)
	switch {
	case r == 0:
		return math.Copysign(r, b)
	case (r < 0) != (b < 0):
		r += b
	}
	return r
}

// intPow returns a to the power of b by repeated squaring. It truncates negative powers.
func intPow[T integer](a, b T) T {
	if b < 0 {
		switch {
		case a == 1, a+1 == 0 && b%2 == 0:
			return 1
		case a+1 == 0: // -1, and an unsigned b is not negative
			return a
		}
		return 0
	}
	p := T(1)
	for ; b > 0; b >>= 1 {
		if b&1 != 0 {
			p *= a
		}
		a *= a
	}
	return p
}

func floatTables() (d [NumOpcodes]blockFunc[float64], f [NumOpcodes]blockFunc[float32]) {
	d, f = floatTable[float64](), floatTable[float32]()
	useVectors(&d, &f)
	return d, f
}

func floatTable[T float]() (t [NumOpcodes]blockFunc[T]) {
	arithmetic(&t)
	t[TrueDiv] = func(dst, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = a[i] / b[i]
		}
	}
	unary := func(f func(float64) float64) blockFunc[T] {
		return func(dst, a, _ []T) {
			a = a[:len(dst)]
			for i := range dst {
				dst[i] = T(f(float64(a[i])))
			}
		}
	}
	binary := func(f func(a, b float64) float64) blockFunc[T] {
		return func(dst, a, b []T) {
			a, b = a[:len(dst)], b[:len(dst)]
			for i := range dst {
				dst[i] = T(f(float64(a[i]), float64(b[i])))
			}
		}
	}
	for o, f := range map[Opcode]func(float64) float64{
		Exp2: elementary.Exp2, Log2: elementary.Log2, Log10: elementary.Log10, Erf: elementary.Erf, Erfc: elementary.Erfc,
		Tan: elementary.Tan, Arcsin: elementary.Asin, Arccos: elementary.Acos, Arctan: elementary.Atan,
		Sinh: elementary.Sinh, Cosh: elementary.Cosh, Arcsinh: elementary.Asinh, Arccosh: elementary.Acosh, Arctanh: elementary.Atanh,
		Deg2rad: func(x float64) float64 { return x * (math.Pi / 180) }, Rad2deg: func(x float64) float64 { return x * (180 / math.Pi) },
		Gamma: elementary.Gamma, GammaLn: elementary.Lgamma, Psi: elementary.Digamma, Erfinv: elementary.Erfinv, Erfcinv: elementary.Erfcinv,
		Log1mexp: elementary.Log1mexp, Cbrt: elementary.Cbrt, Erfcx: elementary.Erfcx,
		Floor: math.Floor, Ceil: math.Ceil, Trunc: math.Trunc, Round: math.RoundToEven,
	} {
		t[o] = unary(f)
	}
	for o, f := range map[Opcode]func(a, b float64) float64{
		Pow: elementary.Pow, Arctan2: elementary.Atan2, LogAddExp: elementary.LogAddExp, Polygamma: elementary.Polygamma,
		Xlogy: elementary.Xlogy, Xlog1py: elementary.Xlog1py, Copysign: math.Copysign, Hypot: elementary.Hypot,
	} {
		t[o] = binary(f)
	}
	t[IntDiv] = binary(floorDivFloat)
	t[Mod] = binary(floorModFloat)
	return t
}

func predicateTable[T number]() *[NumOpcodes]predicate[T] {
	t := new([NumOpcodes]predicate[T])
	t[Eq] = func(dst []bool, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = a[i] == b[i]
		}
	}
	t[Neq] = func(dst []bool, a, b []T) {
		for i := range dst {
			dst[i] = a[i] != b[i]
		}
	}
	less := func(dst []bool, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = a[i] < b[i]
		}
	}
	lessOrEqual := func(dst []bool, a, b []T) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = a[i] <= b[i]
		}
	}
	t[Lt], t[Le] = less, lessOrEqual
	t[Gt] = func(dst []bool, a, b []T) { less(dst, b, a) }
	t[Ge] = func(dst []bool, a, b []T) { lessOrEqual(dst, b, a) }
	t[IsNan] = func(dst []bool, a, _ []T) {
		for i := range dst {
			dst[i] = a[i] != a[i]
		}
	}
	t[IsInf] = func(dst []bool, a, _ []T) {
		for i := range dst {
			dst[i] = a[i]-a[i] != 0 && a[i] == a[i] // inf - inf is NaN, which differs from 0
		}
	}
	return t
}

// selectBlock is Switch.
func selectBlock[T any](dst []T, cond []bool, a, b []T) {
	cond, a, b = cond[:len(dst)], a[:len(dst)], b[:len(dst)]
	for i := range dst {
		v := b[i]
		if cond[i] {
			v = a[i]
		}
		dst[i] = v
	}
}

// selectFloats is Switch of float32s. Integers need no branch, which no processor foresees for random numbers.
func selectFloats(dst []float32, cond []bool, a, b []float32) {
	cond, a, b = cond[:len(dst)], a[:len(dst)], b[:len(dst)]
	for i := range dst {
		v := math.Float32bits(b[i])
		w := math.Float32bits(a[i])
		if cond[i] {
			v = w
		}
		dst[i] = math.Float32frombits(v)
	}
}
