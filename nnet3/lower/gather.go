package lower

import (
	"slices"

	"github.com/nnopt/nnopt/nnet3/computation"
)

// noPairs returns a vector of n pairs that name no row.
func noPairs(n int32) []computation.Pair { return slices.Repeat([]computation.Pair{{-1, -1}}, int(n)) }

// gather emits rows of one value that come from several values. A copy zeroes the rows between; an
// addition keeps them, but counts as reading them.
func (e *emission) gather(k groupKey, members []int) {
	f := e.filledOf(k.value)
	a, b := f.span(k.col, k.col+k.cols)
	lo, hi := e.hull(k, members)
	typ := computation.CopyRowsMulti
	if k.add {
		typ = computation.AddRowsMulti
		e.zeroRows(k.value, f, a, b, lo, hi)
	}
	pairs := noPairs(hi - lo)
	for _, i := range members {
		t := e.pending[i]
		src := t.Src()
		sub := e.view(t.src, src)
		for j := range t.NumRows {
			p := t.Pair(j)
			pairs[p.Dst-lo] = computation.Pair{sub, p.Src - src.R0}
		}
	}
	out := e.view(k.value, Rect{lo, hi, k.col, k.col + k.cols})
	e.emit(typ, k.scale, out, e.pairList(pairs))
	f.setRows(lo, hi, a, b)
}

// scatter emits rows of one value that go to several values.
func (e *emission) scatter(k groupKey, members []int) {
	lo, hi := e.hull(k, members)
	typ := computation.CopyToRowsMulti
	if k.add {
		typ = computation.AddToRowsMulti
	}
	pairs := noPairs(hi - lo)
	for _, i := range members {
		t := e.pending[i]
		if k.add {
			e.zeroTerm(t)
		}
		e.targets(t, k.add, lo, pairs)
	}
	for _, i := range members {
		t := e.pending[i]
		f, a, b := e.filledBy(t)
		f.setTerm(&t.Term, a, b)
	}
	in := e.view(k.value, Rect{lo, hi, k.col, k.col + k.cols})
	e.emit(typ, k.scale, in, e.pairList(pairs))
}

// targets enters in pairs where the rows of the term go; the first pair is that of row lo of the
// source. A copy to some rows of a view keeps the others, so they must be defined. Hence a copy
// that leaves out rows has a view for each run of rows.
func (e *emission) targets(t *term, add bool, lo int32, pairs []computation.Pair) {
	dst := t.Dst()
	whole := add || t.NumRows == dst.R1-dst.R0
	for j := int32(0); j < t.NumRows; {
		run := dst
		end := t.NumRows
		if !whole {
			end = t.dstRun(j)
			run.R0, run.R1 = t.Pair(j).Dst, t.Pair(end-1).Dst+1
		}
		for sub := e.view(t.dst, run); j < end; j++ {
			p := t.Pair(j)
			pairs[p.Src-lo] = computation.Pair{sub, p.Dst - run.R0}
		}
	}
}

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
