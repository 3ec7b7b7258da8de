package tensor

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// GradOptions modify Grad.
type GradOptions struct {
	// Zeros makes the gradient with respect to a variable that the cost does not depend on a tensor
	// of zeros instead of an error.
	Zeros bool
	// Known are gradients of the cost with respect to intermediate variables, which are taken as
	// they are.
	Known map[*fgraph.Variable]*fgraph.Variable
}

// Grad returns the gradients of cost with respect to variables, as new expressions. Cost is a
// scalar; it and the variables are floats. The error wraps ErrGradient if the cost does not depend
// on a variable, or not in a differentiable way.
func Grad(cost *fgraph.Variable, wrt ...*fgraph.Variable) ([]*fgraph.Variable, error) {
	return GradOptions{}.Grad(cost, wrt...)
}

// Grad is like the function Grad.
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
			// Ops build their gradients by functions that panic with an *Error. Any other panic is a fault.
			e, ok := p.(*Error)
			if !ok {
				panic(p)
			}
			grads, err = nil, fmt.Errorf("%w: %w", ErrGradient, e)
		}
	}()
	r := reverse{terms: map[*fgraph.Variable][]*fgraph.Variable{cost: {Number(1, cost)}}, depends: make(map[*fgraph.Apply]bool), options: o}
	order := r.order(cost, wrt)
	// Backwards, so that all terms of a gradient are there when an op passes it on.
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

// reverse is the state of one reverse-mode differentiation.
type reverse struct {
	options GradOptions
	terms   map[*fgraph.Variable][]*fgraph.Variable // the terms of the gradient of a variable
	depends map[*fgraph.Apply]bool                  // whether it depends on a variable whose gradient is wanted
}

// order returns the applies between wrt and cost, inputs before clients.
func (r *reverse) order(cost *fgraph.Variable, wrt []*fgraph.Variable) []*fgraph.Apply {
	wanted := make(map[*fgraph.Variable]bool, len(wrt))
	for _, v := range wrt {
		wanted[v] = true
	}
	var order []*fgraph.Apply
	visited := func(v *fgraph.Variable) bool {
		_, ok := r.depends[v.Owner()]
		return ok
	}
	fgraph.Walk([]*fgraph.Variable{cost}, visited, func(a *fgraph.Apply) {
		depends := slices.ContainsFunc(a.Inputs(), func(v *fgraph.Variable) bool { return wanted[v] || r.depends[v.Owner()] })
		// What leads to no wanted variable needs no gradient, and may have none.
		if r.depends[a] = depends; depends {
			order = append(order, a)
		}
	})
	return order
}

// gradient returns the sum of the terms of the gradient of v, or nil if there are none.
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
		// The sum is kept, since it may be asked for once more: as what an op passes on, and as a result.
		g := Add(terms...)
		r.terms[v] = []*fgraph.Variable{g}
		return g
	}
}

// step adds to the gradients of the inputs of an apply, given those of its outputs.
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
		if g := conform(castConstant(in[i], TypeOf(v).DType()), v); v.Type().Accepts(g.Type()) {
			r.terms[v] = append(r.terms[v], g)
		} else {
			return fmt.Errorf("%w: that of %v with respect to input %d is a %v, not a %v", ErrGradient, a, i, g.Type(), v.Type())
		}
	}
	return nil
}

// conform returns a gradient g with respect to v in the type of v: one knows that a dimension has
// size 1 and the other does not. If more is different it returns g.
func conform(g, v *fgraph.Variable) *fgraph.Variable {
	t, u := TypeOf(v), TypeOf(g)
	if t.Accepts(u) || t.NDim() != u.NDim() || t.DType() != u.DType() || t.IsCSR() || u.IsCSR() {
		return g
	}
	shape, wide := u.Shape(), false
	for d := range shape {
		switch n := t.Dim(d); {
		case n == 1 && shape[d] == Unknown:
			shape[d] = 1
		case n == Unknown && shape[d] == 1:
			wide = true
		case n != shape[d] && n != Unknown && shape[d] != Unknown:
			return g
		}
	}
	g = SpecifyShape(g, shape...)
	if wide { // the size of v is 1 when the function runs
		g = Second(v, g)
	}
	return g
}
