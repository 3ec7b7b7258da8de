package tensorpass

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// mostFolded bounds the number of elements of constants that folding makes.
const mostFolded = 1 << 16

// ConstantFolding computes what depends on constants only. Before stabilize has run, late is false: then a function such as exp is left
// alone where it overflows, or where its value is so close to 0 or 1 that digits are lost, as it may be part of something that
// stabilize computes better; and so is a choice that a product belongs into.
func ConstantFolding(late bool) rewrite.Rule {
	return rewrite.Rule{
		Name: "constant_folding", Doc: "what is computed from constants becomes a constant: 2 + 3 → 5", Depth: 1,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, ok := n.Op().(tensor.Op)
			if !ok {
				return none, nil
			}
			for _, v := range n.Inputs() {
				if !v.IsConstant() {
					return none, nil
				}
			}
			if f, ok := op.(tensor.Foldable); ok && !f.Fold(n) {
				return c.Miss("the op says that it is not worth it"), nil
			}
			if !late && sinks(n) {
				return c.Miss("a product or quotient is about to be taken into the choice"), nil
			}
			if destroys(op) {
				return c.Miss("it works in place"), nil
			}
			if !small(n) {
				return c.Miss("the result may be large"), nil
			}
			out, err := compute(n)
			if err != nil {
				return c.Miss("it can't be computed: %v", err), nil
			}
			new := make([]*vari, len(out))
			for i, a := range out {
				if a.Len() > mostFolded {
					return c.Miss("the result is large"), nil
				}
				if !late && delicate(op, n, a) {
					return c.Miss("%v is too special a value before stabilize has run", a), nil
				}
				new[i] = fgraph.NewConstant(n.Outputs()[i].Type(), a, "")
			}
			return rewrite.Replace(new...), nil
		},
	}
}

// sinks reports whether n is a choice of 0 that local_mul_switch_sink or local_div_switch_sink will take a product or quotient into. Once it is
// a number, an infinity that it is multiplied by in the place that was not taken makes it NaN.
func sinks(n *apply) bool {
	if op, ok := elemOf(n); !ok || op != array.Switch || is(n.Inputs()[1], 0) == is(n.Inputs()[2], 0) {
		return false
	}
	return slices.ContainsFunc(n.Out().Clients(), func(c fgraph.Client) bool {
		op, ok := elemOf(c.Apply)
		return ok && (op == array.Mul || c.Index == 0 && (op == array.TrueDiv || op == array.IntDiv))
	})
}

func destroys(op fgraph.Op) bool {
	d, ok := op.(fgraph.Destroyer)
	return ok && len(d.DestroyMap()) > 0
}

// small reports whether the outputs are known to be small before they are computed.
func small(n *apply) bool {
	elements := 1
	for _, v := range n.Inputs() {
		a := tensor.ConstantOf(v)
		if a == nil {
			return false
		}
		elements = max(elements, a.Len())
	}
	for _, v := range n.Outputs() {
		size := 1
		for _, d := range typ(v).Shape() {
			if d == tensor.Unknown {
				d = 1 // then it follows from the inputs, or is checked afterwards
			}
			if size *= d; size > mostFolded {
				return false
			}
		}
	}
	return elements <= mostFolded
}

// delicate reports whether a value is one at which functions lose what stabilize would keep.
func delicate(op tensor.Op, n *apply, a *array.Array) bool {
	e, ok := op.(tensor.Elemwise)
	if !ok || !a.DType().IsFloat() {
		return false
	}
	switch e.Op {
	case array.Exp, array.Expm1, array.Exp2, array.Log, array.Log1p, array.Erf, array.Erfc, array.Sigmoid, array.Softplus, array.Tanh, array.Sinh, array.Cosh, array.Pow, array.Sqr:
	default:
		return false
	}
	for i := range a.Len() {
		v := math.Abs(a.Float(i))
		if v == 0 && e.Op == array.Sqr {
			continue
		}
		if v == 0 || math.IsInf(v, 0) || v != 1 && math.Abs(v-1) < 1e-3 {
			return true
		}
	}
	return false
}

// upcastConstantInputs is local_upcast_elemwise_constant_inputs.
func upcastConstantInputs() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_upcast_elemwise_constant_inputs", Depth: 1,
		Doc: "constants take the type of elements of the result, so that 1 - x and 1.0 - x are merged",
		On:  []rewrite.Track{rewrite.TrackType[tensor.Elemwise]()},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, ok := elemOf(n)
			if !ok || op == array.Cast || op == array.Switch || op == array.Second {
				return none, nil
			}
			first := 0
			for first < len(n.Inputs()) && !n.Inputs()[first].IsConstant() {
				first++
			}
			if first == len(n.Inputs()) {
				return none, nil
			}
			if folds(op, n.Out()) {
				return c.Miss("a canonizer is about to fold the constants"), nil
			}
			types := make([]array.DType, len(n.Inputs()))
			for i, v := range n.Inputs() {
				types[i] = typ(v).DType()
			}
			to, _, _ := op.Types(types...)
			in := make([]*vari, len(n.Inputs()))
			changed := false
			for i, v := range n.Inputs() {
				in[i] = v
				if a := tensor.ConstantOf(v); a != nil && a.DType() != to && v.Name() == "" {
					in[i], changed = fgraph.NewConstant(typ(v).With(to), a.Cast(to), ""), true
				}
			}
			if !changed {
				return c.Miss("the constants have the type already"), nil
			}
			return replace(c, n, tensor.MustApply(tensor.OpFor(op), in...))
		},
	}
}

// folds reports whether a sum or product with a constant is part of another one with a constant: the canonizer makes one constant of both.
func folds(op array.Opcode, v *vari) bool {
	if op != array.Add && op != array.Mul || !alone(v) || v.Clients()[0].Apply == nil {
		return false
	}
	outer := v.Clients()[0].Apply
	o, ok := elemOf(outer)
	return ok && o == op && typ(v).DType() == typ(outer.Out()).DType() && slices.ContainsFunc(outer.Inputs(), (*vari).IsConstant)
}
