package tensorpass

import (
	"math"

	"github.com/nnopt/nnopt/tensor/array"
)

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
