package lower

import (
	"slices"

	"github.com/nnopt/nnopt/nnet3/computation"
)

// number returns the number of x in list, which key identifies. It appends x if it is missing.
func number[K comparable, T any](known map[K]int32, key K, list *[]T, x T) int32 {
	n, ok := known[key]
	if !ok {
		n = int32(len(*list))
		known[key] = n
		*list = append(*list, x)
	}
	return n
}

// indexList returns the number of a vector of rows.
func (t *target) indexList(rows []int32) int32 {
	return keep(t.rowLists, hashOf(rows...), &t.c.Indexes, rows)
}

// pairList returns the number of a vector of (sub-matrix, row) pairs.
func (t *target) pairList(pairs []computation.Pair) int32 {
	h := hashOf()
	for _, p := range pairs {
		h = h.add(p[0]).add(p[1])
	}
	return keep(t.pairLists, h, &t.c.IndexesMulti, pairs)
}

// keep returns the number in all of vector x with hash h. It appends x if it is missing.
func keep[T comparable](known map[hash][]int32, h hash, all *[][]T, x []T) int32 {
	for _, n := range known[h] {
		if slices.Equal((*all)[n], x) {
			return n
		}
	}
	n := int32(len(*all))
	*all = append(*all, x)
	known[h] = append(known[h], n)
	return n
}
