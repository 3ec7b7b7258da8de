package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
)

// GradOptions say what Grad does in doubt.
type GradOptions struct {
	// Zeros makes the gradient with respect to something that the cost does not depend on a tensor of zeros instead of an error.
	Zeros bool
	// Known are gradients of the cost with respect to variables on the way that are given instead of computed.
	Known map[*fgraph.Variable]*fgraph.Variable
}

// Grad returns the gradients of cost, a scalar of floats, with respect to variables of floats that it was computed from, as new
// expressions. The error wraps ErrGradient if the cost does not depend on one of them, or not in a way that has a derivative.
func Grad(cost *fgraph.Variable, wrt ...*fgraph.Variable) ([]*fgraph.Variable, error) {
	return GradOptions{}.Grad(cost, wrt...)
}

// Grad is the function Grad with options.
func (o GradOptions) Grad(cost *fgraph.Variable, wrt ...*fgraph.Variable) (grads []*fgraph.Variable, err error) {
	if t, ok := cost.Type().(Type); !ok || t.NDim() != 0 || !t.DType().IsFloat() {
		return nil, fmt.Errorf("%w: the cost is a %v, not a scalar of floats", ErrGradient, cost.Type())
	}
	for _, v := range wrt {
		if t, ok := v.Type().(Type); !ok || !t.DType().IsFloat() {
			return nil, fmt.Errorf("%w: with respect to %v, which is a %v", ErrGradient, v, v.Type())
		}
	}
	defer func() {
		if p := recover(); p != nil {
			e, ok := p.(*Error)
			if !ok {
				panic(p)
			}
			grads, err = nil, fmt.Errorf("%w: %w", ErrGradient, e)
		}
	}()
	r := reverse{terms: map[*fgraph.Variable][]*fgraph.Variable{cost: {Number(1, cost)}}, depends: make(map[*fgraph.Apply]bool), options: o}
	order := r.order(cost, wrt)
	for i := len(order) - 1; i >= 0; i-- {
		if err := r.step(order[i]); err != nil {
			return nil, err
		}
	}
	for _, v := range wrt {
		g := r.gradient(v)
		if g == nil {
			if !o.Zeros {
				return nil, fmt.Errorf("%w: %v does not depend on %v", ErrGradient, fgraph.Sprint(3, cost), v)
			}
			g = ZerosLike(v)
		}
		grads = append(grads, g)
	}
	return grads, nil
}

// reverse goes through an expression against the direction of the computation.
type reverse struct {
	options GradOptions
	terms   map[*fgraph.Variable][]*fgraph.Variable // what contributes to the gradient of a variable
	depends map[*fgraph.Apply]bool                  // on what the gradients are wanted for
}

// order returns the applies between wrt and cost, inputs before clients.
func (r *reverse) order(cost *fgraph.Variable, wrt []*fgraph.Variable) []*fgraph.Apply {
	wanted := make(map[*fgraph.Variable]bool, len(wrt))
	for _, v := range wrt {
		wanted[v] = true
	}
	type visit struct {
		a    *fgraph.Apply
		next int
	}
	var order []*fgraph.Apply
	var path []visit
	seen := make(map[*fgraph.Apply]bool)
	enter := func(v *fgraph.Variable) {
		if a := v.Owner(); a != nil && !seen[a] {
			seen[a] = true
			path = append(path, visit{a: a})
		}
	}
	enter(cost)
	for len(path) > 0 {
		top := &path[len(path)-1]
		if in := top.a.Inputs(); top.next < len(in) {
			top.next++
			enter(in[top.next-1])
			continue
		}
		a := top.a
		path = path[:len(path)-1]
		for _, v := range a.Inputs() {
			if wanted[v] || v.Owner() != nil && r.depends[v.Owner()] {
				r.depends[a] = true
			}
		}
		if r.depends[a] {
			order = append(order, a)
		}
	}
	return order
}

// gradient returns the sum of what contributes to the gradient of v, nil if nothing does.
func (r *reverse) gradient(v *fgraph.Variable) *fgraph.Variable {
	if g := r.options.Known[v]; g != nil {
		return g
	}
	switch terms := r.terms[v]; len(terms) {
	case 0:
		return nil
	case 1:
		return terms[0]
	default:
		g := Add(terms...)
		r.terms[v] = []*fgraph.Variable{g}
		return g
	}
}

// step hands the gradients of the outputs of an apply on to its inputs.
func (r *reverse) step(a *fgraph.Apply) error {
	out := make([]*fgraph.Variable, len(a.Outputs()))
	any := false
	for i, v := range a.Outputs() {
		out[i] = r.gradient(v)
		any = any || out[i] != nil
	}
	if !any {
		return nil
	}
	op, ok := a.Op().(Differentiable)
	if !ok {
		return fmt.Errorf("%w: %v has none", ErrGradient, a)
	}
	in := op.Grad(a, out)
	for i, v := range a.Inputs() {
		if t, ok := v.Type().(Type); !ok || in[i] == nil || !t.DType().IsFloat() {
			continue
		}
		if g := castConstant(in[i], TypeOf(v).DType()); v.Type().Accepts(g.Type()) {
			r.terms[v] = append(r.terms[v], g)
		} else {
			return fmt.Errorf("%w: that of %v with respect to input %d is a %v, not a %v", ErrGradient, a, i, g.Type(), v.Type())
		}
	}
	return nil
}
