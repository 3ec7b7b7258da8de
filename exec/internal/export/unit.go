package export

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// A Unit is what a request asks for of one sequence.
type Unit struct {
	// Request has the rows of one sequence, with n = 0, in the order in which the request has them.
	// It asks for no derivatives and no statistics.
	Request *computation.Request
	// Sequences is the number of sequences in the request.
	Sequences int
	rows      map[string][][]int32
}

// UnitOf divides a request into its sequences. If they don't have the same rows in all inputs and
// outputs, all of the request is one unit. The error wraps computation.ErrRequest.
func UnitOf(req *computation.Request) (*Unit, error) {
	if err := req.Validate(nil); err != nil {
		return nil, err
	}
	for _, key := range []func(index.Index) int32{
		func(x index.Index) int32 { return x.N },
		func(index.Index) int32 { return 0 },
	} {
		if u := divide(req, key); u != nil {
			return u, nil
		}
	}
	return nil, fmt.Errorf("%w: an input or output has no rows", computation.ErrRequest)
}

// divide returns a unit of rows with the same key, or nil if units differ.
func divide(req *computation.Request, key func(index.Index) int32) *Unit {
	u := &Unit{Request: new(computation.Request), rows: make(map[string][][]int32)}
	var keys []int32
	for side, specs := range [][]computation.IoSpecification{req.Inputs, req.Outputs} {
		for i := range specs {
			have, rows := group(specs[i].Indexes, key)
			if keys == nil {
				keys = have
			}
			if !slices.Equal(have, keys) || !alike(specs[i].Indexes, rows) {
				return nil
			}
			spec := computation.IoSpecification{Name: specs[i].Name}
			for _, r := range rows[0] {
				x := specs[i].Indexes[r]
				x.N -= key(x)
				spec.Indexes = append(spec.Indexes, x)
			}
			u.rows[specs[i].Name] = rows
			if side == 0 {
				u.Request.Inputs = append(u.Request.Inputs, spec)
			} else {
				u.Request.Outputs = append(u.Request.Outputs, spec)
			}
		}
	}
	u.Sequences = len(keys)
	return u
}

// group returns the keys in ascending order, and the rows of each.
func group(indexes []index.Index, key func(index.Index) int32) (keys []int32, rows [][]int32) {
	for _, x := range indexes {
		keys = append(keys, key(x))
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	rows = make([][]int32, len(keys))
	for r, x := range indexes {
		i, _ := slices.BinarySearch(keys, key(x))
		rows[i] = append(rows[i], int32(r))
	}
	return keys, rows
}

// alike puts the rows of each sequence in the order of the first one. It reports false if they have
// other times, or there are none.
func alike(indexes []index.Index, rows [][]int32) bool {
	if len(rows) == 0 {
		return false
	}
	type place struct{ t, x int32 }
	order := make(map[place]int, len(rows[0]))
	for i, r := range rows[0] {
		order[place{indexes[r].T, indexes[r].X}] = i
	}
	for _, list := range rows[1:] {
		sorted := make([]int32, len(rows[0]))
		for _, r := range list {
			i, ok := order[place{indexes[r].T, indexes[r].X}]
			if !ok || len(list) != len(rows[0]) {
				return false
			}
			sorted[i] = r
		}
		copy(list, sorted)
	}
	return true
}

// Rows returns, for each sequence, which rows of the matrix of an input or output of the request belong
// to it, in the order in which the model has them.
func (u *Unit) Rows(name string) [][]int32 { return u.rows[name] }
