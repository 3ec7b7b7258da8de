package tensorpass

import (
	"math"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// Short names for what every rule is made of.
type (
	variable = fgraph.Variable
	apply    = fgraph.Apply
	result   = rewrite.Result
)

var none = result{}

// elem returns the apply that computes v if it is of an element-wise operation, and else nil.
// In-place applies don't count.
func elem(v *variable, op array.Opcode) *apply {
	a := v.Owner()
	if a == nil {
		return nil
	}
	if e, ok := a.Op().(tensor.Elemwise); ok && e.Op == op && e.Inplace == 0 {
		return a
	}
	return nil
}

// argument returns x if v is op(x), and else nil.
func argument(v *variable, op array.Opcode) *variable {
	if a := elem(v, op); a != nil {
		return a.Inputs()[0]
	}
	return nil
}

// elemOf returns the operation of an element-wise apply. a may be nil.
func elemOf(a *apply) (array.Opcode, bool) {
	if a == nil {
		return 0, false
	}
	e, ok := a.Op().(tensor.Elemwise)
	return e.Op, ok && e.Inplace == 0
}

// owner returns the apply that computes v if its op has a Go type.
func owner[O fgraph.Op](v *variable) (a *apply, op O, ok bool) {
	if a = v.Owner(); a == nil {
		return nil, op, false
	}
	op, ok = a.Op().(O)
	return a, op, ok
}

// negated returns x if v is -x, as a negation or as a product with -1, and else nil.
func negated(v *variable) *variable {
	a := v.Owner()
	switch op, _ := elemOf(a); {
	case op == array.Neg:
		return a.Inputs()[0]
	case op == array.Mul && len(a.Inputs()) == 2 && is(a.Inputs()[0], -1) && samePattern(a.Inputs()[1], v):
		return a.Inputs()[1]
	}
	return nil
}

// factorsOf returns the factors of v if it is a product, and else v itself.
func factorsOf(v *variable) []*variable {
	if a := elem(v, array.Mul); a != nil {
		return a.Inputs()
	}
	return []*variable{v}
}

// ownFactors is factorsOf where v has a single use, and else v itself. It looks no deeper: a long
// quotient would take long.
func ownFactors(v *variable) []*variable {
	if !usedOnce(v) {
		return []*variable{v}
	}
	return factorsOf(v)
}

// onePlusExp reports whether v is 1 + exp(x).
func onePlusExp(v *variable) bool {
	a := elem(v, array.Add)
	if a == nil || len(a.Inputs()) != 2 {
		return false
	}
	for i, t := range a.Inputs() {
		if is(t, 1) && elem(a.Inputs()[1-i], array.Exp) != nil {
			return true
		}
	}
	return false
}

// usedOnce reports whether v has a single use.
func usedOnce(v *variable) bool { return len(v.Clients()) == 1 }

// onlyClient returns the apply that uses v if v has a single use and is not an output of the graph,
// and else nil.
func onlyClient(v *variable) *apply {
	if !usedOnce(v) {
		return nil
	}
	return v.Clients()[0].Apply
}

// those returns the applies of a kind of ops that satisfy a condition, all if it is nil, in the order of the
// graph, which may then change. Most graphs have no op of the kind that a pass looks for, and for these it costs nothing.
func those(g *fgraph.FunctionGraph, kind func(fgraph.Op) bool, is func(*apply) bool) []*apply {
	if !hasOp(g, kind) {
		return nil
	}
	var list []*apply
	for a := range g.Ordered() {
		if kind(a.Op()) && (is == nil || is(a)) {
			list = append(list, a)
		}
	}
	return list
}

// hasOp reports whether a graph has an op of a kind.
func hasOp(g *fgraph.FunctionGraph, kind func(fgraph.Op) bool) bool {
	for _, op := range g.Ops() {
		if kind(op) {
			return true
		}
	}
	return false
}

// isA reports whether an op has type T.
func isA[T fgraph.Op](op fgraph.Op) bool {
	_, ok := op.(T)
	return ok
}

// isElem returns the kind of an element-wise op that is not in place.
func isElem(op array.Opcode) func(fgraph.Op) bool {
	return func(o fgraph.Op) bool {
		e, ok := o.(tensor.Elemwise)
		return ok && e.Op == op && e.Inplace == 0
	}
}

// isConvolution reports whether an op is a convolution with the channels where users have them.
func isConvolution(op fgraph.Op) bool {
	return isA[tensor.ConvOp](op) || isA[tensor.ConvTransposeOp](op)
}

// isMatrixProduct reports whether an op multiplies matrices.
func isMatrixProduct(op fgraph.Op) bool {
	switch op.(type) {
	case tensor.MatmulOp, tensor.Dot22Op, tensor.DotOp:
		return true
	}
	return false
}

func typeOf(v *variable) tensor.Type  { return tensor.TypeOf(v) }
func dtypeOf(v *variable) array.DType { return tensor.TypeOf(v).DType() }
func isFloat(v *variable) bool        { return dtypeOf(v).IsFloat() }
func isInteger(v *variable) bool      { return !isFloat(v) }

// isWide reports whether no element is an integer of fewer than 64 bits. Those of more wrap around
// so late that rules of floats count on it that they do not.
func isWide(v *variable) bool {
	d := dtypeOf(v)
	return d == array.Bool || d == array.Int64 || d.IsFloat()
}

// uniform returns the value of all elements of v, and whether it is known.
func uniform(v *variable) (float64, bool) { return tensor.UniformOf(v) }

// is reports whether all elements of v are known to be a number.
func is(v *variable, want float64) bool {
	x, ok := uniform(v)
	return ok && x == want
}

// isScalar reports whether v is one element that is broadcast: all its dimensions are known to have
// size 1.
func isScalar(v *variable) bool { return typeOf(v).AllOnes() }

// samePattern reports whether two tensors have size 1 in the same dimensions, as far as is known.
func samePattern(v, w *variable) bool {
	t, u := typeOf(v), typeOf(w)
	for d := range t.NDim() {
		if (t.Dim(d) == 1) != (u.Dim(d) == 1) {
			return false
		}
	}
	return true
}

// sameSize reports whether two integer scalars are known to be equal.
func sameSize(a, b *variable) bool { return tensor.SameSize(a, b) }

// intOf returns the value of an integer scalar, and whether it is known and exact as a float64.
func intOf(v *variable) (int, bool) {
	x, ok := uniform(v)
	if !ok || isFloat(v) || math.Abs(x) >= 1<<53 {
		return 0, false
	}
	return int(x), true
}

// stripPadding looks through a DimShuffle that only adds dimensions in front.
func stripPadding(v *variable) *variable {
	if a, op, ok := owner[tensor.DimShuffleOp](v); ok && op.PadsLeft(typeOf(a.Inputs()[0]).NDim()) {
		return a.Inputs()[0]
	}
	return v
}
