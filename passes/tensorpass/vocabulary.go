package tensorpass

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel/elementary"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// Vocabulary is [VocabularyOf] the default language, that of the ops of package tensor.
func Vocabulary() pattern.Vocabulary { return VocabularyOf(expr.Default()) }

// VocabularyOf returns the meaning of names and numbers in patterns of tensors. Ops have the names
// of the language; families are listed in doc.go, functions in functions.go. A number in a
// pattern matches everything that is known to consist of that number: a constant, or one that is
// broadcast. A number in a replacement has the element type of what is replaced. A replacement is
// converted and broadcast to the type of what it replaces, and its arithmetic is done in that
// type if the operands' types are smaller.
func VocabularyOf(l *expr.Language) pattern.Vocabulary { return vocabulary{l} }

type vocabulary struct{ *expr.Language }

// RuleName returns the name of an op in rules, where "or" means alternatives.
func (vocabulary) RuleName(op fgraph.Op) string {
	if name := op.String(); name != "or" {
		return name
	}
	return "bitwise_or"
}

// Operator returns the op of a name.
func (l vocabulary) Operator(name string) (pattern.Operator, bool) {
	op, ok := l.Op(name)
	if !ok || name == "or" {
		return pattern.Operator{}, false
	}
	o := pattern.Operator{Match: pattern.Is(op), MinInputs: 1, MaxInputs: -1, Tracks: onOp(op)}
	build := func(m pattern.Making) *variable { return tensor.MustApply(op, m.Inputs...) }
	if c, ok := op.(tensor.Commutative); ok {
		o.Commutes = c.Commutes()
	}
	if e, ok := op.(tensor.Elemwise); ok {
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
// the op has the type in which it computes, unless that changes nothing. like is an argument only
// where nothing is replaced.
func mapLike(like *variable, e tensor.Elemwise, in []*variable) *variable {
	if len(in) == 1 && (e.Op == array.Add || e.Op == array.Mul) && in[0] != like {
		return oneOf(like, in[0])
	}
	if e != tensor.OpFor(e.Op) || e.Op == array.Switch || e.Op == array.Second {
		return tensor.MapOp(e, in...)
	}
	types := lists.Map(in, dtypeOf)
	_, test, _ := e.Op.Types(array.Float64)
	if compute, result, ok := e.Op.Types(types...); ok && compute == result && test != array.Bool && !(compute.IsFloat() && neverRounds(e.Op)) {
		return computeAs(like, e.Op, in...)
	}
	return tensor.MapOp(e, in...)
}

// oneOf returns what is left of a sum or product: v, in the type in which that would be computed.
func oneOf(like, v *variable) *variable {
	if t := dtypeOf(like); t.IsFloat() && array.Upcast(dtypeOf(v), t) == t {
		return castTo(v, t)
	}
	return v
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
func (l vocabulary) Family(name string) (pattern.Operator, bool) {
	if f, ok := families[name]; ok {
		return f, true
	}
	if is, ok := l.Is(name); ok {
		o := family(1, -1, func(op tensor.Op) (any, bool) { return op, is(op) },
			func(m pattern.Making) *variable { return tensor.MustApply(m.Param.(tensor.Op), m.Inputs...) })
		o.Tracks = nil // of ops of any Go type
		return o, true
	}
	for r := range array.NumReductions {
		if r.String() == name {
			return reductions(r), true
		}
	}
	return pattern.Operator{}, false
}

var families = map[string]pattern.Operator{
	"Cast":              casts(),
	"DimShuffle":        dimShuffles(false),
	"InplaceDimShuffle": dimShuffles(true), // as older graphs have it
	"argmax":            anyOp[tensor.ArgmaxOp](1, 1),
	"ExtractDiag":       anyOp[tensor.ExtractDiagOp](1, 1),
	"Join":              anyOp[tensor.JoinOp](1, -1),
	"MakeVector":        anyOp[tensor.MakeVectorOp](0, -1),
	"Reshape":           anyOp[tensor.ReshapeOp](2, 2),
	"Subtensor":         anyOp[*tensor.SubtensorOp](1, -1),
	"softmax":           softmaxAlong(tensor.Softmax),
	"log_softmax":       softmaxAlong(tensor.LogSoftmax),
	// A name that is captured from a selection and from a change of the same part is the same.
	"SetSubtensor":         changes(true),
	"IncSubtensor":         changes(false),
	"AdvancedSubtensor":    anyOp[tensor.AdvancedSubtensorOp](2, -1),
	"AdvancedSetSubtensor": advancedChanges(true),
	"AdvancedIncSubtensor": advancedChanges(false),
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

// dimShuffles returns the family of the DimShuffles of a name. A replacement has the usual one.
func dimShuffles(inplace bool) pattern.Operator {
	return family(1, 1, func(op tensor.DimShuffleOp) (any, bool) { return op, op.Inplace == inplace },
		func(m pattern.Making) *variable { return shuffled(m.Inputs[0], m.Param.(tensor.DimShuffleOp)) })
}

// casts returns the family of the casts, whose ops are few.
func casts() pattern.Operator {
	o := family(1, 1, func(e tensor.Elemwise) (any, bool) { return e.To, e.Op == array.Cast && e.Inplace == 0 },
		func(m pattern.Making) *variable { return tensor.Cast(m.Inputs[0], m.Param.(array.DType)) })
	o.Tracks = nil
	for _, d := range array.DTypes() {
		o.Tracks = append(o.Tracks, rewrite.TrackOp(tensor.Elemwise{Op: array.Cast, To: d}))
	}
	return o
}

// anyOp returns the operator of all ops of a Go type. Rules capture the op itself.
func anyOp[O tensor.Op](least, most int) pattern.Operator {
	return family(least, most, func(op O) (any, bool) { return op, true },
		func(m pattern.Making) *variable { return tensor.MustApply(m.Param.(O), m.Inputs...) })
}

// changes returns the operator of the ops that set a part, or add to it.
func changes(set bool) pattern.Operator {
	o := family(2, -1, func(op *tensor.IncSubtensorOp) (any, bool) { return nil, op.Set == set && !op.Inplace },
		func(m pattern.Making) *variable {
			return tensor.MustApply(m.Param.(*tensor.SubtensorOp).Change(set), m.Inputs...)
		})
	o.Param = func(o fgraph.Op) any { return o.(*tensor.IncSubtensorOp).Selection() }
	return o
}

// advancedChanges is changes for indexes that are tensors.
func advancedChanges(set bool) pattern.Operator {
	return family(3, -1, func(op tensor.AdvancedIncSubtensorOp) (any, bool) {
		return tensor.AdvancedSubtensorOp{K: op.K}, op.Set == set && !op.Inplace
	}, func(m pattern.Making) *variable {
		return tensor.MustApply(tensor.AdvancedIncSubtensorOp{K: m.Param.(tensor.AdvancedSubtensorOp).K, Set: set}, m.Inputs...)
	})
}

// reductions returns the family of a reduction. Rules capture the sum along the same dimensions, so that
// a name is the same for all reductions.
func reductions(r array.Reduction) pattern.Operator {
	return family(1, 1, func(op tensor.Reduce) (any, bool) { return tensor.Reduce{Axes: op.Axes, All: op.All}, op.Op == r },
		func(m pattern.Making) *variable {
			op := m.Param.(tensor.Reduce)
			op.Op = r
			return tensor.MustApply(op, m.Inputs...)
		})
}

// softmaxAlong returns the operator that makes a softmax, or its logarithm, along a dimension: in
// graphs it is an op on the last dimension.
func softmaxAlong(softmax func(*variable) *variable) pattern.Operator {
	return making(pattern.Operator{
		Match:     func(fgraph.Op) bool { return false },
		Param:     func(fgraph.Op) any { return nil },
		MinInputs: 1, MaxInputs: 1,
	}, func(m pattern.Making) *variable {
		x, p := m.Inputs[0], m.Param.(tensor.Reduce)
		if !isFloat(x) {
			x = castTo(x, dtypeOf(m.Like))
		}
		return tensor.AlongAxis(softmax, x, bits.TrailingZeros8(uint8(p.Over(typeOf(x).NDim()))))
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

// Pow returns x to the power y, with the bits of the op pow.
func (vocabulary) Pow(x, y float64) float64 { return elementary.Pow(x, y) }

// Broadcasts selects the ops that [uniform] looks through.
func (vocabulary) Broadcasts() []rewrite.Track { return broadcasters }

var broadcasters = slices.Concat(onDimShuffle, onAlloc, on(array.Second),
	onOp(tensor.Elemwise{Op: array.Second, Inplace: 1}), onOp(tensor.Elemwise{Op: array.Second, Inplace: 2}))

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
		models = mapped(root.Inputs(), shapeModel)
	}
	w, err := tensor.Try(func() *variable { return conform(old, v, models...) })
	if err == nil && w == nil {
		err = fmt.Errorf("%w: a %v can't be made a %v", tensor.ErrType, v.Type(), old.Type())
	}
	return w, err
}

// shapeModel returns a variable of the shape of v that is computed earlier: an argument of the
// element-wise ops that compute v. So a replacement that is broadcast to the shape of v does not
// need v.
func shapeModel(v *variable) *variable {
	for range 10 { // deeper than patterns are
		a, _, ok := owner[tensor.Elemwise](v)
		if !ok {
			break
		}
		i := slices.IndexFunc(a.Inputs(), func(w *variable) bool { return samePattern(v, w) })
		if i < 0 {
			break
		}
		v = a.Inputs()[i]
	}
	return v
}

// ClassFunctions returns the functions that rules see in saturation, where classes have no clients:
// what is used several times may be replaced, and the costs decide.
func (vocabulary) ClassFunctions() []pattern.Function { return classFunctions }

var classFunctions = []pattern.Function{
	pattern.NewGuardOfEach("once(x)", 1, "holds for any x", func(*variable) bool { return true }),
	pattern.NewGuard("nonnegative(x)", 0, "no element of x is negative, as far as anything tells that it is equal to", func(a pattern.Args) bool {
		for i, v := range a.Vars {
			if least, _ := boundsAt(a, i); !(least >= 0) && !tensor.Nonnegative(v) {
				return false
			}
		}
		return true
	}),
	pattern.NewGuard("at_least(x, y)", 0, "no element of x is less than that of y where both are numbers, as far as anything tells that they are equal to", func(a pattern.Args) bool {
		least, _ := boundsAt(a, 0)
		_, most := boundsAt(a, 1)
		return least >= most || tensor.Dominates(a.Vars[0], a.Vars[1])
	}),
}

func boundsAt(a pattern.Args, i int) (least, most float64) {
	if a.Bounds == nil {
		return math.Inf(-1), math.Inf(1)
	}
	return a.Bounds(i)
}

// Bounds returns what is known of the elements of a variable, see [tensor.Bounds].
func (vocabulary) Bounds(v *variable, of func(*variable) (least, most float64)) (least, most float64) {
	if _, ok := v.Type().(tensor.Type); !ok {
		return math.Inf(-1), math.Inf(1)
	}
	return tensor.Bounds(v, of)
}

// Cost returns what saturation thinks that an apply costs, see [tensor.Cost].
func (vocabulary) Cost(a *apply) float64 { return tensor.Cost(a) }

// FusedCost returns what it costs if it is fused with another one where it can be, see
// [tensor.FusedCost].
func (vocabulary) FusedCost(a *apply) float64 { return tensor.FusedCost(a) }

// Rank prefers variables whose sign is known.
func (vocabulary) Rank(v *variable) int {
	if _, ok := v.Type().(tensor.Type); ok && tensor.Nonnegative(v) {
		return 1
	}
	return 0
}
