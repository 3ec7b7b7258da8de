package component

import (
	"fmt"

	"github.com/nnopt/nnopt/nnet3/index"
)

// perIndex is embedded by components that compute row by row but need to know the indexes of their
// rows.
type perIndex struct{}

func (perIndex) rowByRow() {}

// InputIndexes appends out.
func (perIndex) InputIndexes(out index.Index, dst []index.Index) []index.Index {
	return append(dst, out)
}

// IsComputable needs the input at the same index.
func (perIndex) IsComputable(out index.Index, has func(index.Index) bool, used *[]index.Index) bool {
	return computableFrom(out, has, used)
}

// computableFrom reports whether an input is there, and appends it to used.
func computableFrom(x index.Index, has func(index.Index) bool, used *[]index.Index) bool {
	if !has(x) {
		return false
	}
	if used != nil {
		*used = append(*used, x)
	}
	return true
}

// checkPerIndex checks that input and output have the same indexes in the same order.
func checkPerIndex(c Component, in, out []index.Index) error {
	if len(in) != len(out) {
		return fmt.Errorf("%s: %d indexes of the input, %d of the output: %w", c.Type(), len(in), len(out), ErrShape)
	}
	for i, x := range in {
		if x != out[i] {
			return fmt.Errorf("%s: row %d is %v in the input, %v in the output: %w", c.Type(), i, x, out[i], ErrShape)
		}
	}
	return nil
}

// misfit is the error for a Precomputed of another component or of other rows.
func misfit(c Component, inRows, outRows int) error {
	return fmt.Errorf("%s: precomputed indexes do not fit %d input and %d output rows: %w", c.Type(), inRows, outRows, ErrShape)
}

func missingInput(c Component, out index.Index, offset int32) error {
	return fmt.Errorf("%s: the input at time offset %d of output (n=%d, t=%d, x=%d) is missing: %w",
		c.Type(), offset, out.N, out.T, out.X, ErrShape)
}

// floorDiv returns the quotient of a and b, rounded down.
func floorDiv(a, b int32) int32 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}
