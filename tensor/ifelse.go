package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// IfElseOp returns one of two lists of tensors, as its first input, a bool without dimensions, says: the
// inputs behind it if it is true, and otherwise those behind these. Its field Outputs is the length of the
// lists. A function computes only the list that is returned, see [Guards].
type IfElseOp = ifElseOp

type ifElseOp struct{ Outputs int }

// MaxIfElse bounds the tensors that an IfElseOp returns.
const MaxIfElse = 1 << 10

// IfElse returns the tensors of then if the condition is not zero, and otherwise those of the other list. What
// only the other list needs is not computed, unlike in [Switch], and may be impossible to compute. Tensors in
// the same places have the same types, but for their sizes. The condition has one element.
func IfElse(condition *fgraph.Variable, then, otherwise []*fgraph.Variable) []*fgraph.Variable {
	op := ifElseOp{len(then)}
	if len(then) != len(otherwise) {
		panic(opError(op, "%d tensors or %d", len(then), len(otherwise)))
	}
	in := append([]*fgraph.Variable{truth(condition)}, then...)
	return MustApply(op, append(in, otherwise...)...).Owner().Outputs()
}

// String returns IfElse, and behind it in braces the number of outputs if there are several.
func (op ifElseOp) String() string {
	if op.Outputs == 1 {
		return "IfElse"
	}
	return fmt.Sprintf("IfElse{%d}", op.Outputs)
}

func (op ifElseOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	k := op.Outputs
	if k < 1 || k > MaxIfElse {
		return nil, opError(op, "has %d outputs, there can be 1 to %d", k, MaxIfElse)
	}
	if len(in) != 1+2*k {
		return nil, wrongCount(op, in, 1+2*k)
	}
	if TypeOf(in[0]) != ScalarType(array.Bool) {
		return nil, argError(op, 0, "is a %v, not a bool", in[0].Type())
	}
	types := make([]fgraph.Type, k)
	for i := range types {
		x, y := TypeOf(in[1+i]), TypeOf(in[1+k+i])
		if x.DType() != y.DType() || x.NDim() != y.NDim() || x.IsCSR() || y.IsCSR() {
			return nil, argError(op, 1+k+i, "is a %v, and the other one a %v", y, x)
		}
		shape := x.Shape()
		for d, n := range shape {
			if n != y.Dim(d) {
				shape[d] = Unknown
			}
		}
		types[i] = NewType(x.DType(), shape...)
	}
	return types, nil
}

// InferShape implements ShapeInferer: sizes are known that both tensors have.
func (op ifElseOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	all := make([][]*fgraph.Variable, op.Outputs)
	for i := range all {
		x, y := s.Shape(a.Inputs()[1+i]), s.Shape(a.Inputs()[1+op.Outputs+i])
		for d := range x {
			if !SameSize(x[d], y[d]) {
				x = nil // and no size is asked of a tensor that may not be computed
				break
			}
		}
		all[i] = x
	}
	return all
}

// Compile returns what copies tensors.
func (op ifElseOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		chosen := in[1:]
		if in[0].Int(0) == 0 {
			chosen = in[1+op.Outputs:]
		}
		for i := range out {
			if err := ws.New(out[i], chosen[i].DType(), chosen[i].Shape()...); err != nil {
				return err
			}
			array.CopyTo(out[i], chosen[i])
		}
		return nil
	}, nil
}

// Grad implements Differentiable.
func (op ifElseOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	k, in := op.Outputs, a.Inputs()
	grads := make([]*fgraph.Variable, len(in))
	for i, g := range out {
		if g == nil {
			continue
		}
		for j, x := range []*fgraph.Variable{in[1+i], in[1+k+i]} {
			// An IfElse again: what leads to the gradient of a branch that is not taken is not computed either.
			// It is 0.
			lists := [2][]*fgraph.Variable{{g}, {g}}
			lists[1-j] = []*fgraph.Variable{Second(x, Number(0, g))}
			grads[1+j*k+i] = IfElse(in[0], lists[0], lists[1])[0]
		}
	}
	return grads
}
