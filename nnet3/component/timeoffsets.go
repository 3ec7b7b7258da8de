package component

import (
	"slices"

	"github.com/nnopt/nnopt/nnet3/index"
)

// timeOffsets is embedded by components whose output at t depends on the input at t plus some
// offsets.
type timeOffsets struct {
	times    []int32 // without repetitions
	required []int32 // those that an output can't do without
}

// InputIndexes appends the index at each time offset.
func (o *timeOffsets) InputIndexes(out index.Index, dst []index.Index) []index.Index {
	for _, t := range o.times {
		dst = append(dst, shifted(out, t))
	}
	return dst
}

// IsComputable needs the inputs at the required offsets, and uses all that are there.
func (o *timeOffsets) IsComputable(out index.Index, has func(index.Index) bool, used *[]index.Index) bool {
	for _, t := range o.required {
		if !has(shifted(out, t)) {
			return false
		}
	}
	switch {
	case used == nil:
	case len(o.required) == len(o.times):
		*used = o.InputIndexes(out, *used)
	default:
		for _, t := range o.times {
			if x := shifted(out, t); has(x) {
				*used = append(*used, x)
			}
		}
	}
	return true
}

// shifted returns x with offset added to its time.
func shifted(x index.Index, offset int32) index.Index { return x.Add(index.Index{T: offset}) }

// repeated reports whether the list holds an element twice.
func repeated(list []int32) bool {
	sorted := slices.Sorted(slices.Values(list))
	return len(slices.Compact(sorted)) < len(list)
}

// offsetRows is the Precomputed of components with optional time offsets: for each output row, the
// input row at each offset, or -1.
type offsetRows struct {
	rows            []int32
	offsets, inRows int
}

// newOffsetRows finds the input rows. It fails if one at a required offset is missing.
func newOffsetRows(c Component, in, out []index.Index, offsets, required []int32) (Precomputed, error) {
	find, n := newRowFinder(in), len(offsets)
	required = slices.Sorted(slices.Values(required)) // files may have them in any order
	p := &offsetRows{rows: make([]int32, len(out)*n), offsets: n, inRows: len(in)}
	rows := make([]int32, len(out))
	for k, t := range offsets {
		find.atOffset(out, t, rows)
		if i := slices.Index(rows, -1); i >= 0 {
			if _, found := slices.BinarySearch(required, t); found {
				return nil, missingInput(c, out[i], t)
			}
		}
		for i, r := range rows {
			p.rows[i*n+k] = r
		}
	}
	return p, nil
}

func (p *offsetRows) fits(offsets, inRows, outRows int) bool {
	return p.offsets == offsets && p.inRows == inRows && len(p.rows) == outRows*offsets
}

// reach reports whether n output rows, from row first on, have input rows in [top, bottom).
func (p *offsetRows) reach(first, n, top, bottom int) bool {
	return slices.ContainsFunc(p.rows[first*p.offsets:(first+n)*p.offsets], func(row int32) bool { return top <= int(row) && int(row) < bottom })
}

// of returns the input rows of output row i.
func (p *offsetRows) of(i int) []int32 { return p.rows[i*p.offsets : (i+1)*p.offsets] }
