package tensorpass

import (
	"context"
	"math"
	"slices"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// shares returns the squares of the errors of what is compared for a draw, divided among the products: by
// compared variable, nil if it has no error, and product.
//
// The graph is computed once with float32s and once with integers, side by side. A value that differs has
// shares, which add up to the square of the norm of the difference. A product adds one, what its integers
// change for exact inputs; the others are those of its inputs, in proportion to what the difference of each
// input makes by itself. So a product is run four times, whatever their number, where one run for each
// product would compute the graph behind it again.
func (t *trial) shares(ctx context.Context, products, draw int) ([][]float64, error) {
	var exact, other *world
	var shares [][]float64
	for _, d := range t.draws[t.first(draw) : draw+1] {
		before := shares
		shares = make([][]float64, t.g.NumVariableIDs())
		if d.continues {
			for _, c := range t.carried {
				shares[t.g.Inputs()[c.in].ID()] = before[t.g.Outputs()[c.out].ID()]
			}
		}
		exact, other = t.world(t.after(exact, d)), t.world(t.after(other, d))
		s := sharing{t: t, exact: exact, other: other, shares: shares, products: products}
		for n := range t.program.Steps {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			if err := s.step(ctx, n); err != nil {
				return nil, err
			}
		}
	}
	list := make([][]float64, len(t.seen))
	for i, v := range t.seen {
		list[i] = shares[v.ID()]
	}
	return list, nil
}

// sharing is a computation with float32s and one with integers.
type sharing struct {
	t            *trial
	exact, other *world
	shares       [][]float64 // by variable
	products     int
}

// step computes an apply in both worlds.
func (s *sharing) step(ctx context.Context, n int) error {
	a, in, changed := s.t.program.Steps[n].Apply, s.exact.Arguments(n), s.other.Arguments(n)
	k, err := s.t.kernel(n)
	if err != nil {
		return err
	}
	exact, err := run(ctx, a, s.t.program.Steps[n].Kernel, in)
	if err != nil {
		return err
	}
	p := s.t.product[n]
	integers := p != nil && p.to != kernel.Float32
	var off []int // inputs with an error
	for i, v := range a.Inputs() {
		if !v.IsConstant() && s.shares[v.ID()] != nil {
			off = append(off, i)
		}
	}
	other := exact
	if integers || len(off) > 0 {
		if other, err = run(ctx, a, k, changed); err == nil && same(a) {
			s.shares[a.Out().ID()] = s.shares[a.Inputs()[0].ID()]
		} else if err == nil {
			err = s.divide(ctx, n, off, in, changed, exact, other)
		}
		if err != nil {
			return err
		}
	}
	if err := s.exact.Put(n, exact); err != nil {
		return err
	}
	return s.other.Put(n, other)
}

// divide finds the shares of the results of an apply, of whose inputs some have an error.
func (s *sharing) divide(ctx context.Context, n int, off []int, in, changed, exact, other []*array.Array) error {
	a, p := s.t.program.Steps[n].Apply, s.t.product[n]
	for _, v := range a.Outputs() {
		s.shares[v.ID()] = make([]float64, s.products)
	}
	integers := p != nil && p.to != kernel.Float32
	if integers {
		own := other
		if len(off) > 0 {
			k, err := s.t.kernel(n)
			if err != nil {
				return err
			}
			if own, err = run(ctx, a, k, in); err != nil {
				return err
			}
		}
		for o, v := range a.Outputs() {
			s.shares[v.ID()][p.number] += squareOf(own[o], exact[o])
		}
	}
	for _, i := range off {
		through := other
		if integers || len(off) > 1 {
			one := slices.Clone(in)
			one[i] = changed[i]
			var err error
			if through, err = run(ctx, a, s.t.program.Steps[n].Kernel, one); err != nil {
				return err
			}
		}
		from := s.shares[a.Inputs()[i].ID()]
		for o, v := range a.Outputs() {
			gain := squareOf(through[o], exact[o]) / sumOf(from)
			for k, x := range from {
				s.shares[v.ID()][k] += float64(gain * x)
			}
		}
	}
	// The parts are not independent of each other, and don't add up to the whole.
	for o, v := range a.Outputs() {
		list, whole := s.shares[v.ID()], squareOf(other[o], exact[o])
		factor := whole / sumOf(list)
		if !(factor > 0) || math.IsInf(factor, 0) {
			s.shares[v.ID()] = nil
			continue
		}
		for k := range list {
			list[k] *= factor
		}
	}
	return nil
}

// same reports whether a result has all elements of its input, in other places.
func same(a *apply) bool {
	switch a.Op().(type) {
	case tensor.DimShuffleOp, tensor.ReshapeOp:
		return true
	}
	return false
}

func sumOf(list []float64) (sum float64) {
	for _, x := range list {
		sum += x
	}
	return sum
}
