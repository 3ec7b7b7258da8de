package tensor

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// CompositeOp runs a program of element-wise operations, which reads and writes memory once. Fusion
// makes it of several applies.
type CompositeOp struct{ compositeOp }

type compositeOp struct {
	prog    *array.Program
	inplace []int8 // for each output the input that it overwrites, plus 1; 0 means none
}

// NewComposite returns the op of a program that Return has ended.
func NewComposite(p *array.Program) *CompositeOp {
	return &CompositeOp{compositeOp{prog: p, inplace: make([]int8, p.NumOutputs())}}
}

// Program returns the program.
func (op *CompositeOp) Program() *array.Program { return op.prog }

// Inplace returns the input that an output overwrites, or -1.
func (op *CompositeOp) Inplace(output int) int { return int(op.inplace[output]) - 1 }

// WithInplace returns the op with further outputs that overwrite inputs.
func (op *CompositeOp) WithInplace(aliases ...fgraph.Alias) *CompositeOp {
	c := &CompositeOp{compositeOp{prog: op.prog, inplace: slices.Clone(op.inplace)}}
	for _, alias := range aliases {
		c.inplace[alias.Output] = int8(alias.Input + 1)
	}
	return c
}

// String returns for example Composite{add(sin(i0), cos(i0))}.
func (op *compositeOp) String() string {
	if op.prog == nil {
		return "Composite{}"
	}
	s := "Composite{" + op.prog.String() + "}"
	for o, i := range op.inplace {
		if i > 0 {
			s += fmt.Sprintf("[(%d, %d)]", o, i-1)
		}
	}
	return s
}

// EqualOp reports whether two ops are the same op.
func (op *compositeOp) EqualOp(o fgraph.Op) bool {
	p, ok := o.(*CompositeOp)
	return ok && slices.Equal(op.inplace, p.inplace) && op.prog.Equal(p.prog)
}

// HashOp returns a hash that agrees with EqualOp.
func (op *compositeOp) HashOp() uint64 { return op.prog.Hash() }

// DestroyMap says which inputs the op overwrites.
func (op *compositeOp) DestroyMap() []fgraph.Alias {
	var list []fgraph.Alias
	for o, i := range op.inplace {
		if i > 0 {
			list = append(list, fgraph.Alias{Output: o, Input: int(i) - 1})
		}
	}
	return list
}

// Infer implements Op.
func (op *compositeOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != op.prog.NumInputs() {
		return nil, wrongCount(op, in, op.prog.NumInputs())
	}
	if len(in) < 1 {
		return nil, opError(op, "needs %d arguments, not %d", 1, len(in))
	}
	for i, v := range in {
		if t := TypeOf(v); t.DType() != op.prog.Type(i) || t.NDim() != TypeOf(in[0]).NDim() || t.IsCSR() {
			return nil, argError(op, i, "is a %v", t)
		}
	}
	s, err := broadcast(in)
	if err != nil {
		err.Op = op.String()
		return nil, err
	}
	types := make([]fgraph.Type, op.prog.NumOutputs())
	for i := range types {
		s.dtype = op.prog.OutputType(i)
		types[i] = s.intern()
	}
	return types, nil
}

// Compile implements Op.
func (op *compositeOp) Compile(a *fgraph.Apply) (Kernel, error) {
	return elementwise(a, op.prog, op.inplace), nil
}

// ToleratesAlias implements fgraph.AliasTolerator.
func (op *compositeOp) ToleratesAlias(_, _ int, same bool) bool { return same }

// InferShape implements ShapeInferer.
func (op *compositeOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return broadcastShape(a, s)
}
