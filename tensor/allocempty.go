package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// AllocEmptyOp makes a tensor with undefined elements, of the sizes that are its inputs. Ops that
// work in place write to it. Its field DType is the element type.
type AllocEmptyOp = allocEmptyOp

type allocEmptyOp struct{ DType array.DType }

// AllocEmpty returns a tensor of the given sizes with undefined elements.
func AllocEmpty(dtype array.DType, dims ...*fgraph.Variable) *fgraph.Variable {
	in := make([]*fgraph.Variable, len(dims))
	for i, d := range dims {
		in[i] = AsSize("AllocEmpty", d)
	}
	return MustApply(AllocEmptyOp{DType: dtype}, in...)
}

func (op allocEmptyOp) String() string { return "AllocEmpty{" + op.DType.String() + "}" }

// Unmergeable tells that two of these are different memory.
func (op allocEmptyOp) Unmergeable() bool { return true }

func (op allocEmptyOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	s, err := sizesOf(op, 0, in)
	if err != nil {
		return nil, err
	}
	s.dtype = op.DType
	return one(s.intern()), nil
}

// Compile returns a kernel that writes zeros, so that a result that wrongly depends on them is the
// same in every run.
func (op allocEmptyOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		shape, err := readSizes(op, &buf, in)
		if err != nil {
			return err
		}
		if err := ws.New(out[0], op.DType, shape...); err != nil {
			return err
		}
		ws.Copy(out[0], array.Full(op.DType, 0))
		return nil
	}, nil
}

func (op allocEmptyOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{a.Inputs()}
}

// Fold keeps constant folding from making one memory of several.
func (op allocEmptyOp) Fold(*fgraph.Apply) bool { return false }
