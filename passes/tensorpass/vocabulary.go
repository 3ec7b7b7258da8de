package tensorpass

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// Vocabulary returns the meaning of names and numbers in patterns of tensors. Ops have the names
// that [expr.Op] knows; families are listed in doc.go, functions in functions.go. A number in a
// pattern matches whatever is known to consist of that number: a constant, or one that is
// broadcast. A number in a replacement has the element type of what is replaced. A replacement is
// converted and broadcast to the type of what it replaces, and its arithmetic is done in that
// type if the operands' types are smaller.
func Vocabulary() pattern.Vocabulary { return vocabulary{} }

type vocabulary struct{}

// Operator returns the op of a name. That of or is bitwise_or, because "or" stands for alternatives.
func (vocabulary) Operator(name string) (pattern.Operator, bool) {
	if name == "bitwise_or" {
		name = array.Or.String()
	}
	op, ok := expr.Op(name)
	if !ok {
		return pattern.Operator{}, false
	}
	o := pattern.Operator{Match: pattern.Is(op), MinInputs: 1, MaxInputs: -1, Tracks: onOp(op)}
	build := func(m pattern.Making) *variable { return tensor.MustApply(op, m.Inputs...) }
	if e, ok := op.(tensor.Elemwise); ok {
		o.Commutes = e.Commutes()
		if n := e.Op.NumArgs(); n >= 0 {
			o.MinInputs, o.MaxInputs = n, n
		}
		build = func(m pattern.Making) *variable { return mapLike(m.Like, e, m.Inputs) }
	}
	return making(o, build), true
}

// making sets the function that makes an apply, from one that panics on invalid inputs.
func making(o pattern.Operator, build func(pattern.Making) *variable) pattern.Operator {
	o.Make = func(m pattern.Making) (*variable, error) {
		return tensor.Try(func() *variable { return build(m) })
	}
	return o
}

// mapLike applies an element-wise op in a replacement of like, with computeAs where the result of
// the op has the type in which it computes, unless that changes nothing.
func mapLike(like *variable, e tensor.Elemwise, in []*variable) *variable {
	if len(in) == 1 && (e.Op == array.Add || e.Op == array.Mul) && in[0] != like {
		return in[0] // what is left of a sum or product; like is an argument only where nothing is replaced
	}
	if e != tensor.OpFor(e.Op) || e.Op == array.Switch || e.Op == array.Second {
		return tensor.MapOp(e, in...)
	}
	types := make([]array.DType, len(in))
	for i, v := range in {
		types[i] = dtypeOf(v)
	}
	_, test, _ := e.Op.Types(array.Float64)
	if compute, result, ok := e.Op.Types(types...); ok && compute == result && test != array.Bool && !(compute.IsFloat() && neverRounds(e.Op)) {
		return computeAs(like, e.Op, in...)
	}
	return tensor.MapOp(e, in...)
}

// neverRounds reports whether the result of an operation on floats is the same in any type that has
// them.
func neverRounds(op array.Opcode) bool {
	switch op {
	case array.Neg, array.Abs, array.Sgn, array.Maximum, array.Minimum, array.Floor, array.Ceil, array.Trunc, array.Round:
		return true
	}
	return false
}

// Family returns the operator of the ops that differ in parameters only.
func (vocabulary) Family(name string) (pattern.Operator, bool) {
	if f, ok := families[name]; ok {
		return f, true
	}
	for r := range array.NumReductions {
		if r.String() == name {
			return reductions(r), true
		}
	}
	return pattern.Operator{}, false
}

var families = map[string]pattern.Operator{
	"Cast": tracking(casts(), family(1, 1, func(e tensor.Elemwise) (any, bool) { return e.To, e.Op == array.Cast && e.Inplace == 0 },
		func(m pattern.Making) *variable { return tensor.Cast(m.Inputs[0], m.Param.(array.DType)) })),
	"DimShuffle": family(1, 1, func(op tensor.DimShuffleOp) (any, bool) { return op, !op.Inplace },
		func(m pattern.Making) *variable { return shuffled(m.Inputs[0], m.Param.(tensor.DimShuffleOp)) }),
	"Join":      anyOp[tensor.JoinOp](1, -1),
	"Reshape":   anyOp[tensor.ReshapeOp](2, 2),
	"Subtensor": anyOp[*tensor.SubtensorOp](1, -1),
	"map": family(1, -1, func(e tensor.Elemwise) (any, bool) { return e, e.Inplace == 0 },
		func(m pattern.Making) *variable { return mapLike(m.Like, m.Param.(tensor.Elemwise), m.Inputs) }),
}

// family returns the operator of the ops of a Go type that param accepts. It returns what rules
// capture.
func family[O fgraph.Op](least, most int, param func(O) (any, bool), build func(pattern.Making) *variable) pattern.Operator {
	return making(pattern.Operator{
		Match: func(o fgraph.Op) bool {
			op, ok := o.(O)
			if ok {
				_, ok = param(op)
			}
			return ok
		},
		Param:     func(o fgraph.Op) any { p, _ := param(o.(O)); return p },
		MinInputs: least, MaxInputs: most, Tracks: []rewrite.Track{rewrite.TrackType[O]()},
	}, build)
}

// tracking returns a family whose ops are few.
func tracking(tracks []rewrite.Track, o pattern.Operator) pattern.Operator {
	o.Tracks = tracks
	return o
}

// casts returns the tracks of the casts to every element type.
func casts() (tracks []rewrite.Track) {
	for d := array.DType(0); ; d++ {
		if _, ok := array.ParseDType(d.String()); !ok {
			return tracks
		}
		tracks = append(tracks, rewrite.TrackOp(tensor.Elemwise{Op: array.Cast, To: d}))
	}
}

// anyOp returns the operator of all ops of a Go type. Rules capture the op itself.
func anyOp[O tensor.Op](least, most int) pattern.Operator {
	return family(least, most, func(op O) (any, bool) { return op, true },
		func(m pattern.Making) *variable { return tensor.MustApply(m.Param.(O), m.Inputs...) })
}

// axes are the parameters of a reduction.
type axes struct {
	set array.Axes
	all bool
}

func reductions(r array.Reduction) pattern.Operator {
	return family(1, 1, func(op tensor.Reduce) (any, bool) { return axes{op.Axes, op.All}, op.Op == r },
		func(m pattern.Making) *variable {
			p := m.Param.(axes)
			return tensor.MustApply(tensor.Reduce{Op: r, Axes: p.set, All: p.all}, m.Inputs...)
		})
}

// Equal reports whether all elements of v are known to be a number, of the type that the literal
// names.
func (vocabulary) Equal(l pattern.Literal, v *variable) bool {
	t, ok := v.Type().(tensor.Type)
	return ok && (l.Type() == "" || l.Type() == t.DType().String()) && is(v, l.Float())
}

// Number returns the value of all elements of v, if it is known.
func (vocabulary) Number(v *variable) (float64, bool) { return uniform(v) }

// Constant returns a number as a constant.
func (vocabulary) Constant(l pattern.Literal, like *variable) (*variable, error) {
	t, ok := like.Type().(tensor.Type)
	if !ok {
		return nil, fmt.Errorf("%w: the number %s for a %v", tensor.ErrType, l, like.Type())
	}
	dtype := t.DType()
	if l.Type() != "" {
		if dtype, ok = array.ParseDType(l.Type()); !ok {
			return nil, fmt.Errorf("%w: %s: there is no element type %s", tensor.ErrType, l, l.Type())
		}
	}
	v := tensor.Constant(array.Full(dtype, l.Float()))
	if x, known := uniform(v); !known || !dtype.IsFloat() && x != l.Float() {
		return nil, fmt.Errorf("%w: %s is not an %v", tensor.ErrType, l, dtype)
	}
	return tensor.PadLeft(v, t.NDim()), nil
}

// Conform gives a replacement the type of what it replaces. It is broadcast to the shape of the
// arguments of an element-wise op.
func (vocabulary) Conform(root *apply, old, v *variable) (*variable, error) {
	var models []*variable
	if _, ok := root.Op().(tensor.Elemwise); ok {
		models = root.Inputs()
	}
	w, err := tensor.Try(func() *variable { return conform(old, v, models...) })
	if err == nil && w == nil {
		err = fmt.Errorf("%w: a %v can't be made a %v", tensor.ErrType, v.Type(), old.Type())
	}
	return w, err
}
