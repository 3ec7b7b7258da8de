package ir

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
)

type variable = *fgraph.Variable

// A Builder builds what an op computes from operators of ONNX in their newest meanings: where possible from those of
// version 13, so that any other tool can compute them. Its methods may end Body, as those of Call may end Infer.
//
// Operators of ONNX Runtime compute half floats as float32s and round their results, and so does what is built:
// inputs are float32s if they are asked for by x.
type Builder struct {
	*Call
	applies []*fgraph.Apply
	results []variable
	half    onnx.DataType // of inputs that were half floats
}

// Expand builds what an op computes for inputs, of which the last ones may be left out: its results, those that have
// no meaning being nil, and the new applies in order. The error is an ErrType, also if the shapes of inputs are not known.
func (l *Operators) Expand(op *Op, inputs []*fgraph.Variable) (results []*fgraph.Variable, applies []*fgraph.Apply, err error) {
	c := &Call{Op: op, operators: l, inputs: inputs, out: make([]Type, op.Outputs)}
	var b *Builder
	if err := guarded(func() { b = c.build() }); err != nil {
		return nil, nil, fmt.Errorf("%w: %s: %w", ErrType, op.Name(), err)
	}
	return b.results, b.applies, nil
}

// Build returns what a function builds.
func (l *Operators) Build(build func(b *Builder) *fgraph.Variable) (v *fgraph.Variable, err error) {
	b := &Builder{Call: &Call{Op: new(Op), operators: l}}
	if err := guarded(func() { v = build(b) }); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrType, err)
	}
	return v, nil
}

// build builds what the op computes. Results are half floats again if inputs were, unless Infer says otherwise.
func (c *Call) build() *Builder {
	b := &Builder{Call: c}
	list := c.operator.Body(b)
	b.results = list[:min(len(list), len(c.out))]
	// Infer says which results stay float32s, as statistics do.
	if c.operator.Infer != nil {
		c.operator.Infer(c)
	}
	for k, v := range b.results {
		if v == nil || b.half == onnx.Undefined || TypeOf(v).Elem() != onnx.Float || c.out[k].Elem() == onnx.Float {
			continue
		}
		b.results[k] = b.cast(v, b.half)
	}
	return b
}

// x returns an input, nil if it is left out. Half floats are float32s.
func (b *Builder) x(k int) variable {
	if !b.has(k) {
		return nil
	}
	v := b.inputs[k]
	if t := b.Elem(k); t == onnx.Float16 || t == onnx.BFloat16 {
		b.half = t
		return b.cast(v, onnx.Float)
	}
	return v
}

// Do applies an operator with one result. Arguments are inputs, nil for one that is left out, and attributes.
// A number is a constant of the type of the input in front of it, and a list of integers a constant of int64s.
func (b *Builder) Do(name string, args ...any) variable { return b.several(1, name, args...)[0] }

// several is Do for an operator with several results.
func (b *Builder) several(n int, name string, args ...any) []variable {
	op := Op{Type: name, Outputs: n}
	elem := onnx.Undefined
	var in []variable
	for _, a := range args {
		switch a := a.(type) {
		case *onnx.Attribute:
			op.Attributes = append(op.Attributes, a)
		case []*onnx.Attribute:
			op.Attributes = append(op.Attributes, a...)
		case variable:
			if in = append(in, a); a != nil {
				elem = TypeOf(a).Elem()
			}
		case []int64:
			in = append(in, Int64s(a...))
		case int:
			in = append(in, b.constant(float64(a), elem))
		case float64:
			in = append(in, b.constant(a, elem))
		default:
			in = append(in, nil)
		}
	}
	a, err := b.operators.Apply(b.operators.NewOp(op), in...)
	if err != nil {
		panic(errInfer{err})
	}
	b.applies = append(b.applies, a)
	return a.Outputs()
}

// constant makes a tensor without dimensions.
func (b *Builder) constant(f float64, elem onnx.DataType) variable {
	v, err := Filled(f, elem)
	if err != nil {
		panic(errInfer{fmt.Errorf("%w: %w", errUnranked, err)}) // the type is not known
	}
	return v
}

func (b *Builder) add(x variable, y any) variable { return b.Do("Add", x, y) }
func (b *Builder) sub(x variable, y any) variable { return b.Do("Sub", x, y) }
func (b *Builder) mul(x variable, y any) variable { return b.Do("Mul", x, y) }
func (b *Builder) div(x variable, y any) variable { return b.Do("Div", x, y) }

// plus adds what may be nil.
func (b *Builder) plus(x, y variable) variable {
	if y == nil {
		return x
	}
	return b.add(x, y)
}

// onto adds what is broadcast to the shape of x.
func (b *Builder) onto(x, y variable) variable {
	if y == nil {
		return x
	}
	sum := b.add(x, y)
	// y is not meant to widen x. Add can't know that, and finds an unknown size where one of y is.
	t, ok := TypeOf(sum).Meet(TypeOf(x).withoutData())
	b.failIf(!ok, "a %v is not broadcast to %v", y.Type(), x.Type())
	// The same Add with the better type takes the place of the one built last.
	a := fgraph.NewApply(sum.Owner().Op(), sum.Owner().Inputs(), t)
	b.applies[len(b.applies)-1] = a
	return a.Out()
}

func (b *Builder) cast(x variable, t onnx.DataType) variable {
	if TypeOf(x).Elem() == t {
		return x
	}
	return b.Do("Cast", x, Int("to", int64(t)))
}

// rounded rounds what is computed in float32s to half floats if inputs were such: ONNX Runtime keeps it so.
func (b *Builder) rounded(x variable) variable {
	if b.half == onnx.Undefined {
		return x
	}
	return b.cast(b.cast(x, b.half), onnx.Float)
}

func (b *Builder) reshape(x variable, shape ...int64) variable { return b.Do("Reshape", x, shape) }

func (b *Builder) unsqueeze(x variable, axes ...int64) variable { return b.Do("Unsqueeze", x, axes) }

func (b *Builder) transpose(x variable, perm ...int64) variable {
	return b.Do("Transpose", x, Ints("perm", perm...))
}

// swapped exchanges the last two dimensions.
func (b *Builder) swapped(x variable) variable {
	perm := lists.Range[int64](b.rankOf(x))
	n := len(perm)
	if n < 2 {
		return x
	}
	perm[n-1], perm[n-2] = perm[n-2], perm[n-1]
	return b.transpose(x, perm...)
}

// slice takes the elements from one to the one before another, along an axis.
func (b *Builder) slice(x variable, axis, from, to int64) variable {
	return b.Do("Slice", x, []int64{from}, []int64{to}, []int64{axis})
}

// rest takes the elements from one on.
func (b *Builder) rest(x variable, axis, from int64) variable {
	return b.slice(x, axis, from, math.MaxInt64)
}

func (b *Builder) concat(axis int64, list ...variable) variable {
	args := []any{Int("axis", axis)}
	for _, v := range list {
		args = append(args, v)
	}
	return b.Do("Concat", args...)
}

// reduce reduces along axes, which remain as dimensions of 1.
func (b *Builder) reduce(name string, x variable, axes ...int64) variable {
	return b.Do(name, x, axes, Int("keepdims", 1))
}

// rankOf returns the number of dimensions.
func (b *Builder) rankOf(x variable) int {
	n := TypeOf(x).Rank()
	if n < 0 {
		b.unknown(x)
	}
	return n
}

// number returns a size that has to be known.
func (b *Builder) number(x variable, axis int) int64 {
	n, ok := b.known(x, axis)
	if !ok {
		b.unknown(x)
	}
	return n
}

// unknown ends Body, for which too little is known of a value.
func (b *Builder) unknown(x variable) {
	panic(errInfer{fmt.Errorf("%w: of %s it is %v", errUnranked, opName(x), x.Type())})
}

// known returns a size, counted from the end if the axis is negative, if it is known.
func (b *Builder) known(x variable, axis int) (int64, bool) {
	dims, ranked := TypeOf(x).Shape()
	if !ranked {
		return 0, false
	}
	return dims[b.axis(int64(axis), len(dims))].Number()
}

// size returns a size as a tensor without dimensions.
func (b *Builder) size(x variable, axis int) variable {
	if n, ok := b.known(x, axis); ok {
		return Int64(n)
	}
	if n := TypeOf(x).Rank(); axis < 0 && n >= 0 { // where the rank is not known, Gather counts from the end as well
		axis = b.axis(int64(axis), n)
	}
	return b.Do("Gather", b.Do("Shape", x), Int64(int64(axis)), Int("axis", 0))
}

// sameFirst reports whether the first sizes of two values are known to be the same.
func (b *Builder) sameFirst(x, y variable) bool {
	m, _ := TypeOf(x).Shape()
	n, _ := TypeOf(y).Shape()
	return len(m) > 0 && len(n) > 0 && m[0].Same(n[0])
}

// vector makes a list of tensors without dimensions.
func (b *Builder) vector(list ...variable) variable {
	for i, v := range list {
		list[i] = b.unsqueeze(v, 0)
	}
	return b.concat(0, list...)
}

// scalar gives a tensor of one element no dimensions.
func (b *Builder) scalar(x variable) variable {
	if TypeOf(x).Rank() == 0 {
		return x
	}
	return b.reshape(x)
}

// integers returns an input of integers as int64s.
func (b *Builder) integers(k int) variable { return b.cast(b.input(k), onnx.Int64) }

// upTo returns the numbers from 0 to the one before n.
func (b *Builder) upTo(n variable) variable {
	return b.Do("Range", Int64(0), n, Int64(1))
}

// keep returns the attributes of these names that the op has.
func (b *Builder) keep(names ...string) (list []*onnx.Attribute) {
	for _, name := range names {
		if a := b.Attribute(name); a != nil {
			list = append(list, a)
		}
	}
	return list
}

// vectorOf makes a constant of a list of float32s.
func vectorOf(list ...float32) variable {
	return Constant(NewValue(&onnx.Tensor{DataType: onnx.Float, Dims: []int64{int64(len(list))}, Floats: list}, ""), "")
}

// scalarOf makes a constant of a float32 without dimensions.
func scalarOf(f float64) variable {
	v, _ := Filled(f, onnx.Float)
	return v
}
