package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// AssertOp returns its first input if all others, which are bools without dimensions, are true.
// Otherwise it fails with the message in its field Message.
type AssertOp = assertOp

type assertOp struct {
	likeFirst
	viewsFirst
	passesGradient
	Message string
}

// Assert returns x, provided that the conditions hold when the function runs.
func Assert(x *fgraph.Variable, message string, conditions ...*fgraph.Variable) *fgraph.Variable {
	in := []*fgraph.Variable{x}
	for _, c := range conditions {
		in = append(in, truth(c))
	}
	return MustApply(AssertOp{Message: message}, in...)
}

// truth returns whether the only element of v is not zero, as a bool without dimensions.
func truth(v *fgraph.Variable) *fgraph.Variable {
	v = DimShuffle(v)
	if a := ConstantOf(v); a != nil {
		return castConstant(v, array.Bool)
	} else if TypeOf(v).DType() != array.Bool {
		return Map(array.Neq, v, Number(0, v))
	}
	return v
}

func (op assertOp) String() string { return "Assert{" + op.Message + "}" }

func (op assertOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) == 0 {
		return nil, opError(op, "needs a value")
	}
	for i, v := range in[1:] {
		if TypeOf(v) != ScalarType(array.Bool) {
			return nil, argError(op, i+1, "is a %v, not a bool", v.Type())
		}
	}
	return []fgraph.Type{in[0].Type()}, nil
}

func (op assertOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(_ *array.Workspace, in, out []*array.Array) error {
		for _, c := range in[1:] {
			if c.Float(0) == 0 {
				return fmt.Errorf("%w: %s", ErrAssert, op.Message)
			}
		}
		*out[0] = *in[0]
		return nil
	}, nil
}
