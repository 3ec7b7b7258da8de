package tensor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// ErrPanic is the error of a kernel that panics.
var ErrPanic = errors.New("panic")

// Run runs the kernel of an apply once. The values of the inputs stay as they are, even if the op overwrites
// one. Results may be views of them.
func Run(a *fgraph.Apply, k Kernel, ws *array.Workspace, in []*array.Array) (out []*array.Array, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("%w: %v", ErrPanic, p)
		}
	}()
	if d, ok := a.Op().(fgraph.Destroyer); ok {
		for i, alias := range d.DestroyMap() {
			if i == 0 {
				in = slices.Clone(in)
			}
			in[alias.Input] = in[alias.Input].Clone()
		}
	}
	out = make([]*array.Array, len(a.Outputs()))
	for i := range out {
		out[i] = new(array.Array)
	}
	return out, k(ws, in, out)
}

// Fold computes the outputs of an apply whose inputs are constants, within 256 megabytes. The arrays
// are the caller's.
func Fold(ctx context.Context, a *fgraph.Apply) ([]*array.Array, error) {
	k, err := Compile(a)
	if err != nil {
		return nil, err
	}
	in := make([]*array.Array, len(a.Inputs()))
	for i, v := range a.Inputs() {
		in[i] = ConstantOf(v)
	}
	out, err := Run(a, k, &array.Workspace{MaxBytes: 1 << 28, Context: ctx}, in)
	if err != nil {
		return nil, err
	}
	for i, o := range out {
		out[i] = o.Clone() // not a view of an input or of a larger buffer
	}
	return out, nil
}
