package computation

import (
	"cmp"
	"fmt"
	"slices"
)

// rowSources checks a command that names a source for each row of its result: a row, or a range of
// rows. fault says what is wrong with a source for the given row, in a source matrix of n rows.
func rowSources[T any](r *report, i int, cmd Command, sources []T, what string, fault func(row int, source T, n int32) string) {
	dst, src := r.c.Submatrices[cmd.View()], r.c.Submatrices[cmd.Source()]
	if dst.NumCols != src.NumCols {
		r.addf(ErrSize, i, "%d and %d columns", dst.NumCols, src.NumCols)
	}
	r.disjoint(i, cmd.View(), cmd.Source())
	if len(sources) != int(dst.NumRows) {
		r.addf(ErrRows, i, "%d %s for %d rows", len(sources), what, dst.NumRows)
	}
	for row, source := range sources {
		if text := fault(row, source, src.NumRows); text != "" {
			r.addf(ErrRows, i, "%s", text)
			return // one such fault tells enough
		}
	}
}

func rowFault(row int, from, n int32) string {
	if from >= -1 && from < n {
		return ""
	}
	return fmt.Sprintf("row %d comes from row %d of %d", row, from, n)
}

func rangeFault(row int, p Pair, n int32) string {
	if p == (Pair{-1, -1}) || p[0] >= 0 && p[0] <= p[1] && p[1] <= n {
		return ""
	}
	return fmt.Sprintf("row %d sums the rows [%d, %d) of %d", row, p[0], p[1], n)
}

// rowAt is the position of a row that a vector of pairs names.
type rowAt struct {
	matrix, row, col int32
}

// multi checks the commands with a vector of (sub-matrix, row) pairs, which are known to exist.
func (r *report) multi(i int, cmd Command) {
	near := r.c.Submatrices[cmd.View()]
	v := r.c.IndexesMulti[cmd.Vector()]
	if len(v) != int(near.NumRows) {
		r.addf(ErrRows, i, "%d pairs for %d rows", len(v), near.NumRows)
	}
	writesFar := cmd.Type == CopyToRowsMulti || cmd.Type == AddToRowsMulti
	var places []rowAt
	for row, p := range v {
		if p[0] < 0 {
			continue
		}
		far := r.c.Submatrices[p[0]]
		if far.NumCols != near.NumCols {
			r.addf(ErrSize, i, "%d columns, and row %d is of %s with %d columns", near.NumCols, row, r.printer.appendSubmatrix(nil, p[0]), far.NumCols)
			return
		}
		// Of the far sub-matrix the command touches only this row.
		at := far
		at.RowOffset, at.NumRows = far.RowOffset+p[1], 1
		if at.overlaps(near) {
			r.addf(ErrOverlap, i, "row %d of %s is one of the command's own rows", p[1], r.printer.appendSubmatrix(nil, p[0]))
			return
		}
		if writesFar {
			places = append(places, rowAt{far.Matrix, at.RowOffset, far.ColOffset})
		}
	}
	if cmd.Type == CopyToRowsMulti && cmd.Alpha != 1 {
		r.addf(ErrSize, i, "alpha is %g, it must be 1", cmd.Alpha)
	}
	r.distinct(i, places, near.NumCols)
}

// distinct checks that rows of cols columns at the places share no element.
func (r *report) distinct(i int, places []rowAt, cols int32) {
	// Places have one width, so if any two of them overlap, two neighbors in this order do.
	slices.SortFunc(places, func(a, b rowAt) int {
		return cmp.Or(cmp.Compare(a.matrix, b.matrix), cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col))
	})
	for k := 1; k < len(places); k++ {
		a, b := places[k-1], places[k]
		if a.matrix == b.matrix && a.row == b.row && b.col < a.col+cols {
			r.addf(ErrOverlap, i, "row %d of m%d is written twice", a.row, a.matrix)
			return
		}
	}
}
