package tensorpass

import (
	"fmt"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
)

// Vocabulary returns the meaning of names and numbers in patterns of tensors. Ops have the names
// that [expr.Op] knows. A number in a pattern matches a constant all of whose elements are
// that number; a number in a replacement has the element type of what is replaced, and broadcasts.
func Vocabulary() pattern.Vocabulary { return vocabulary{} }

type vocabulary struct{}

// Operator returns the op of a name.
func (vocabulary) Operator(name string) (pattern.Operator, bool) {
	op, ok := expr.Op(name)
	if !ok {
		return pattern.Operator{}, false
	}
	o := pattern.Operator{Match: pattern.Is(op), MinInputs: 1, MaxInputs: -1, Tracks: []rewrite.Track{rewrite.TrackOp(op)}}
	build := func(in []*variable) *variable { return tensor.MustApply(op, in...) }
	if e, ok := op.(tensor.Elemwise); ok {
		o.Commutes = e.Commutes()
		if n := e.Op.NumArgs(); n >= 0 {
			o.MinInputs, o.MaxInputs = n, n
		}
		build = func(in []*variable) *variable { return tensor.MapOp(e, in...) }
	}
	o.Make = func(in []*variable) (*variable, error) { return tensor.Try(func() *variable { return build(in) }) }
	return o, true
}

// Equal reports whether all elements of a constant are a number.
func (vocabulary) Equal(l pattern.Literal, c *variable) bool {
	_, ok := c.Type().(tensor.Type)
	return ok && is(c, l.Float())
}

// Constant returns a number as a constant.
func (vocabulary) Constant(l pattern.Literal, like *variable) (*variable, error) {
	if _, ok := like.Type().(tensor.Type); !ok {
		return nil, fmt.Errorf("%w: the number %s for a %v", tensor.ErrType, l, like.Type())
	}
	return tensor.Number(l.Float(), like), nil
}
