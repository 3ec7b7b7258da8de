package tensor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tensor/array"
)

// Ops embed the types below for the methods that they have in common.

// likeFirst gives the output the shape of the first input.
type likeFirst struct{}

// InferShape implements ShapeInferer.
func (likeFirst) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{s.Shape(a.Inputs()[0])}
}

// likeSecond gives the output the shape of the second input.
type likeSecond struct{}

// InferShape implements ShapeInferer.
func (likeSecond) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{s.Shape(a.Inputs()[1])}
}

// likeProduct gives the output the shape of the product of the first two inputs, which are
// matrices.
type likeProduct struct{}

// InferShape implements ShapeInferer.
func (likeProduct) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{{s.Dim(a.Inputs()[0], 0), s.Dim(a.Inputs()[1], 1)}}
}

// viewsFirst makes the output a view of the first input.
type viewsFirst struct{}

// ViewMap implements fgraph.Viewer.
func (viewsFirst) ViewMap() []fgraph.Alias { return []fgraph.Alias{{Output: 0, Input: 0}} }

// noGradient makes all gradients zero.
type noGradient struct{}

// Grad implements Differentiable.
func (noGradient) Grad(a *fgraph.Apply, _ []*fgraph.Variable) []*fgraph.Variable {
	return make([]*fgraph.Variable, len(a.Inputs()))
}

// passesGradient passes the gradient on to the first input only.
type passesGradient struct{}

// Grad implements Differentiable.
func (passesGradient) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	return gradients(a, out[0])
}

// gradients returns the gradients of all inputs of an apply: those of the first ones, and nil.
func gradients(a *fgraph.Apply, first ...*fgraph.Variable) []*fgraph.Variable {
	return append(first, make([]*fgraph.Variable, len(a.Inputs())-len(first))...)
}

// destroys returns the DestroyMap of an op that overwrites an input if inplace is set.
func destroys(inplace bool, input int) []fgraph.Alias {
	if inplace {
		return []fgraph.Alias{{Output: 0, Input: input}}
	}
	return nil
}

func inplaceName(name string, inplace bool) string {
	if inplace {
		return name + "{inplace}"
	}
	return name
}

// target makes out what an op adds to: the operand itself if the op works in place, otherwise a
// copy. The elements are not copied if the factor of the operand is 0.
func target(ws *array.Workspace, inplace bool, out, operand *array.Array, factor float64) error {
	if inplace {
		*out = *operand
		return nil
	}
	if err := ws.New(out, operand.DType(), operand.Shape()...); err != nil {
		return err
	}
	if factor != 0 {
		ws.Copy(out, operand)
	}
	return nil
}

// wrongCount returns the error of an op that takes n inputs. Infer checks the number itself, as a call
// with the op as an interface would allocate.
func wrongCount(op fgraph.Op, in []*fgraph.Variable, n int) error {
	if n == 1 {
		return opError(op, "takes one argument, not %d", len(in))
	}
	return opError(op, "takes %d arguments, not %d", n, len(in))
}

// agree returns the size that two dimensions have in common.
func agree(op fgraph.Op, arg, n, m int) (int32, error) {
	switch {
	case n == m || m == Unknown:
		return int32(n), nil
	case n == Unknown:
		return int32(m), nil
	}
	return 0, argError(op, arg, "has size %d where %d is expected", m, n)
}

// one returns the list of one output type.
func one(t Type) []fgraph.Type { return []fgraph.Type{t} }

// typed returns the list of one output type, unless there is an error.
func typed(t Type, err error) ([]fgraph.Type, error) {
	if err != nil {
		return nil, err
	}
	return one(t), nil
}

// inferred is typed for what a type consists of.
func inferred(s spec, err error) ([]fgraph.Type, error) {
	if err != nil {
		return nil, err
	}
	return one(s.intern()), nil
}

// shapeFault wraps an error of package array about shapes.
func shapeFault(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrShape, err)
	}
	return err
}

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
	in := lists.Map(a.Inputs(), ConstantOf)
	out, err := Run(a, k, &array.Workspace{MaxBytes: 1 << 28, Context: ctx}, in)
	if err != nil {
		return nil, err
	}
	for i, o := range out {
		out[i] = o.Clone() // not a view of an input or of a larger buffer
	}
	return out, nil
}
