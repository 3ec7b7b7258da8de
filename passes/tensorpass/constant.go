package tensorpass

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// maxFolded bounds the elements of a constant that folding makes.
const maxFolded = 1 << 16

// constantRules returns the rules of constants. Folding is another function in specialize, and yet another at the end.
func constantRules() []Local {
	const name = "constant_folding"
	upcast := goRule{onElemwise, ofConstant, 1, upcastConstantInputs}
	rules := func(g Group) []Local {
		return textRules("constant", goRules{name: {nil, ofConstant, 1, foldConstants(g)}, "local_upcast_elemwise_constant_inputs": upcast})
	}
	all := rules(Canonicalize)
	all[0].Groups &^= Specialize | Uncanonicalize
	for _, g := range []Group{Specialize, Uncanonicalize} {
		late := named(rules(g), name)
		late.Groups = g
		all = append(all, late)
	}
	return all
}

// foldConstants returns the function that computes applies of constants in a group. Until stabilize has run,
// the function leaves some things that another rule handles better: a
// function such as exp where it overflows, or where its value is so close to 0 or 1 that digits are
// lost, and a switch that a product moves into. Until specialize has run it leaves sizes that become floats. To
// the rules these are numbers like those of sizes that are not known, so that both make the same of a mean:
// 7*(1/7) happens to be 1, and 49*(1/49) is not.
func foldConstants(g Group) transform {
	late := g >= Specialize
	return func(c *rewrite.Context, n *apply) (result, error) {
		op, ok := n.Op().(tensor.Op)
		if !ok || slices.ContainsFunc(n.Inputs(), func(v *variable) bool { return !v.IsConstant() }) {
			return none, nil
		}
		f, ok := op.(tensor.Foldable)
		switch {
		case ok && !f.Fold(n):
			return c.Miss("the op does not want to be folded"), nil
		case g < Uncanonicalize && isSize(n.Out()):
			return c.Miss("a size is not a number yet"), nil
		case g == Uncanonicalize && (isExponent(n.Out()) || elem(n.Out(), array.Pow) != nil):
			return c.Miss("a size is no exponent to multiply out, and a power of one is not another number"), nil
		case !late && sinks(n):
			return c.Miss("a product or quotient is about to move into the switch"), nil
		case destroys(op):
			return c.Miss("it works in place"), nil
		case !small(n) && !widens(n):
			return c.Miss("the result may be large"), nil
		}
		out, err := tensor.Fold(c.Context(), n)
		if err != nil {
			return c.Miss("it can't be computed: %v", err), nil
		}
		folded := make([]*variable, len(out))
		for i, a := range out {
			if a.Len() > maxFolded && !widens(n) {
				return c.Miss("the result is large"), nil
			}
			if !late && delicate(op, a) {
				return c.Miss("%v is too special a value before stabilize has run", a), nil
			}
			folded[i] = fgraph.NewConstant(n.Outputs()[i].Type(), a, "")
		}
		return rewrite.Replace(folded...), nil
	}
}

// isExponent reports whether v is an exponent, or a number of which one is computed.
func isExponent(v *variable) bool {
	todo := []*variable{v}
	for seen := 0; len(todo) > 0 && seen < maxOfSizes; seen++ {
		v, todo = todo[len(todo)-1], todo[:len(todo)-1]
		for _, u := range v.Clients() {
			op, ok := elemOf(u.Apply)
			switch {
			case ok && op == array.Pow && u.Index == 1:
				return true
			case u.Apply != nil && (ok || isA[tensor.DimShuffleOp](u.Apply.Op())) && isScalar(u.Apply.Out()):
				todo = append(todo, u.Apply.Out())
			}
		}
	}
	return false
}

// sinks reports whether n is a switch with a branch of 0 that local_mul_switch_sink or
// local_div_switch_sink will move a product or quotient into. Were it folded, its 0 would be
// multiplied by an infinity that the switch keeps out, and be NaN.
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

// widens reports whether n makes float32s of half floats: of weights, which would take longer in each run, and are prepared
// for products and convolutions only as constants.
func widens(n *apply) bool {
	op, ok := elemOf(n)
	return ok && op == array.Cast && dtypeOf(n.Inputs()[0]).IsHalf() && dtypeOf(n.Out()) == array.Float32
}

// small reports whether the outputs are known to be small before they are computed.
func small(n *apply) bool {
	for _, v := range n.Inputs() {
		if a := tensor.ConstantOf(v); a == nil || a.Len() > maxFolded {
			return false
		}
	}
	for _, v := range n.Outputs() {
		size := 1
		for _, d := range typeOf(v).Shape() {
			if d != tensor.Unknown { // else it follows from the inputs, or is checked afterwards
				size *= d
			}
			if size > maxFolded {
				return false
			}
		}
	}
	return true
}

// delicate reports whether a has values at which functions lose digits that stabilize would keep.
func delicate(op tensor.Op, a *array.Array) bool {
	e, ok := op.(tensor.Elemwise)
	if !ok || !a.DType().IsFloat() {
		return false
	}
	switch e.Op {
	case array.Exp, array.Expm1, array.Exp2, array.Log, array.Log1p, array.Erf, array.Erfc, array.Sigmoid, array.Softplus,
		array.Tanh, array.Sinh, array.Cosh, array.Pow, array.Sqr:
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

func upcastConstantInputs(c *rewrite.Context, n *apply) (result, error) {
	op, ok := elemOf(n)
	if !ok || op == array.Cast || op == array.Switch || op == array.Second {
		return none, nil
	}
	if !slices.ContainsFunc(n.Inputs(), (*variable).IsConstant) {
		return none, nil
	}
	if folds(op, n.Out()) {
		return c.Miss("a canonizer is about to fold the constants"), nil
	}
	types := lists.Map(n.Inputs(), dtypeOf)
	to, _, _ := op.Types(types...)
	in := slices.Clone(n.Inputs())
	changed := false
	for i, v := range in {
		if a := tensor.ConstantOf(v); a != nil && a.DType() != to && v.Name() == "" {
			in[i], changed = fgraph.NewConstant(typeOf(v).With(to), a.Cast(to), ""), true
		}
	}
	if !changed {
		return c.Miss("the constants have the type already"), nil
	}
	return replace(c, n, tensor.MustApply(tensor.OpFor(op), in...))
}

// folds reports whether a sum or product with a constant is part of another one with a constant.
// The canonizer makes one constant of both.
func folds(op array.Opcode, v *variable) bool {
	if op != array.Add && op != array.Mul {
		return false
	}
	outer := onlyClient(v)
	o, ok := elemOf(outer)
	return ok && o == op && dtypeOf(v) == dtypeOf(outer.Out()) && slices.ContainsFunc(outer.Inputs(), (*variable).IsConstant)
}
