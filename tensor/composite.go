package tensor

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
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

// Fuse returns an apply of a [CompositeOp] that computes what several element-wise applies compute,
// which are in the order of the computation. Its outputs take the place of those variables that
// something else reads. The apply is nil if there are only constants to compute from.
func Fuse(group []*fgraph.Apply) (a *fgraph.Apply, replaced []*fgraph.Variable, err error) {
	member := make(map[*fgraph.Apply]bool, len(group))
	for _, a := range group {
		member[a] = true
	}
	var inputs []*fgraph.Variable
	var types []array.DType
	values := make(map[*fgraph.Variable]int) // in the program
	for _, a := range group {
		for _, v := range a.Inputs() {
			// In a walk of its own, because a program numbers its inputs before its steps.
			if _, known := values[v]; !known && !member[v.Owner()] && !Inlined(v) {
				values[v] = len(inputs)
				inputs, types = append(inputs, v), append(types, TypeOf(v).DType())
			}
		}
	}
	if len(inputs) == 0 {
		return nil, nil, nil
	}
	prog := array.NewProgram(types...)
	for _, a := range group {
		addTo(prog, a, values)
	}
	var results []int
	for _, a := range group {
		for _, v := range a.Outputs() {
			// What only members of the group read is never stored.
			if slices.ContainsFunc(v.Clients(), func(c fgraph.Client) bool { return c.Apply == nil || !member[c.Apply] }) {
				replaced, results = append(replaced, v), append(results, values[v])
			}
		}
	}
	a, err = Make(NewComposite(prog.Return(results...)), inputs...)
	return a, replaced, err
}

// unfused returns what a size is that is computed by a fused op, op by op, and any other variable itself.
func unfused(v *fgraph.Variable) *fgraph.Variable {
	op, ok := OpOf(v).(*CompositeOp)
	if !ok || !isSize(v) {
		return v
	}
	values := slices.Clone(v.Owner().Inputs())
	for x := range op.prog.Values() {
		if x.Constant != nil {
			values = append(values, Constant(x.Constant))
			continue
		}
		args := lists.Map(x.Args, func(k int32) *fgraph.Variable { return values[k] })
		e := OpFor(x.Op)
		if x.Op == array.Cast {
			e = Elemwise{Op: x.Op, To: x.Type}
		}
		values = append(values, MustApply(e, args...))
	}
	return values[op.prog.Results()[slices.Index(v.Owner().Outputs(), v)]]
}

// Inlined reports whether [Fuse] makes v a part of the program: it is a constant of one element.
func Inlined(v *fgraph.Variable) bool {
	a := ConstantOf(v)
	return a != nil && a.Len() == 1
}

// addTo adds what an element-wise apply computes to a program.
func addTo(prog *array.Program, a *fgraph.Apply, values map[*fgraph.Variable]int) {
	args := make([]int, len(a.Inputs()))
	for i, v := range a.Inputs() {
		x, known := values[v]
		if !known {
			x = prog.Constant(ConstantOf(v))
			values[v] = x
		}
		args[i] = x
	}
	switch op := a.Op().(type) {
	case Fusible:
		values[a.Out()] = op.AddTo(prog, args...)
	case *CompositeOp:
		for i, x := range prog.Inline(op.Program(), args...) {
			values[a.Outputs()[i]] = x
		}
	}
}
