package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// replace proposes v for the only output of n, see conform. It proposes nothing if v can't get the
// right type.
func replace(c *rewrite.Context, n *apply, v *variable, models ...*variable) (result, error) {
	old := n.Out()
	if v == nil {
		return c.Miss("there is nothing simpler to replace it with, as far as is known"), nil
	}
	w := conform(old, v, models...)
	if w == nil {
		return c.Miss("a %v can't be made a %v", v.Type(), old.Type()), nil
	}
	if w == old {
		return none, nil
	}
	return rewrite.Replace(w), nil
}

// attempt is replace for an expression whose parts may not fit together.
func attempt(c *rewrite.Context, n *apply, build func() *variable) (result, error) {
	v, err := tensor.Try(build)
	if err != nil {
		return c.Miss("%v", err), nil
	}
	return replace(c, n, v)
}

// through returns the function of a rule that looks at the apply a that computes the first argument of n,
// whose op is an O. If once is set, the argument has no other use. build makes the replacement, or
// returns nil.
func through[O tensor.Op](once bool, build func(c *rewrite.Context, n, a *apply) *variable) transform {
	return func(c *rewrite.Context, n *apply) (result, error) {
		v := n.Inputs()[0]
		a, _, ok := owner[O](v)
		if !ok || once && !usedOnce(v) {
			return c.Miss("the argument is of another op, or has other uses"), nil
		}
		return attempt(c, n, func() *variable { return build(c, n, a) })
	}
}

// conform returns v with the type of old. It converts the elements, adds dimensions in front, and
// where v has size 1 and old has not, it broadcasts v to the shape of the models, which are inputs
// of what computed old. It returns nil if the models don't help.
func conform(old, v *variable, models ...*variable) *variable {
	t := typeOf(old)
	v = castTo(v, t.DType())
	if typeOf(v).NDim() > t.NDim() {
		return nil
	}
	v = tensor.PadLeft(v, t.NDim())
	for _, m := range models {
		if t.Accepts(v.Type()) {
			return v
		}
		m = tensor.PadLeft(m, t.NDim())
		if fills(t, v, m) {
			v = tensor.Second(m, v)
		}
	}
	if t.Accepts(v.Type()) {
		return v
	}
	return nil
}

// fills reports whether broadcasting v to the shape of m brings it closer to the type t.
func fills(t tensor.Type, v, m *variable) bool {
	have, model := typeOf(v), typeOf(m)
	for d := range t.NDim() {
		if t.Dim(d) != 1 && have.Dim(d) == 1 && model.Dim(d) != 1 {
			return true
		}
	}
	return false
}

// number returns a constant with the element type of like, and as many dimensions.
func number(v float64, like *variable) *variable { return tensor.Number(v, like) }

// full returns a constant scalar.
func full(dtype array.DType, v float64) *variable { return tensor.Constant(array.Full(dtype, v)) }

// castTo converts the elements of v. A constant of one element is converted right away.
func castTo(v *variable, dtype array.DType) *variable {
	if a := tensor.ConstantOf(v); a != nil && a.DType() != dtype && a.Len() == 1 {
		return tensor.Constant(a.Cast(dtype))
	}
	return tensor.Cast(v, dtype)
}

// mapAs applies an operation that has to compute in a type. It converts the first argument where
// the arguments alone would make the operation compute in a smaller type. A product of integers
// that was part of a product of floats must not wrap around once the floats are gone, one of
// float32s must not be rounded, and a function of small integers must not be that of a float16 where it
// was that of a bfloat16.
func mapAs(dtype array.DType, op array.Opcode, args ...*variable) *variable {
	types := lists.Map(args, dtypeOf)
	compute, _, ok := op.Types(types...)
	if both := array.Upcast(compute, dtype); ok && both != compute && (both == dtype || array.Upcast(dtype, types...) == dtype) {
		args = slices.Clone(args)
		args[0] = castTo(args[0], dtype)
	}
	return tensor.Map(op, args...)
}

// computeAs is mapAs for what replaces out, in the element type of out.
func computeAs(out *variable, op array.Opcode, args ...*variable) *variable {
	return mapAs(dtypeOf(out), op, args...)
}

// product returns the product of one or more factors.
func product(factors ...*variable) *variable {
	if len(factors) == 1 {
		return factors[0]
	}
	return tensor.Mul(factors...)
}

// combined returns the sum or product of two scalars, as a constant if both are and the result is
// exact in a float64. It drops factors of 1.
func combined(op array.Opcode, a, b *variable) *variable {
	x, ok := uniform(a)
	y, ok2 := uniform(b)
	switch mul := op == array.Mul; {
	case ok && ok2 && mul && (isFloat(a) || x*y < 1<<53):
		return full(dtypeOf(a), x*y)
	case ok && ok2 && !mul:
		return full(dtypeOf(a), x+y)
	case ok && mul && x == 1:
		return b
	case ok2 && mul && y == 1:
		return a
	}
	return tensor.Map(op, a, b)
}

// scalarOf returns v without its dimensions, all of which are known to have size 1.
func scalarOf(v *variable) *variable {
	if a := tensor.ConstantOf(v); a != nil {
		return tensor.Constant(a.Reshape())
	}
	return shuffled(v, tensor.NewDimShuffle())
}

// scalarFactor is scalarOf for a factor, which may be padded.
func scalarFactor(v *variable) *variable { return scalarOf(stripPadding(v)) }

// refilled broadcasts a scalar to a shape.
func refilled(v *variable, sizes []*variable) *variable {
	if len(sizes) == 0 {
		return v
	}
	return tensor.Alloc(v, sizes...)
}

// without returns a copy of a list without its element i.
func without(list []*variable, i int) []*variable { return slices.Delete(slices.Clone(list), i, i+1) }

// mapped returns the variables that f makes of those in a list.
func mapped(list []*variable, f func(*variable) *variable) []*variable {
	return lists.Map(list, f)
}

// partition divides a list into the variables that f accepts, and the others.
func partition(list []*variable, f func(*variable) bool) (yes, no []*variable) {
	for _, v := range list {
		if f(v) {
			yes = append(yes, v)
		} else {
			no = append(no, v)
		}
	}
	return yes, no
}

// again applies the op of a to other inputs.
func again(a *apply, in ...*variable) *variable { return tensor.MustApply(a.Op().(tensor.Op), in...) }

// inRange returns the condition that an index is within a dimension. It returns nil if that is known.
func inRange(i, n *variable) *variable {
	k, ok := intOf(i)
	size, ok2 := intOf(n)
	if ok && ok2 && k < size && k >= -size {
		return nil
	}
	if ok && k < 0 {
		return tensor.Map(array.Ge, n, tensor.Int(-k))
	}
	below := tensor.Map(array.Lt, i, n)
	if ok {
		return below
	}
	return tensor.Map(array.And, below, tensor.Map(array.Ge, i, tensor.Neg(n)))
}

// equalSizes returns the condition that two sizes are equal. It returns nil if that is known.
func equalSizes(a, b *variable) *variable {
	if sameSize(a, b) {
		return nil
	}
	return tensor.Map(array.Eq, a, b)
}

// provided returns v, which fails where a condition does not hold. Conditions that are nil hold.
func provided(v *variable, message string, conditions ...*variable) *variable {
	_, open := partition(conditions, func(c *variable) bool { return c == nil })
	if len(open) == 0 || v == nil {
		return v
	}
	return tensor.Assert(v, message, open...)
}
