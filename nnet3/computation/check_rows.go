package computation

import (
	"cmp"
	"slices"
)

// rowIndexes checks CopyRows and AddRows.
func (r *report) rowIndexes(i int, cmd Command) {
	dst, src := r.c.Submatrices[cmd.Arg1], r.c.Submatrices[cmd.Arg2]
	r.sameCols(i, dst, src)
	r.disjoint(i, cmd.Arg1, cmd.Arg2)
	v := r.c.Indexes[cmd.Arg3]
	if len(v) != int(dst.NumRows) {
		r.addf(ErrRows, i, "%d row numbers for %d rows", len(v), dst.NumRows)
	}
	for row, from := range v {
		if from < -1 || from >= src.NumRows {
			r.addf(ErrRows, i, "row %d comes from row %d of %d", row, from, src.NumRows)
			return // one such fault tells enough
		}
	}
}

// rowRanges checks AddRowRanges.
func (r *report) rowRanges(i int, cmd Command) {
	dst, src := r.c.Submatrices[cmd.Arg1], r.c.Submatrices[cmd.Arg2]
	r.sameCols(i, dst, src)
	r.disjoint(i, cmd.Arg1, cmd.Arg2)
	v := r.c.IndexesRanges[cmd.Arg3]
	if len(v) != int(dst.NumRows) {
		r.addf(ErrRows, i, "%d ranges for %d rows", len(v), dst.NumRows)
	}
	for row, p := range v {
		if p != (Pair{-1, -1}) && (p[0] < 0 || p[1] < p[0] || p[1] > src.NumRows) {
			r.addf(ErrRows, i, "row %d sums the rows [%d, %d) of %d", row, p[0], p[1], src.NumRows)
			return
		}
	}
}

func (r *report) sameCols(i int, dst, src SubMatrixInfo) {
	if dst.NumCols != src.NumCols {
		r.addf(ErrSize, i, "%d and %d columns", dst.NumCols, src.NumCols)
	}
}

// place is one row at the far end of a vector of pairs, by where it lies.
type place struct {
	matrix, row, col int32
}

// multi checks the four commands whose vector holds (sub-matrix, row) pairs. Rows that are there were checked before.
func (r *report) multi(i int, cmd Command) {
	near := r.c.Submatrices[cmd.Arg1]
	v := r.c.IndexesMulti[cmd.Arg2]
	if len(v) != int(near.NumRows) {
		r.addf(ErrRows, i, "%d pairs for %d rows", len(v), near.NumRows)
	}
	writesFar := cmd.Type == CopyToRowsMulti || cmd.Type == AddToRowsMulti
	var places []place
	for row, p := range v {
		if p[0] < 0 {
			continue
		}
		far := r.c.Submatrices[p[0]]
		if far.NumCols != near.NumCols {
			r.addf(ErrSize, i, "%d columns, and row %d is of %s with %d columns", near.NumCols, row, r.printer.AppendSubmatrix(nil, p[0]), far.NumCols)
			return
		}
		at := far
		at.RowOffset, at.NumRows = far.RowOffset+p[1], 1
		if at.Overlaps(near) {
			r.addf(ErrOverlap, i, "row %d of %s is one of the command's own rows", p[1], r.printer.AppendSubmatrix(nil, p[0]))
			return
		}
		if writesFar {
			places = append(places, place{far.Matrix, at.RowOffset, far.ColOffset})
		}
	}
	if cmd.Type == CopyToRowsMulti && cmd.Alpha != 1 {
		r.addf(ErrSize, i, "alpha is %g, it must be 1", cmd.Alpha)
	}
	r.distinct(i, places, near.NumCols)
}

// distinct checks that rows of cols columns at the places share no element.
func (r *report) distinct(i int, places []place, cols int32) {
	slices.SortFunc(places, func(a, b place) int {
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
