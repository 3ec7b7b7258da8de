package onnxpass

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
)

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
