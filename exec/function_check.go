package exec

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// kept returns copies of the inputs of step i: nil for inputs that may be overwritten, directly or
// through an alias, and for sparse ones, whose elements ops can't reach.
func (r *Runner) kept(i int) []*array.Array {
	s, o := &r.f.steps[i], &r.steps[i]
	may := make(map[int32]bool) // by root
	for _, alias := range destroyMap(s.apply.Op()) {
		may[r.f.roots[s.in[alias.Input]]] = true
	}
	list := make([]*array.Array, len(o.in))
	for k, a := range o.in {
		if !may[r.f.roots[s.in[k]]] && !a.IsCSR() {
			list[k] = a.Clone()
		}
	}
	return list
}

// check verifies that step i did what its op declares: which inputs it overwrites, which of them
// its outputs share memory with, and the types of its outputs.
func (r *Runner) check(i int, before []*array.Array) error {
	s, o := &r.f.steps[i], &r.steps[i]
	for k, a := range before {
		if a != nil && !array.Equal(a, o.in[k]) {
			return fmt.Errorf("%w: it overwrites its input %d, which is not in its destroy map", fgraph.ErrDeclaration, k)
		}
	}
	if o.room != nil && o.room.Taken() {
		return fmt.Errorf("%w: it keeps memory of the workspace that is not that of an output", fgraph.ErrDeclaration)
	}
	for k, out := range o.out {
		if err := s.apply.Outputs()[k].Type().(tensor.Type).Holds(out); err != nil {
			return fmt.Errorf("%w: output %d is not what was inferred: %w", fgraph.ErrDeclaration, k, err)
		}
		root := r.f.roots[s.out[k]]
		for j, in := range o.in {
			// Arguments may overlap each other: then what is a view of one is in the memory of both.
			declared := root != s.out[k] && r.headers[root].Overlaps(in)
			if r.f.roots[s.in[j]] != root && out.Overlaps(in) && !declared {
				return fmt.Errorf("%w: output %d is in the memory of input %d, which is neither in its view map nor in its destroy map", fgraph.ErrDeclaration, k, j)
			}
		}
		for j, other := range o.out[:k] {
			if r.f.roots[s.out[j]] != root && out.Overlaps(other) {
				return fmt.Errorf("%w: outputs %d and %d are in the same memory", fgraph.ErrDeclaration, j, k)
			}
		}
	}
	return nil
}

// claimTolerance is the relative difference that rounding may explain.
const claimTolerance = 1e-4

// A claim is an op on inputs of some types, whose declarations are checked once.
type claim struct {
	op    fgraph.Op
	types string
}

// checkClaims verifies what the op of step i declares by optional interfaces: the shapes of its
// outputs, that two inputs may be swapped, the twin that overwrites an input, and how it becomes part
// of a larger op. An op that overwrites an input has lost it; its twin is checked instead.
func (r *Runner) checkClaims(i int) error {
	s, o := &r.f.steps[i], &r.steps[i]
	// Inputs are needed as they were before the op ran. An op that destroys one can't be run again,
	// so its claims are checked where the other twin appears, which names it as Overwriting.
	op := s.apply.Op().(tensor.Op)
	if len(destroyMap(op)) > 0 {
		return nil
	}
	var types []string
	for _, v := range s.apply.Inputs() {
		types = append(types, v.Type().String())
	}
	c := claim{op, strings.Join(types, ", ")}
	// A graph holds the same op on the same types many times, and a function is called many times.
	// Each check compiles and runs a function, so a claim is checked at its first use only. Types
	// include static shapes, on which an op may depend.
	if r.claims[c] {
		return nil
	}
	if r.claims == nil {
		r.claims = make(map[claim]bool)
	}
	r.claims[c] = true
	call := claimCheck{a: s.apply, in: o.in, out: o.out}
	if inferer, ok := op.(tensor.ShapeInferer); ok {
		if err := call.shapes(inferer); err != nil {
			return err
		}
	}
	if commutes, ok := op.(tensor.Commutative); ok && commutes.Commutes() && len(o.in) > 1 {
		swapped := slices.Clone(s.apply.Inputs())
		swapped[0], swapped[1] = swapped[1], swapped[0]
		if err := call.same(op, swapped, "with its first two inputs swapped, although it says that it commutes"); err != nil {
			return err
		}
	}
	if in, ok := op.(tensor.Overwriter); ok {
		if twin := in.Overwriting(); twin != nil {
			if len(destroyMap(twin)) == 0 {
				return fmt.Errorf("%w: its twin in place, %v, overwrites nothing", fgraph.ErrDeclaration, twin)
			}
			if err := call.same(twin, s.apply.Inputs(), fmt.Sprintf("as its twin in place, %v", twin)); err != nil {
				return err
			}
		}
	}
	if f, ok := op.(tensor.Fusible); ok {
		if err := call.same(fused{f}, s.apply.Inputs(), "as part of a larger op"); err != nil {
			return err
		}
	}
	return nil
}

// fused computes a Fusible op as part of a larger one is computed.
type fused struct{ tensor.Fusible }

// Compile compiles the program of the op.
func (f fused) Compile(a *fgraph.Apply) (tensor.Kernel, error) {
	return tensor.CompileFusible(f.Fusible, a)
}

// claimCheck has the inputs and outputs of an apply that was computed.
type claimCheck struct {
	a       *fgraph.Apply
	in, out []*array.Array
}

// inputs returns a variable for each input, those of them that are no constants, and their values.
func (c *claimCheck) inputs(of []*fgraph.Variable) (all, free []*fgraph.Variable, args []*array.Array) {
	for _, v := range of {
		if v.IsConstant() {
			all = append(all, fgraph.NewConstant(v.Type(), v.Data(), ""))
			continue
		}
		w := fgraph.NewInput(v.Type(), "")
		all, free = append(all, w), append(free, w)
		args = append(args, c.in[slices.Index(c.a.Inputs(), v)].Clone())
	}
	return all, free, args
}

// same returns an error unless op computes the outputs from the inputs.
func (c *claimCheck) same(op tensor.Op, of []*fgraph.Variable, how string) error {
	for _, alias := range destroyMap(op) {
		if of[alias.Input].IsConstant() {
			return nil // which nothing may overwrite
		}
	}
	// Everything is built anew as a function of its own. Running the op's kernel directly would not
	// test what optimizers do with the claim: replace the apply by another.
	all, free, args := c.inputs(of)
	a, err := tensor.Make(op, all...)
	if err != nil {
		return fmt.Errorf("%w: it can't be applied %s: %w", fgraph.ErrDeclaration, how, err)
	}
	f, err := NewFunction(context.Background(), free, a.Outputs(), FunctionOptions{Mutable: free})
	var got []*array.Array
	if err == nil {
		got, err = f.Call(context.Background(), args...)
	}
	if err != nil {
		return fmt.Errorf("%w: it can't be computed %s: %w", fgraph.ErrDeclaration, how, err)
	}
	for k, out := range c.out {
		if k >= len(got) || !(array.MaxRelDiff(got[k], out) <= claimTolerance) {
			return fmt.Errorf("%w: output %d has other values %s", fgraph.ErrDeclaration, k, how)
		}
	}
	return nil
}

// shapes returns an error unless the outputs have the shapes that are inferred.
func (c *claimCheck) shapes(op tensor.ShapeInferer) error {
	all, free, args := c.inputs(c.a.Inputs())
	a, err := tensor.Make(c.a.Op().(tensor.Op), all...)
	if err != nil {
		return fmt.Errorf("%w: it can't be applied again: %w", fgraph.ErrDeclaration, err)
	}
	inferred := op.InferShape(a, tensor.NewShapes())
	for k, sizes := range inferred {
		// An op may decline to infer a size. That is no false claim.
		if sizes == nil || slices.Contains(sizes, nil) {
			continue
		}
		if k >= len(c.out) || len(sizes) != c.out[k].NDim() {
			return fmt.Errorf("%w: it infers %d sizes for output %d, and there are %d", fgraph.ErrDeclaration, len(sizes), k, c.out[min(k, len(c.out)-1)].NDim())
		}
		f, err := NewFunction(context.Background(), free, sizes, FunctionOptions{})
		var got []*array.Array
		if err == nil {
			got, err = f.Call(context.Background(), args...)
		}
		if err != nil {
			return fmt.Errorf("%w: the inferred shape of output %d can't be computed: %w", fgraph.ErrDeclaration, k, err)
		}
		for d, n := range got {
			if n.NDim() != 0 || n.Int(0) != int64(c.out[k].Dim(d)) {
				return fmt.Errorf("%w: dimension %d of output %d has size %d, but %v is inferred", fgraph.ErrDeclaration, d, k, c.out[k].Dim(d), n)
			}
		}
	}
	return nil
}
