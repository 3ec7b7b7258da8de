package tensors

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// A drawer draws the inputs and constants of one expression.
type drawer struct {
	*domain
	tape     *rulecheck.Tape
	dtype    array.DType
	shape    []int
	scatters int // 1: element types differ; 2: shapes do
}

// Begin chooses the type of most inputs.
func (d *domain) Begin(t *rulecheck.Tape) rulecheck.Drawer {
	return &drawer{domain: d, tape: t, dtype: dtypes[t.Draw(len(dtypes))], shape: baseShapes[t.Draw(len(baseShapes))], scatters: t.Draw(4)}
}

// baseShapes are shapes of arguments, the simplest first.
var baseShapes = [][]int{
	{}, {-1}, {-1, -1}, {-1, -1, -1}, {1}, {1, -1}, {-1, 1}, {3}, {2, 3}, {3, 3}, {1, 1}, {1, -1, -1}, {-1, 1, -1}, {-1, -1, 1}, {2, 3, 4}, {1, 1, 1},
}

// constants are the values of names that have to be known.
var constants = []float64{1, 2, -1, 0, 0.5, 3, -2, 1.5, 4, -0.5, 10, 0.1, 5, 7, -3, 6}

// Argument makes an input or a constant.
func (b *drawer) Argument(name string, asked bool) (*variable, error) {
	t, given := b.types[name]
	if !given {
		t = b.chooseType()
	}
	// Most names are inputs. One that a guard or a formula looks at is a constant half of the time,
	// because guards mostly ask for its value; or it is the size of a dimension, because guards
	// also ask for shapes.
	odds := 16
	if asked {
		odds = 2
		if !given && b.tape.Maybe(8) {
			return b.size(name)
		}
	}
	if !b.tape.Maybe(odds) || t.IsCSR() {
		return newInput(t, name), nil
	}
	return b.constant(t, given), nil
}

// size makes the size of a dimension, if the vocabulary has an op for it.
func (b *drawer) size(name string) (*variable, error) {
	op, ok := b.vocab.Operator("Shape_i{0}")
	if !ok {
		return nil, rulecheck.ErrUnfit
	}
	return rulecheck.Apply(op, nil, []*variable{newInput(tensor.NewType(b.dtype, tensor.Unknown), name+"_of")}, nil)
}

// Indexes counts the inputs that are indexes, which print as underscores.
func (b *drawer) Indexes(op pattern.Operator, have int) int {
	if len(op.Tracks) == 1 && op.Tracks[0].Op() != nil {
		if _, parameters, ok := strings.Cut(op.Tracks[0].Op().String(), "{"); ok && have == 1 && !op.Commutes {
			return strings.Count(parameters, "_")
		}
	}
	return -1
}

// Rest makes an input.
func (b *drawer) Rest(name string, index bool) *variable {
	t, given := b.types[name]
	switch {
	case given:
	case index:
		t = tensor.ScalarType(array.Int64)
	default:
		t = b.chooseType()
	}
	return newInput(t, name)
}

// chooseType chooses the type of an argument: that of all, or a variation of it.
func (b *drawer) chooseType() tensor.Type {
	// An expression has one element type and one shape, unless its first choices say that either
	// scatters. Most types that are drawn independently don't fit together, and the expression
	// can't be built.
	dtype, shape := b.dtype, b.shape
	if b.scatters&1 != 0 && b.tape.Draw(2) == 1 {
		dtype = dtypes[b.tape.Draw(len(dtypes))]
	}
	if b.scatters&2 != 0 {
		switch b.tape.Draw(5) {
		case 1:
			shape = nil
		case 2:
			if len(shape) > 0 {
				shape = slices.Clone(shape)
				shape[b.tape.Draw(len(shape))] = 1
			}
		case 3:
			shape = baseShapes[b.tape.Draw(len(baseShapes))]
		case 4:
			return integerTypes[b.tape.Draw(len(integerTypes))]
		}
	}
	return tensor.NewType(dtype, shape...)
}

// integerTypes are those of indexes, sizes and shapes.
var integerTypes = []tensor.Type{
	tensor.ScalarType(array.Int64), tensor.NewType(array.Int64, 2), tensor.NewType(array.Int64, 1), tensor.VectorType(array.Int64), tensor.NewType(array.Int64, 3),
}

// constant makes a constant of a type: one number, a tensor of it, or different numbers.
func (b *drawer) constant(t tensor.Type, given bool) *variable {
	x := constants[b.tape.Draw(len(constants))]
	if !t.DType().IsFloat() && x != float64(int64(x)) {
		x = float64(int64(4 * x))
	}
	shape := t.Shape()
	form := b.tape.Draw(6)
	for d, n := range shape {
		switch {
		case n == tensor.Unknown && (form >= 4 || given || b.scatters == 0):
			shape[d] = 3
		case form < 4 && !given && b.scatters != 0:
			shape[d] = 1
		}
	}
	a := array.Full(t.DType(), x, shape...)
	if form == 5 {
		for i := range a.Len() {
			a.SetFloat(i, a.Float(i)+float64(i))
		}
	}
	if form == 3 && !given {
		a = array.Full(t.DType(), singular[b.tape.Draw(len(singular))], shape...)
	}
	return tensor.Constant(a)
}

// Literal makes a number of a pattern, as a constant of one or of several elements.
func (b *drawer) Literal(l pattern.Literal) (*variable, error) {
	dtype, shape := b.dtype, []int(nil)
	switch b.tape.Draw(6) {
	case 1:
		dtype = array.Int64
	case 2:
		dtype = dtypes[b.tape.Draw(len(dtypes))]
	}
	// A number of a pattern also matches a constant of several elements, of which all equal it. It
	// must not be larger than what it is combined with, because it would then determine the shape
	// of the result, and dropping it would change that.
	form := b.tape.Draw(4)
	if b.scatters != 0 && form == 3 {
		form = 1 // a number is not larger than what it is combined with
	}
	if form > 0 {
		shape = slices.Clone(b.shape)
	}
	for d, n := range shape {
		if form < 3 {
			shape[d] = 1
		} else if n == tensor.Unknown {
			shape[d] = 3
		}
	}
	like := newInput(tensor.NewType(dtype, shape...), "")
	v, err := b.vocab.Constant(l, like)
	if err != nil {
		return nil, err
	}
	if a := tensor.ConstantOf(v); a != nil && form == 3 {
		v = tensor.Constant(array.Full(a.DType(), l.Float(), shape...))
	}
	if !b.vocab.Equal(l, v) {
		return nil, rulecheck.ErrUnfit
	}
	return v, nil
}
