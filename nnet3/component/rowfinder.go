package component

import (
	"fmt"
	"math/bits"

	"github.com/nnopt/nnopt/nnet3/index"
)

// rowFinder finds the row of an index. Callers mostly go through the rows in even steps, so a guess
// finds the next one. If a guess fails, the row is looked up in a hash table, which is made when it
// is first needed. Compiling a training minibatch looks for millions of rows.
type rowFinder struct {
	indexes    []index.Index
	last, step int32   // the last row found, and its distance from the one before
	slots      []int32 // open addressing: a row plus one, or 0; a power of 2, at least twice as many as indexes
	shift      int
}

// newRowFinder returns a finder of rows among the indexes. If an index occurs twice, it may find
// either row.
func newRowFinder(indexes []index.Index) *rowFinder {
	return &rowFinder{indexes: indexes, last: -1, step: 1}
}

// row returns the row of an index, or -1.
func (f *rowFinder) row(x index.Index) int32 {
	if r := f.last + f.step; uint(r) < uint(len(f.indexes)) && f.indexes[r] == x {
		f.last = r
		return r
	}
	if r := f.last + 1; uint(r) < uint(len(f.indexes)) && f.indexes[r] == x {
		f.last, f.step = r, 1
		return r
	}
	r := f.lookUp(x)
	if r >= 0 {
		f.last, f.step = r, r-f.last
	}
	return r
}

// lookUp finds a row in the table.
func (f *rowFinder) lookUp(x index.Index) int32 {
	if f.slots == nil {
		f.makeTable()
	}
	mask := uint32(len(f.slots) - 1)
	for slot := f.slot(x); ; slot = (slot + 1) & mask {
		r := f.slots[slot] - 1
		if r < 0 || f.indexes[r] == x {
			return r
		}
	}
}

func (f *rowFinder) makeTable() {
	log := max(bits.Len(uint(len(f.indexes)))+1, 3)
	f.slots, f.shift = make([]int32, 1<<log), 64-log
	mask := uint32(len(f.slots) - 1)
	for i, x := range f.indexes {
		slot := f.slot(x)
		for ; f.slots[slot] != 0 && f.indexes[f.slots[slot]-1] != x; slot = (slot + 1) & mask {
		}
		f.slots[slot] = int32(i) + 1
	}
}

// slot returns the slot in which the search for an index begins.
func (f *rowFinder) slot(x index.Index) uint32 {
	h := uint64(uint32(x.N))*0x9e3779b97f4a7c15 ^ uint64(uint32(x.T))*0xc2b2ae3d27d4eb4f ^ uint64(uint32(x.X))*0x165667b19e3779f9
	h ^= h >> 32
	return uint32(h * 0xd6e8feb86659fd93 >> f.shift)
}

// atOffset sets rows to the input row at a time offset from each output row, or -1 if there is
// none.
func (f *rowFinder) atOffset(out []index.Index, offset int32, rows []int32) {
	for i, x := range out {
		rows[i] = -1
		if t := int64(x.T) + int64(offset); x.T != index.NoTime && t == int64(int32(t)) {
			rows[i] = f.row(index.Index{N: x.N, T: int32(t), X: x.X})
		}
	}
}

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
