package tensor

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

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
		args := make([]*fgraph.Variable, len(x.Args))
		for i, k := range x.Args {
			args[i] = values[k]
		}
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
