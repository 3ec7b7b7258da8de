package lower

import (
	"slices"

	"github.com/nnopt/nnopt/nnet3/computation"
)

// lists finds the lists of rows that commands name, so that equal ones are kept once.
type lists struct {
	rows, pairs map[hash][]int32 // by hash: the numbers of the lists
}

// indexList numbers a list of rows.
func (t *target) indexList(rows []int32) int32 {
	h := newHash()
	for _, r := range rows {
		h = h.add(r)
	}
	return keep(&t.lists.rows, h, &t.c.Indexes, rows)
}

// pairList numbers a list of rows of several sub-matrices.
func (t *target) pairList(pairs []computation.Pair) int32 {
	h := newHash()
	for _, p := range pairs {
		h = h.add(p[0]).add(p[1])
	}
	return keep(&t.lists.pairs, h, &t.c.IndexesMulti, pairs)
}

// keep gives the number of list x, which has hash h, in all, and adds it where it is not there.
func keep[T comparable](known *map[hash][]int32, h hash, all *[][]T, x []T) int32 {
	if *known == nil {
		*known = make(map[hash][]int32)
	}
	for _, n := range (*known)[h] {
		if slices.Equal((*all)[n], x) {
			return n
		}
	}
	n := int32(len(*all))
	*all = append(*all, x)
	(*known)[h] = append((*known)[h], n)
	return n
}
