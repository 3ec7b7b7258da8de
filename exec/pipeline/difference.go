package pipeline

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/component"
)

// A Difference is the distance of a matrix, or a list of parameters, from what is wanted.
type Difference struct {
	Norm     float64 // of the difference
	Wanted   float64 // norm of what is wanted, without elements that are NaN or infinite
	elements int
}

const (
	absoluteTolerance = 1e-6 // of each element, added as squares
	leastNorm         = 1e-2 // of each element, likewise
)

// Relative returns the norm of the difference divided by the wanted norm. The divisor is at least the
// norm at which the absolute tolerance takes over from one of 1e-4, so that a rounding error of zero
// is no large difference.
func (d Difference) Relative() float64 {
	if d.Norm == 0 {
		return 0
	}
	return d.Norm / max(d.Wanted, leastNorm*math.Sqrt(float64(d.elements)))
}

// Agrees reports whether the norm of the difference is at most a tolerance times the wanted norm, plus
// an absolute tolerance of 1e-6 for each element, added as squares. A NaN is not.
func (d Difference) Agrees(tolerance float64) bool {
	return d.Norm <= float64(tolerance*d.Wanted)+float64(absoluteTolerance*math.Sqrt(float64(d.elements)))
}

// Compare returns the difference between two matrices. An element that is NaN or infinite in one of
// them makes the norm NaN or infinite, unless it is the same in both.
func Compare(got, want kernel.Matrix) (Difference, error) {
	if got.Rows != want.Rows || got.Cols != want.Cols {
		return Difference{}, fmt.Errorf("%d×%d, not %d×%d", got.Rows, got.Cols, want.Rows, want.Cols)
	}
	difference2, wanted2 := 0.0, 0.0
	for i := range want.Rows {
		row := kernel.Row(got, i)
		for j, w := range kernel.Row(want, i) {
			x, y := float64(row[j]), float64(w)
			if x != y && !(x != x && y != y) {
				difference2 += float64((x - y) * (x - y))
			}
			// NaN and infinities would make the norm so large that no difference counts.
			if y-y == 0 {
				wanted2 += float64(y * y)
			}
		}
	}
	return Difference{math.Sqrt(difference2), math.Sqrt(wanted2), want.Rows * want.Cols}, nil
}

// CompareParameters returns the difference between the parameters of two components.
func CompareParameters(got, want component.UpdatableComponent) (Difference, error) {
	vector := func(c component.UpdatableComponent) kernel.Matrix {
		v := component.Vectorize(c, nil)
		return kernel.Matrix{Rows: 1, Cols: len(v), Stride: len(v), Data: v}
	}
	return Compare(vector(got), vector(want))
}
