package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// Fold computes the outputs of an apply whose inputs are constants, within 256 megabytes. The arrays
// are the caller's.
func Fold(a *fgraph.Apply) ([]*array.Array, error) {
	k, err := Compile(a)
	if err != nil {
		return nil, err
	}
	in, out := make([]*array.Array, len(a.Inputs())), make([]*array.Array, len(a.Outputs()))
	for i, v := range a.Inputs() {
		in[i] = ConstantOf(v)
	}
	for i := range out {
		out[i] = new(array.Array)
	}
	ws := array.Workspace{MaxBytes: 1 << 28}
	if err := k(&ws, in, out); err != nil {
		return nil, err
	}
	for i, o := range out {
		out[i] = o.Clone() // not a view of an input or of a larger buffer
	}
	return out, nil
}
