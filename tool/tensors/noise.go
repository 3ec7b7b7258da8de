package tensors

import (
	"math"
	"math/rand/v2"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel/elementary"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// epsilon returns the distance from 1 to the next number of a type of floats. Integers count as
// float64s.
func epsilon(d array.DType) float64 {
	switch {
	case !d.IsFloat():
	case d == array.Float16:
		return 0x1p-10
	case d == array.BFloat16:
		return 0x1p-7
	case d.Size() == 4:
		return 0x1p-23
	}
	return 0x1p-52
}

// limits returns the largest number of a type of floats, and the smallest one that is not zero.
// Integers count as float64s.
func limits(d array.DType) (largest, smallest float64) {
	switch {
	case d == array.Float16:
		smallest = 0x1p-24
	case d == array.BFloat16:
		smallest = 0x1p-133
	case d == array.Float32:
		smallest = math.SmallestNonzeroFloat32
	default:
		smallest = math.SmallestNonzeroFloat64
	}
	return d.Largest(), smallest
}

// A noise moves every result by an error that rounding can have.
//
// Arithmetic of higher precision would tell the exact value, but not how far from it a side may be:
// sums that cancel lose any number of digits, for which no rule is to blame. Moving every result
// measures that for all ops alike, elementary functions included, which package math/big lacks.
type noise struct {
	*rand.Rand
	run int
}

func newNoise(run int) *noise { return &noise{rand.New(rand.NewPCG(uint64(run), 1)), run} }

// saturates reports whether an infinite result that overflowed becomes the largest number: all of
// them in some runs, none in others.
func (n *noise) saturates() bool {
	switch n.run % 4 {
	case 0:
		return true
	case 1:
		return false
	}
	return n.IntN(2) == 0
}

// ulps returns how many units in the last place a result is off.
func (n *noise) ulps() float64 { return float64(n.IntN(5) - 2) }

// An opKind says how the results of an op can be inexact.
type opKind struct {
	exact      bool // rounds nothing
	overflows  bool // makes infinities of numbers, other than by division by zero
	underflows bool // makes zeros of other numbers
	vanishes   bool // makes zeros even if an argument is zero
	divides    bool // makes infinities of zeros
	adds       bool // adds up more than two terms, which are larger than the result where they cancel
	multiplies bool // multiplies more than two factors, or adds up products
	arithmetic bool // an element-wise sum, product, quotient or power
	power      bool // magnifies rounding by the size of the logarithm
	odd        bool // a power whose exponent is rounded: where that is large, it may be even or odd
	periodic   bool // of an angle that is rounded: where that is large, it may be any
}

// kindOf classifies an op. What is unknown rounds.
func kindOf(op tensor.Op, a *fgraph.Apply) opKind {
	switch op := op.(type) {
	case tensor.Elemwise:
		return elemwiseKind(op, a)
	case tensor.Reduce:
		switch op.Op {
		case array.Max, array.Min, array.All, array.Any:
			return opKind{exact: true}
		case array.LogSumExp:
			return opKind{}
		}
		return opKind{overflows: true, underflows: op.Op == array.Prod, adds: op.Op == array.Sum, multiplies: op.Op == array.Prod}
	case tensor.AllocOp, tensor.JoinOp, tensor.MakeVectorOp, tensor.AdvancedSubtensorOp, tensor.ArgmaxOp:
		return opKind{exact: true}
	case tensor.SoftmaxOp:
		return opKind{underflows: true, vanishes: true}
	case tensor.CrossentropyCategorical1HotOp:
		return opKind{} // a logarithm
	}
	if v, ok := op.(fgraph.Viewer); ok && len(v.ViewMap()) > 0 {
		return opKind{exact: true}
	}
	return opKind{overflows: true, underflows: true, adds: true, multiplies: true}
}

func elemwiseKind(op tensor.Elemwise, a *fgraph.Apply) opKind {
	switch op.Op {
	case array.Identity, array.Second, array.Switch, array.Neg, array.Abs, array.Sgn, array.Maximum, array.Minimum,
		array.Floor, array.Ceil, array.Trunc, array.Round:
		return opKind{exact: true}
	case array.Cast:
		narrows := op.To.IsFloat() && !op.To.Holds(tensor.TypeOf(a.Inputs()[0]).DType())
		return opKind{exact: !narrows, overflows: true, underflows: true}
	case array.Expm1, array.Sinh:
		return opKind{overflows: true, underflows: true} // the smallest number becomes zero
	case array.Add, array.Sub, array.Cosh, array.Rad2deg:
		return opKind{overflows: true, adds: len(a.Inputs()) > 2, arithmetic: op.Op == array.Add || op.Op == array.Sub}
	case array.Mul, array.Sqr:
		return opKind{overflows: true, underflows: true, multiplies: len(a.Inputs()) > 2, arithmetic: true}
	case array.TrueDiv, array.IntDiv, array.Inv:
		return opKind{overflows: true, underflows: true, divides: true, arithmetic: true}
	case array.Pow:
		return opKind{overflows: true, underflows: true, divides: true, arithmetic: true, power: true, odd: inexact(a.Inputs()[1])}
	case array.Mod, array.Sqrt:
		return opKind{arithmetic: true}
	case array.Exp, array.Exp2:
		return opKind{overflows: true, underflows: true, vanishes: true}
	case array.Sin, array.Cos, array.Tan:
		return opKind{periodic: inexact(a.Inputs()[0])}
	case array.Erfc, array.Sigmoid, array.Softplus:
		return opKind{underflows: true, vanishes: true}
	}
	return opKind{exact: !outType(a).IsFloat()}
}

// inexact reports whether something rounds on the way to v, up to the last op that has several
// inputs.
func inexact(v *variable) bool {
	for a := v.Owner(); a != nil; a = a.Inputs()[0].Owner() {
		op, ok := a.Op().(tensor.Op)
		if !ok || !kindOf(op, a).exact {
			return true
		}
		if len(a.Inputs()) != 1 {
			return false
		}
	}
	return false
}

// disturb moves the results of a step by an error that rounding can have: of the type of the
// result or, if that is smaller, of a part least of it.
func (s *step) disturb(values []*array.Array, noise *noise, least float64) {
	ins := s.Arguments(values)
	arguments := s.argumentsOf(ins)
	e := s.deviations(ins, noise)
	for _, k := range s.Out {
		if !values[k].DType().IsFloat() {
			continue
		}
		a := values[k].Clone()
		values[k] = a
		e.of(a.DType(), least)
		for i := range a.Len() {
			// Small fractions with few bits have exact sums and products. Without this,
			// floor(x + 1) of an integer x would be off by one in every second run, and explain
			// anything.
			if is := arguments(a, i); !s.kind.arithmetic || !exactAt(ins, a, i) {
				a.SetFloat(i, e.ofParts(e.ofElement(a.Float(i), is), a, i))
			}
		}
	}
}

// deviations are the ways in which an op with rounding can be off, each with the
// condition that it can happen here. Arithmetic of higher precision would be one principle in
// its place: compute both sides exactly, and if they agree there, what differs is rounding. But
// then every op of the tensor language needs a second implementation, with logarithms, gamma
// and Bessel functions, products of matrices and ops of other packages among them; and steps
// such as floor or a comparison magnify an error that the exact sides do not have. Perturbing
// the results of the kernels needs only the few properties in opKind, and an op that is unknown
// has them all.
type deviations struct {
	kind           opKind
	ins            []*array.Array
	noise          *noise
	adds           bool
	terms, product float64 // the largest term and product

	// Of the type of a result: the relative error, and the largest and the smallest normal number.
	dtype                  array.DType
	eps, largest, smallest float64
}

// deviations returns those of a step with inputs.
func (s *step) deviations(ins []*array.Array, noise *noise) *deviations {
	e := &deviations{kind: s.kind, ins: ins, noise: noise, adds: s.kind.adds, product: 1}
	for _, a := range ins {
		m := magnitude(a)
		e.terms = max(e.terms, m)
		if _, reduces := s.Apply.Op().(tensor.Reduce); !reduces {
			e.product = float64(e.product * max(m, 1))
		} else if s.kind.multiplies {
			e.product = float64(e.product * growth(a))
		}
		e.adds = e.adds || isInteger(a.DType()) && m >= 1<<53 // its conversion is off
	}
	if s.kind.multiplies {
		e.terms = min(e.product, math.MaxFloat64)
	}
	return e
}

// of sets the type of the result.
func (e *deviations) of(t array.DType, least float64) {
	e.dtype, e.eps = t, epsilon(t)
	if least > 0 {
		e.eps = min(e.eps, least)
	}
	e.largest, e.smallest = limits(t)
}

// ofElement moves a result by the error of its own size: too large, too small, or rounded.
func (e *deviations) ofElement(v float64, is arguments) float64 {
	switch {
	// A number beyond the largest one may have been any large number in another order of
	// operations. A pole, 1/0, is no overflow.
	case math.IsInf(v, 0) && e.kind.overflows && (is.finite && !(is.zero && e.kind.divides) || !is.nan && e.kind.adds && e.terms > e.largest/1e5) && e.noise.saturates():
		v = math.Copysign(e.largest, v)
		if (e.kind.multiplies || e.kind.adds) && e.noise.IntN(2) == 0 {
			v = 0 // a part overflowed, and a small factor or the opposite term came later
		}
	case v != v && is.finite && (e.kind.multiplies || e.kind.adds && e.terms > e.largest/1e5) && e.noise.saturates():
		v = e.largest * float64(e.noise.IntN(3)-1) // what overflowed was multiplied by zero, or added to its opposite
	case v != v && !is.finite && !is.zero && !is.nan && e.kind.multiplies:
		v = math.Inf(2*e.noise.IntN(2) - 1) // what underflowed was multiplied by an infinity
	case v != v && !is.finite && !is.nan && e.kind.adds && e.terms > e.largest/1e5:
		v = math.Inf(2*e.noise.IntN(2) - 1) // what overflowed was added to an infinity
	// Below the smallest normal number the error is absolute. A zero that comes from a zero
	// argument is exact, unless the op makes zeros by underflow anyway.
	case math.Abs(v) < e.smallest/epsilon(e.dtype) && e.kind.underflows && (!is.zero || e.kind.vanishes):
		v += float64(e.smallest * e.noise.ulps())
	// The relative error of x to the y is that of y log x, which is larger by the size of
	// the logarithm of the result.
	case v-v == 0 && v != 0 && e.kind.power:
		magnified := float64(e.eps * (1 + math.Abs(elementary.Log(math.Abs(v)))))
		v += float64(v * float64(magnified*e.noise.ulps()))
	case v-v == 0:
		v += float64(v * float64(e.eps*e.noise.ulps()))
	}
	return v
}

// ofParts moves element i of a by the errors of what it is computed of, which may be larger than it.
func (e *deviations) ofParts(v float64, a *array.Array, i int) float64 {
	if e.kind.periodic && v-v == 0 && angleUnknown(e.ins[0], a, i) {
		v = float64(float64(e.noise.Int64N(1<<53))*0x1p-52) - 1
	}
	if e.kind.odd && e.noise.IntN(2) == 0 && signUnknown(e.ins, a, i) {
		v = -v
	}
	// The error of a sum is relative to its largest term. Where the terms cancel, it is all
	// that is left, and may be of any smaller size.
	if bound := float64(e.terms * e.eps); e.adds && v-v == 0 && bound > math.Abs(v) && e.noise.IntN(2) == 0 {
		v = math.Ldexp(float64(bound*(float64(e.noise.Float64())-0.5)), -e.noise.IntN(1<<11)) // nothing is left of it but the error
	} else if e.adds && v-v == 0 {
		v += float64(bound * e.noise.ulps())
	}
	if e.kind.multiplies && v-v == 0 {
		v += float64(min(float64(e.product*e.smallest), e.largest/8) * e.noise.ulps())
	}
	return v
}

// signUnknown reports whether an element of a power is one of a negative number with an exponent so
// large that the numbers around it are even.
func signUnknown(ins []*array.Array, out *array.Array, i int) bool {
	index := unravel(out.Shape(), i)
	base, exponent := elementNear(ins[0], index), elementNear(ins[1], index)
	return base >= 0 && exponent >= 0 && ins[0].Float(base) < 0 && math.Abs(ins[1].Float(exponent)) >= 1/epsilon(ins[1].DType())
}

// angleUnknown reports whether an element is a function of an angle so large that the numbers
// around it are other angles. The largest number does not count: it represents an angle that
// overflowed, which has no sine.
func angleUnknown(angles, out *array.Array, i int) bool {
	k := elementNear(angles, unravel(out.Shape(), i))
	if k < 0 {
		return false
	}
	angle := math.Abs(angles.Float(k))
	largest, _ := limits(angles.DType())
	return angle*epsilon(angles.DType()) >= 1 && angle < largest
}

// arguments is what is known of the arguments of an element: whether they are finite, and whether
// one is zero or NaN.
type arguments struct{ finite, zero, nan bool }

// argumentsOf returns what is known of the arguments of each element of a result. Those of an op
// that is not element-wise are all elements.
func (s *step) argumentsOf(ins []*array.Array) func(out *array.Array, i int) arguments {
	if _, ok := s.Apply.Op().(tensor.Elemwise); !ok {
		all := arguments{finite: true}
		for _, a := range ins {
			all.finite = all.finite && !has(a, notFinite)
			all.zero = all.zero || has(a, isNothing)
			all.nan = all.nan || has(a, isNaN)
		}
		return func(*array.Array, int) arguments { return all }
	}
	return func(out *array.Array, i int) arguments {
		is := arguments{finite: true}
		index := unravel(out.Shape(), i)
		for _, a := range ins {
			if k := elementNear(a, index); k >= 0 {
				v := a.Float(k)
				is.finite, is.zero, is.nan = is.finite && v-v == 0, is.zero || v == 0, is.nan || v != v
			}
		}
		return is
	}
}

// exactAt reports whether an element of a result of arithmetic is certainly exact: it and its
// arguments are moderate multiples of a fraction that has few bits.
func exactAt(ins []*array.Array, out *array.Array, i int) bool {
	most, parts := 1.0*(1<<20), 1024.0
	switch out.DType() {
	case array.Float16:
		most, parts = 32, 4
	case array.BFloat16:
		most, parts = 8, 2
	case array.Float32:
		most = 1 << 13
	}
	plain := func(v float64) bool { return math.Abs(v) < most && v*parts == math.Trunc(v*parts) }
	v := out.Float(i)
	if v == 0 || !plain(v) {
		return false
	}
	index := unravel(out.Shape(), i)
	for _, a := range ins {
		k := elementNear(a, index)
		if k < 0 || !plain(a.Float(k)) {
			return false
		}
	}
	return true
}

// has reports whether an element of the array has a property. Sparse arrays are asked for all of
// their elements.
func has(a *array.Array, property func(array.DType, float64) bool) bool {
	for i := range a.Len() {
		if property(a.DType(), a.Float(i)) {
			return true
		}
	}
	return false
}

// growth returns the product of the absolute values above 1 of the finite elements.
func growth(a *array.Array) float64 {
	product := 1.0
	for i := range a.Len() {
		if v := math.Abs(a.Float(i)); v-v == 0 {
			product = float64(product * max(v, 1))
		}
	}
	return product
}

// magnitude returns the largest absolute value of the finite elements.
func magnitude(a *array.Array) float64 {
	m := 0.0
	for i := range a.Len() {
		if v := math.Abs(a.Float(i)); v-v == 0 {
			m = max(m, v)
		}
	}
	return m
}

func notFinite(_ array.DType, v float64) bool { return v-v != 0 }

func isZero(d array.DType, v float64) bool { return v == 0 && d != array.Bool }

func isNaN(_ array.DType, v float64) bool { return v != v }

func isNothing(_ array.DType, v float64) bool { return v == 0 }
