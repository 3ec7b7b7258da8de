package tensorpass

import (
	"context"
	"math"
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/lists"
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
	list := lists.Map(t.seen, func(v *variable) []float64 { return shares[v.ID()] })
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

// An estimate says how large the errors of a graph are: for each compared variable and draw the norm of the
// difference, by the norm of what is exact; once as it is and once without the mean of each row, along the
// last dimension, since what matters may be how the elements of a row differ. The largest one of all draws
// counts. Few numbers say little about others, so a variable of n elements counts as 1 + 1/√n times its
// error.
type estimate struct {
	t      *trial
	norms  [][]norms // by draw and compared variable
	usual  []norms   // of one element, by compared variable
	signed []bool    // whether elements have both signs, by compared variable
}

// norms are squares of norms, once without the mean of each row.
type norms struct{ plain, centered float64 }

// newEstimate returns an estimate for the draws of a trial that is prepared.
func newEstimate(t *trial) *estimate {
	e := &estimate{t: t, usual: make([]norms, len(t.seen)), signed: make([]bool, len(t.seen))}
	for range t.draws {
		e.norms = append(e.norms, make([]norms, len(t.seen)))
	}
	for i := range t.seen {
		up, down := false, false
		for n, d := range t.draws {
			a := d.exact[i]
			e.norms[n][i] = normsOf(a.Len(), rowOf(a), a.Float)
			count := float64(max(a.Len(), 1) * len(t.draws))
			e.usual[i].plain += e.norms[n][i].plain / count
			e.usual[i].centered += e.norms[n][i].centered / count
			for k := 0; k < a.Len() && !(up && down); k++ {
				up, down = up || a.Float(k) > 0, down || a.Float(k) < 0
			}
		}
		e.signed[i] = up && down
	}
	return e
}

// of returns what errors of a draw are relative to: squares of norms. A number that has either sign may be
// near 0 by chance, and no part of it is a measure of anything then: so one element more counts, of the
// usual size. A probability is not near 0 by chance.
func (e *estimate) of(draw, seen int) norms {
	n := e.norms[draw][seen]
	// A row may be constant but for what is rounded.
	const least = 1e-10
	if n.centered < float64(least*n.plain) {
		n.centered = 0
	}
	if n.centered > 0 {
		n.centered += e.usual[seen].centered
	}
	if e.signed[seen] || n.plain == 0 {
		n.plain += e.usual[seen].plain
	}
	return n
}

// error returns the largest error of a draw.
func (e *estimate) error(draw int, w *world) (most float64) {
	for i, got := range e.t.results(w) {
		most = max(most, e.errorOf(draw, i, got, e.t.draws[draw].exact[i]))
	}
	return most
}

func (e *estimate) errorOf(draw, seen int, got, want *array.Array) float64 {
	if !array.SameShape(got, want) {
		return math.Inf(1)
	}
	diff := normsOf(want.Len(), rowOf(want), func(i int) float64 { return got.Float(i) - want.Float(i) })
	x := e.relative(draw, seen, diff.plain)
	if n := e.of(draw, seen).centered; n > 0 {
		x = max(x, e.factor(want)*math.Sqrt(diff.centered/n))
	}
	return x
}

// relative returns the error that a square of the norm of a difference is.
func (e *estimate) relative(draw, seen int, square float64) float64 {
	n := e.of(draw, seen).plain
	if square == 0 || n == 0 {
		return 0
	}
	return e.factor(e.t.draws[draw].exact[seen]) * math.Sqrt(square/n)
}

func (e *estimate) factor(a *array.Array) float64 { return 1 + 1/math.Sqrt(float64(max(a.Len(), 1))) }

// rowOf returns the size of the last dimension.
func rowOf(a *array.Array) int {
	if n := a.NDim(); n > 0 {
		return max(a.Dim(n-1), 1)
	}
	return 1
}

// normsOf returns the norms of n numbers in rows. Rows with NaN or infinities don't count. A row of one
// number has no mean.
func normsOf(n, cols int, v func(i int) float64) (sum norms) {
	for at := 0; at < n; at += cols {
		mean, row := 0.0, norms{}
		for j := range cols {
			x := v(at + j)
			mean += x
			row.plain += float64(x * x)
		}
		if row.plain-row.plain != 0 {
			continue
		}
		row.centered = row.plain
		if mean /= float64(cols); cols > 1 {
			row.centered = 0
			for j := range cols {
				x := v(at+j) - mean
				row.centered += float64(x * x)
			}
		}
		sum.plain += row.plain
		sum.centered += row.centered
	}
	return sum
}

// squareOf returns the square of the norm of a difference, and NaN if there is none.
func squareOf(got, want *array.Array) float64 {
	if got.IsCSR() || want.IsCSR() || !array.SameShape(got, want) {
		return math.NaN()
	}
	sum := 0.0
	if got.DType() != array.Float32 || want.DType() != array.Float32 {
		for i := range want.Len() {
			if d := got.Float(i) - want.Float(i); d-d == 0 {
				sum += float64(d * d)
			}
		}
		return sum
	}
	y := floatsOf(want)
	for i, x := range floatsOf(got) {
		if d := float64(x) - float64(y[i]); d-d == 0 {
			sum += float64(d * d)
		}
	}
	return sum
}

func floatsOf(a *array.Array) []float32 {
	if !a.Contiguous() {
		a = a.Clone()
	}
	return array.Slice[float32](a)
}
