package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// Short names of what every rule is made of.
type (
	vari   = fgraph.Variable
	apply  = fgraph.Apply
	result = rewrite.Result
)

var none = result{}

// on returns the tracks of element-wise operations.
func on(ops ...array.Opcode) []rewrite.Track {
	tracks := make([]rewrite.Track, len(ops))
	for i, o := range ops {
		tracks[i] = rewrite.TrackOp(tensor.OpFor(o))
	}
	return tracks
}

// elem returns the apply of an element-wise operation that computes v, nil if something else does. In-place ones do not count.
func elem(v *vari, op array.Opcode) *apply {
	a := v.Owner()
	if a == nil {
		return nil
	}
	if e, ok := a.Op().(tensor.Elemwise); ok && e.Op == op && e.Inplace == 0 {
		return a
	}
	return nil
}

// elemOf returns the operation of an element-wise apply.
func elemOf(a *apply) (array.Opcode, bool) {
	if a == nil {
		return 0, false
	}
	e, ok := a.Op().(tensor.Elemwise)
	return e.Op, ok && e.Inplace == 0
}

// owner returns the apply that computes v if its op is of a Go type.
func owner[O fgraph.Op](v *vari) (a *apply, op O, ok bool) {
	if a = v.Owner(); a == nil {
		return nil, op, false
	}
	op, ok = a.Op().(O)
	return a, op, ok
}

// alone reports whether v is used once.
func alone(v *vari) bool { return len(v.Clients()) == 1 }

// typ returns the type of a tensor.
func typ(v *vari) tensor.Type { return tensor.TypeOf(v) }

func isFloat(v *vari) bool { return typ(v).DType().IsFloat() }

// isInteger reports whether the elements of v are no floats.
func isInteger(v *vari) bool { return !isFloat(v) }

// uniform returns the value that all elements of v have, and whether it is known: v is a constant, or one that was broadcast.
func uniform(v *vari) (float64, bool) {
	for range 100 { // more than anybody nests them
		if a := tensor.ConstantOf(v); a != nil {
			if a.IsCSR() || a.Len() > 4096 {
				return 0, false
			}
			return array.Uniform(a)
		}
		a := v.Owner()
		if a == nil {
			return 0, false
		}
		switch op := a.Op().(type) {
		case tensor.DimShuffleOp, tensor.AllocOp:
			v = a.Inputs()[0]
		case tensor.Elemwise:
			if op.Op != array.Second {
				return 0, false
			}
			v = a.Inputs()[1]
		default:
			return 0, false
		}
	}
	return 0, false
}

// is reports whether all elements of v are known to be a number.
func is(v *vari, want float64) bool {
	x, ok := uniform(v)
	return ok && x == want
}

// isScalar reports whether v is one element that is broadcast: all its dimensions are known to have size 1.
func isScalar(v *vari) bool { return typ(v).AllOnes() }

// stripPadding looks through a DimShuffle that only adds dimensions in front.
func stripPadding(v *vari) *vari {
	if a, op, ok := owner[tensor.DimShuffleOp](v); ok && op.PadsLeft(typ(a.Inputs()[0]).NDim()) {
		return a.Inputs()[0]
	}
	return v
}

// scalarOf returns v without its dimensions if these are all known to have size 1.
func scalarOf(v *vari) *vari {
	if a := tensor.ConstantOf(v); a != nil {
		return tensor.Constant(a.Reshape())
	}
	return shuffled(v, tensor.NewDimShuffle())
}

// number returns a constant of the type of elements of like, with as many dimensions.
func number(v float64, like *vari) *vari { return tensor.Number(v, like) }

// castTo converts v; a constant of one element right away.
func castTo(v *vari, dtype array.DType) *vari {
	if a := tensor.ConstantOf(v); a != nil && a.DType() != dtype && a.Len() == 1 {
		return tensor.Constant(a.Cast(dtype))
	}
	return tensor.Cast(v, dtype)
}

// mapAs applies an operation that has to compute in a type: where the arguments alone would make it compute in a smaller one, the first is
// converted. A product of integers that is part of one of floats must not wrap around, nor one of float32s be rounded, once the others are gone.
func mapAs(dtype array.DType, op array.Opcode, args ...*vari) *vari {
	types := make([]array.DType, len(args))
	for i, v := range args {
		types[i] = typ(v).DType()
	}
	if compute, _, ok := op.Types(types...); ok && compute != dtype && array.Upcast(compute, dtype) == dtype {
		args = slices.Clone(args)
		args[0] = castTo(args[0], dtype)
	}
	return tensor.Map(op, args...)
}

// computeAs is mapAs for what takes the place of out, in the type of its elements.
func computeAs(out *vari, op array.Opcode, args ...*vari) *vari {
	return mapAs(typ(out).DType(), op, args...)
}

// exactIn reports whether what holds of numbers holds of the elements of v where it is an argument of what computes out. A negation of integers that
// wraps around, -(-2⁶³), stands for another number once it is converted to a float.
func exactIn(out, v *vari) bool { return isFloat(v) || !isFloat(out) }

// conform returns v with the type of old: converted, with dimensions added in front, and broadcast to the shape of models, inputs of what
// computed old, where it has size 1 in a dimension in which old has not. It returns nil if the models do not help.
func conform(old, v *vari, models ...*vari) *vari {
	t := typ(old)
	v = castTo(v, t.DType())
	if typ(v).NDim() > t.NDim() {
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
func fills(t tensor.Type, v, m *vari) bool {
	have, model := typ(v), typ(m)
	for d := range t.NDim() {
		if t.Dim(d) != 1 && have.Dim(d) == 1 && model.Dim(d) != 1 {
			return true
		}
	}
	return false
}

// replace proposes v, in the form of the only output of n, or nothing where that form can't be reached.
func replace(c *rewrite.Context, n *apply, v *vari, models ...*vari) (result, error) {
	old := n.Out()
	if v == nil {
		return c.Miss("there is nothing to put in its place"), nil
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

// eval computes an expression of constants.
func eval(v *vari) (*array.Array, error) {
	if a := tensor.ConstantOf(v); a != nil {
		return a, nil
	}
	out, err := compute(v.Owner())
	if err != nil {
		return nil, err
	}
	return out[v.Index()], nil
}

// compute computes an apply whose inputs are constants.
func compute(a *apply) ([]*array.Array, error) {
	k, err := a.Op().(tensor.Op).Compile(a)
	if err != nil {
		return nil, err
	}
	in, out := make([]*array.Array, len(a.Inputs())), make([]*array.Array, len(a.Outputs()))
	for i, v := range a.Inputs() {
		in[i] = tensor.ConstantOf(v)
	}
	for i := range out {
		out[i] = new(array.Array)
	}
	ws := array.Workspace{MaxBytes: 1 << 28}
	if err := k(&ws, in, out); err != nil {
		return nil, err
	}
	for i, o := range out {
		out[i] = o.Clone() // no view of an input, nor of a larger buffer
	}
	return out, nil
}
