package tensor

import (
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// CompositeOp applies a program of element-wise operations: what fusion makes of several applies. It goes through memory once.
type CompositeOp struct {
	prog    *array.Program
	inplace []int8 // for each output 1 more than the input whose memory it takes
}

// NewComposite returns the op of a program, which must not change any more.
func NewComposite(p *array.Program) *CompositeOp {
	return &CompositeOp{prog: p, inplace: make([]int8, p.NumOutputs())}
}

// Program returns the program.
func (op *CompositeOp) Program() *array.Program { return op.prog }

// Inplace returns for each output the input whose memory it takes, or -1.
func (op *CompositeOp) Inplace(output int) int { return int(op.inplace[output]) - 1 }

// WithInplace returns the op whose outputs take the memory of inputs, besides those that do already.
func (op *CompositeOp) WithInplace(takes ...fgraph.Alias) *CompositeOp {
	c := &CompositeOp{prog: op.prog, inplace: append([]int8{}, op.inplace...)}
	for _, al := range takes {
		c.inplace[al.Output] = int8(al.Input + 1)
	}
	return c
}

// mostText bounds how many operations of a program are printed.
const mostText = 12

// programText writes a program as expressions: sin(i0) + cos(i0) as add(sin(i0), cos(i0)). Long ones are only counted.
func programText(p *array.Program) string {
	if p.NumOps() > mostText {
		return fmt.Sprintf("%d ops", p.NumOps())
	}
	texts := make(map[int]string)
	for i := range p.NumInputs() {
		texts[i] = fmt.Sprintf("i%d", i)
	}
	for v, a := range p.Constants() {
		texts[v] = a.String()
	}
	for _, s := range p.Steps() {
		args := make([]string, len(s.Args))
		for i, a := range s.Args {
			args[i] = texts[a]
		}
		name := s.Op.String()
		if s.Op == array.Cast {
			name = "cast{" + p.Type(s.Result).String() + "}"
		}
		text := name + "(" + strings.Join(args, ", ") + ")"
		if len(text) > 20*mostText { // the same value again and again
			return fmt.Sprintf("%d ops", p.NumOps())
		}
		texts[s.Result] = text
	}
	var outs []string
	for _, o := range p.Outputs() {
		outs = append(outs, texts[o])
	}
	return strings.Join(outs, "; ")
}

// String returns for example Composite{add(sin(i0), cos(i0))}.
func (op *CompositeOp) String() string {
	if op.prog == nil {
		return "Composite{}"
	}
	s := "Composite{" + programText(op.prog) + "}"
	for o, i := range op.inplace {
		if i > 0 {
			s += fmt.Sprintf("[(%d, %d)]", o, i-1)
		}
	}
	return s
}

// EqualOp compares the programs.
func (op *CompositeOp) EqualOp(o fgraph.Op) bool {
	p, ok := o.(*CompositeOp)
	if !ok || len(op.inplace) != len(p.inplace) || !op.prog.Equal(p.prog) {
		return false
	}
	for i := range op.inplace {
		if op.inplace[i] != p.inplace[i] {
			return false
		}
	}
	return true
}

// HashOp agrees with EqualOp.
func (op *CompositeOp) HashOp() uint64 { return op.prog.Hash() }

// DestroyMap tells which outputs take the place of inputs.
func (op *CompositeOp) DestroyMap() []fgraph.Alias {
	var list []fgraph.Alias
	for o, i := range op.inplace {
		if i > 0 {
			list = append(list, fgraph.Alias{Output: o, Input: int(i) - 1})
		}
	}
	return list
}

// ToleratesAlias says that the destroyed input may be read twice: a block is read before it is written.
func (op *CompositeOp) ToleratesAlias(_, _ int, same bool) bool { return same }

// Infer broadcasts.
func (op *CompositeOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if err := takes(op, in, op.prog.NumInputs()); err != nil {
		return nil, err
	}
	if len(in) == 0 {
		return nil, &Error{op.String(), -1, "needs an argument"}
	}
	for i, v := range in {
		if t := TypeOf(v); t.DType() != op.prog.Type(i) || t.NDim() != TypeOf(in[0]).NDim() || t.IsCSR() {
			return nil, argError(op, i, "is a %v", t)
		}
	}
	s, arg, dim := broadcast(in)
	if arg > 0 {
		return nil, argError(op, arg, "is a %v, whose dimension %d does not fit the size %d before it", in[arg].Type(), dim, s.shape[dim])
	}
	types := make([]fgraph.Type, op.prog.NumOutputs())
	for i := range types {
		s.dtype = op.prog.OutputType(i)
		types[i] = s.intern()
	}
	return types, nil
}

// Compile returns the loop.
func (op *CompositeOp) Compile(a *fgraph.Apply) (Kernel, error) {
	return elementwise(a, op.prog, op.inplace), nil
}

// InferShape takes every size from the first input that does not broadcast.
func (op *CompositeOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return elementwiseShape(a, s)
}
