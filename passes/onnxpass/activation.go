package onnxpass

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// activationFunctions are about functions of elements and the numbers in them.
var activationFunctions = []pattern.Function{
	// Many runtimes have some functions of elements for this type only.
	pattern.NewGuardOfEach("float32(x)", 1, "the elements of x are floats of 32 bits", func(v *fgraph.Variable) bool { return ir.TypeOf(v).Elem() == onnx.Float }),
	pattern.NewGuardOfPairs("number(x, c)", 1, "c is a constant of one element, which leaves the shape of x as it is", isNumberFor),
	pattern.NewGuardOfEach("zero(c)", 1, "all elements of the constant c are 0", func(v *fgraph.Variable) bool { return isNumber(v, 0) }),
	pattern.NewGuardOfEach("one(c)", 1, "all elements of the constant c are 1", func(v *fgraph.Variable) bool { return isNumber(v, 1) }),
	pattern.NewGuardOfEach("unit(c)", 1, "the numbers of the constant c are above 0 and at most 1", func(v *fgraph.Variable) bool {
		return all(v, func(x float64) bool { return x > 0 && x <= 1 })
	}),
	pattern.NewGuardOfPairs("broadcast(x, s)", 1, "s is broadcast to the shape of x, which remains", func(x, s *fgraph.Variable) bool { return broadcastTo(s, x) }),
	pattern.NewGuardOfPairs("inverse(c, r)", 1, "the numbers c and r are the reciprocals of each other, but for rounding", func(c, r *fgraph.Variable) bool {
		x, ok := ir.NumberOf(c)
		y, too := ir.NumberOf(r)
		return ok && too && near(float64(x*y), 1)
	}),
	attributesFunction("alpha(a)", "the number a as the attribute alpha", func(a pattern.Args, _ attributeList) attributeList {
		return attributeList{ir.Float("alpha", numberAt(a, 0))}
	}),
	attributesFunction("line(a, b)", "the attributes of the HardSigmoid clip(a*x + b, 0, 1)", func(a pattern.Args, _ attributeList) attributeList {
		return line(float64(numberAt(a, 0)), float64(numberAt(a, 1)))
	}),
	attributesFunction("line_times(b, a)", "the attributes of the HardSigmoid clip((x + b)*a, 0, 1)", func(a pattern.Args, _ attributeList) attributeList {
		return line(float64(numberAt(a, 1)), float64(numberAt(a, 0))*float64(numberAt(a, 1)))
	}),
	attributesFunction("line_over(b, c)", "the attributes of the HardSigmoid clip((x + b)/c, 0, 1)", func(a pattern.Args, _ attributeList) attributeList {
		return line(1/float64(numberAt(a, 1)), float64(numberAt(a, 0))/float64(numberAt(a, 1)))
	}),
	attributesFunction("line_inverse(c, b)", "the attributes of the HardSigmoid clip(x/c + b, 0, 1)", func(a pattern.Args, _ attributeList) attributeList {
		return line(1/float64(numberAt(a, 0)), float64(numberAt(a, 1)))
	}),
	attributeOf("(slope_of h)", "the factor of the HardSigmoid h", "alpha", 0.2),
	attributeOf("(middle_of h)", "the term of the HardSigmoid h", "beta", 0.5),
	attributesFunction("selu({a}, g)", "the attributes of the Selu that an Elu with the factor g is", func(a pattern.Args, list attributeList) attributeList {
		alpha := (&ir.Op{Attributes: list}).Float("alpha", 1)
		return attributeList{ir.Float("alpha", alpha), ir.Float("gamma", numberAt(a, 0))}
	}),
}

// attributeOf returns a function that makes a constant of an attribute of an op.
func attributeOf(usage, doc, name string, otherwise float32) pattern.Function {
	return pattern.NewBuilder(usage, 2, doc, func(a pattern.Args) (*fgraph.Variable, error) {
		return ir.Filled(float64(opOf(a.Vars[0]).Float(name, otherwise)), ir.TypeOf(a.Vars[0]).Elem())
	})
}

// near reports whether x equals y up to two millionths: a model has numbers as float32s, and sometimes with
// a few digits only.
func near(x, y float64) bool { return math.Abs(x-y) <= 2e-6*math.Abs(y) }

func isNumber(c *fgraph.Variable, n float64) bool {
	f, ok := ir.NumberOf(c)
	return ok && f == n
}

// isNumberFor reports whether c is a constant of one element that x can be combined with.
func isNumberFor(x, c *fgraph.Variable) bool {
	v := ir.ValueOf(c)
	if v == nil || v.Len() != 1 || ir.TypeOf(c).Elem() != ir.TypeOf(x).Elem() {
		return false
	}
	rank := ir.TypeOf(c).Rank()
	// With more dimensions than x it would give the result some.
	return rank == 0 || rank <= ir.TypeOf(x).Rank()
}

func numberAt(a pattern.Args, k int) float32 {
	f, _ := ir.NumberOf(a.Vars[k])
	return float32(f)
}

func line(alpha, beta float64) attributeList {
	return attributeList{ir.Float("alpha", float32(alpha)), ir.Float("beta", float32(beta))}
}

// mergeBounds merges bounds of elements.
func mergeBounds(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	outer, ok := boundsOf(a)
	if !ok || !usedOnce(outer.of) || outer.of.Owner() == nil {
		return c.Miss("it has no bounds that are known, or what it bounds has another use"), nil
	}
	inner, ok := boundsOf(outer.of.Owner())
	if !ok {
		return c.Miss("what it bounds has no bounds that are known"), nil
	}
	operators := ir.SourceOf(c.Graph()).Operators
	v, err := bounds{inner.of, outer.apply(inner.low), outer.apply(inner.high)}.make(operators)
	if err != nil {
		return rewrite.Result{}, err
	}
	return rewrite.Replace(conform(a.Out(), v)), nil
}

// Bounds are what Relu, Clip, Min and Max with a number do: min(max(x, low), high).
type bounds struct {
	of        *fgraph.Variable
	low, high float64
}

func (b bounds) apply(x float64) float64 { return math.Min(math.Max(x, b.low), b.high) }

// boundsOf returns the bounds that an apply is, for floats of 32 bits, whose bounds all versions of
// ONNX can write.
func boundsOf(a *fgraph.Apply) (bounds, bool) {
	in := a.Inputs()
	b := bounds{low: math.Inf(-1), high: math.Inf(1)}
	if len(a.Outputs()) != 1 || len(in) == 0 || ir.TypeOf(a.Out()).Elem() != onnx.Float {
		return b, false
	}
	b.of = in[0]
	switch v := a.Out(); {
	case isOp(v, "Relu"):
		b.low = 0
		return b, true
	case isOp(v, "Clip"):
		ok := true
		if len(in) > 1 && !ir.IsOmitted(in[1]) {
			b.low, ok = boundAt(in[0], in[1])
		}
		if ok && len(in) > 2 && !ir.IsOmitted(in[2]) {
			b.high, ok = boundAt(in[0], in[2])
		}
		return b, ok
	case isOp(v, "Max", "Min") && len(in) == 2:
		k := slices.IndexFunc(in, isConstant)
		if k < 0 {
			return b, false
		}
		b.of = in[1-k]
		x, ok := boundAt(b.of, in[k])
		if isOp(v, "Max") {
			b.low = x
		} else {
			b.high = x
		}
		return b, ok
	}
	return b, false
}

func boundAt(x, c *fgraph.Variable) (float64, bool) {
	f, ok := ir.NumberOf(c)
	return f, ok && f == f && isNumberFor(x, c)
}

// make returns a value with the bounds.
func (b bounds) make(operators *ir.Operators) (*fgraph.Variable, error) {
	below, above := !math.IsInf(b.low, -1), !math.IsInf(b.high, 1) // whether there is a bound there
	return operators.Build(func(d *ir.Builder) *fgraph.Variable {
		var low, high any // nil for one that is left out
		switch {
		case !below && !above:
			return d.Do("Identity", b.of)
		case b.low == 0 && !above:
			return d.Do("Relu", b.of)
		}
		if below {
			low = b.low
		}
		if above {
			high = b.high
		}
		return d.Do("Clip", b.of, low, high)
	})
}

// A polynomial has the factor of x to the power of k at k.
type polynomial []float64

// maxDegree bounds polynomials.
const maxDegree = 3

// isPolynomial reports whether t is a polynomial of x, however it is written.
func isPolynomial(t, x *fgraph.Variable, want polynomial) bool {
	got, ok := polynomialOf(t, x)
	if !ok {
		return false
	}
	for k := range max(len(got), len(want)) {
		p, q := got.at(k), want.at(k)
		// Numbers in models are given with as few as four digits: 0.7978, 1.4142.
		if math.Abs(p-q) > 1e-4*math.Abs(q) {
			return false
		}
	}
	return true
}

func (p polynomial) at(k int) float64 {
	if k < len(p) {
		return p[k]
	}
	return 0
}

// polynomialOf returns the polynomial of x that t is.
func polynomialOf(t, x *fgraph.Variable) (polynomial, bool) {
	known := map[*fgraph.Variable]polynomial{x: {0, 1}}
	order, ok := between(t, x)
	if !ok {
		return nil, false
	}
	operand := func(v *fgraph.Variable) (polynomial, bool) {
		if p, ok := known[v]; ok {
			return p, true
		}
		f, ok := ir.NumberOf(v)
		return polynomial{f}, ok && isNumberFor(x, v)
	}
	for _, a := range order {
		in := a.Inputs()
		p, ok := operand(in[0])
		q, too := polynomial{0}, true
		if len(in) == 2 {
			q, too = operandOf(a, 1, operand)
		}
		if !ok || !too || len(in) > 2 {
			return nil, false
		}
		var r polynomial
		switch v := a.Out(); {
		case isOp(v, "Add"):
			r = p.plus(q, 1)
		case isOp(v, "Sub"):
			r = p.plus(q, -1)
		case isOp(v, "Neg"):
			r = p.times(polynomial{-1})
		case isOp(v, "Mul"):
			r = p.times(q)
		case isOp(v, "Div") && len(q) == 1 && q[0] != 0:
			r = p.times(polynomial{1 / q[0]})
		case isOp(v, "Pow") && len(q) == 1 && (q[0] == 2 || q[0] == 3):
			if r = p.times(p); q[0] == 3 {
				r = r.times(p)
			}
		default:
			return nil, false
		}
		if len(r) > maxDegree+1 {
			return nil, false
		}
		known[a.Out()] = r
	}
	p, ok := known[t]
	return p, ok
}

// operandOf returns an operand. The exponent of a Pow may have another type.
func operandOf(a *fgraph.Apply, k int, operand func(*fgraph.Variable) (polynomial, bool)) (polynomial, bool) {
	v := a.Inputs()[k]
	if isOp(a.Out(), "Pow") {
		f, ok := ir.NumberOf(v)
		return polynomial{f}, ok && ir.ValueOf(v).Len() == 1
	}
	return operand(v)
}

func (p polynomial) plus(q polynomial, factor float64) polynomial {
	r := make(polynomial, max(len(p), len(q)))
	for k := range r {
		r[k] = p.at(k) + float64(factor*q.at(k))
	}
	return r
}

func (p polynomial) times(q polynomial) polynomial {
	r := make(polynomial, len(p)+len(q)-1)
	for i, f := range p {
		for k, g := range q {
			r[i+k] += float64(f * g)
		}
	}
	return r
}

// between returns the applies that compute t of x and constants, inputs first. ok is false if t needs
// something else, or many.
func between(t, x *fgraph.Variable) (order []*fgraph.Apply, ok bool) {
	order, ok = expression(t, maxParts, func(v *fgraph.Variable) bool { return v == x })
	for _, a := range order {
		ok = ok && len(a.Outputs()) == 1 && !slices.ContainsFunc(a.Inputs(), func(v *fgraph.Variable) bool {
			return v != x && v.Owner() == nil && !v.IsConstant()
		})
	}
	return order, ok && (t == x || t.Owner() != nil || t.IsConstant())
}
