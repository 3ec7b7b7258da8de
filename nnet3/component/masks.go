package component

import (
	"fmt"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// perIndex is embedded by components whose output at an index depends on the input at that index, but which need to know
// the indexes.
type perIndex struct{}

// InputIndexes appends out.
func (perIndex) InputIndexes(out index.Index, dst []index.Index) []index.Index {
	return append(dst, out)
}

// IsComputable wants the input at the same index.
func (perIndex) IsComputable(out index.Index, has func(index.Index) bool, used *[]index.Index) bool {
	if !has(out) {
		return false
	}
	if used != nil {
		*used = append(*used, out)
	}
	return true
}

// ReorderIndexes leaves the indexes as they are.
func (perIndex) ReorderIndexes(in, out *[]index.Index) {}

// checkPerIndex checks that the input has the indexes of the output, in one order.
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

// maskRows is the Precomputed of components that multiply their rows by those of a mask: which row of the mask each row
// takes.
type maskRows struct {
	rows []int32
	num  int // rows of the mask
}

// newMaskRows gives a row of the mask to each different key.
func newMaskRows(indexes []index.Index, key func(index.Index) index.Index) *maskRows {
	m := &maskRows{rows: make([]int32, len(indexes))}
	seen := make(map[index.Index]int32)
	for i, x := range indexes {
		k := key(x)
		r, ok := seen[k]
		if !ok {
			r = int32(len(seen))
			seen[k] = r
		}
		m.rows[i] = r
	}
	m.num = len(seen)
	return m
}

// floorDiv returns the quotient of a and b, rounded down.
func floorDiv(a, b int32) int32 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// multiplyByMask sets dst to src with each block of columns of row i multiplied by row rows[i] of the mask.
func multiplyByMask(dst, src, mask kernel.Matrix, rows []int32) {
	for i, r := range rows {
		d, s, m := kernel.Row(dst, i), kernel.Row(src, i), kernel.Row(mask, int(r))
		for len(d) > 0 {
			kernel.MulVec(d[:len(m)], s[:len(m)], m)
			d, s = d[len(m):], s[len(m):]
		}
	}
}
