package tensorpass

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
)

// Vocabulary gives the names in patterns the meaning that they have in expressions: those of expr.Op. A number in a pattern is a
// constant all of whose elements are that number; in a replacement it has the type of elements of what is replaced, and broadcasts.
type Vocabulary struct{}

// Operator returns the op of a name.
func (Vocabulary) Operator(name string) (pattern.Operator, bool) {
	op, ok := expr.Op(name)
	if !ok {
		return pattern.Operator{}, false
	}
	o := pattern.Operator{Match: pattern.Is(op), MinInputs: 1, MaxInputs: -1, Tracks: []rewrite.Track{rewrite.TrackOp(op)}}
	o.Make = func(in []*fgraph.Variable) (*fgraph.Variable, error) {
		return tensor.Try(func() *fgraph.Variable { return tensor.MustApply(op, in...) })
	}
	if e, ok := op.(tensor.Elemwise); ok {
		o.Commutes = e.Commutes()
		if n := e.Op.NumArgs(); n >= 0 {
			o.MinInputs, o.MaxInputs = n, n
		}
		o.Make = func(in []*fgraph.Variable) (*fgraph.Variable, error) {
			return tensor.Try(func() *fgraph.Variable { return tensor.MapOp(e, in...) })
		}
	}
	return o, true
}

// Equal reports whether all elements of a constant are a number.
func (Vocabulary) Equal(l pattern.Literal, c *fgraph.Variable) bool {
	if _, ok := c.Type().(tensor.Type); !ok {
		return false
	}
	return is(c, l.Float())
}

// Constant returns a number as a constant.
func (Vocabulary) Constant(l pattern.Literal, like *fgraph.Variable) (*fgraph.Variable, error) {
	if _, ok := like.Type().(tensor.Type); !ok {
		return nil, fmt.Errorf("%w: the number %s for a %v", tensor.ErrType, l, like.Type())
	}
	return tensor.Number(l.Float(), like), nil
}
