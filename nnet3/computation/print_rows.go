package computation

import (
	"fmt"
	"strconv"

	"github.com/nnopt/nnopt/nnet3/index"
)

// runs walks a list of n rows in maximal runs and calls emit with each, first to last inclusive. same says whether the row
// after i continues a run that begins at first.
func runs(n, most int, same func(first, i int) bool, emit func(first, last int)) (left int) {
	count := 0
	for first := 0; first < n; {
		if most > 0 && count == most {
			return n - first
		}
		last := first
		for last+1 < n && same(first, last) {
			last++
		}
		emit(first, last)
		first = last + 1
		count++
	}
	return 0
}

// appendLeft appends how many rows were not listed.
func appendLeft(dst []byte, left int) []byte {
	if left == 0 {
		return dst
	}
	dst = strconv.AppendInt(append(dst, ", ... "...), int64(left), 10)
	return append(dst, " more"...)
}

// appendProgression appends the numbers first, first+step, ..., last: "7", "0:9", "0:27:3", or "5 x10" for ten times 5.
func appendProgression(dst []byte, first, last, step, n int) []byte {
	dst = strconv.AppendInt(dst, int64(first), 10)
	switch {
	case n == 1:
		return dst
	case step == 0:
		return strconv.AppendInt(append(dst, " x"...), int64(n), 10)
	}
	dst = strconv.AppendInt(append(dst, ':'), int64(last), 10)
	if step != 1 {
		dst = strconv.AppendInt(append(dst, ':'), int64(step), 10)
	}
	return dst
}

// appendIndexes appends a vector of row numbers, - for -1.
func (p *Printer) appendIndexes(dst []byte, vector int32) []byte {
	if vector < 0 || int(vector) >= len(p.c.Indexes) {
		return strconv.AppendInt(append(dst, "indexes#"...), int64(vector), 10)
	}
	v := p.c.Indexes[vector]
	return append(appendRowList(append(dst, '['), len(v), p.MaxRuns, func(i int) int { return int(v[i]) }), ']')
}

// appendRowList appends n row numbers as arithmetic progressions.
func appendRowList(dst []byte, n, most int, row func(i int) int) []byte {
	same := func(first, i int) bool {
		if row(first) < 0 || row(i+1) < 0 {
			return row(first) == row(i+1)
		}
		return i == first || row(i+1)-row(i) == row(first+1)-row(first)
	}
	left := runs(n, most, same, func(first, last int) {
		if first > 0 {
			dst = append(dst, ", "...)
		}
		if row(first) < 0 {
			dst = append(dst, '-')
			if last > first {
				dst = strconv.AppendInt(append(dst, " x"...), int64(last-first+1), 10)
			}
			return
		}
		step := 0
		if last > first {
			step = row(first+1) - row(first)
		}
		dst = appendProgression(dst, row(first), row(last), step, last-first+1)
	})
	return appendLeft(dst, left)
}

// appendMulti appends a vector of (sub-matrix, row) pairs: m3[0:9], m4(:, 0:31)[2], -.
func (p *Printer) appendMulti(dst []byte, vector int32) []byte {
	if vector < 0 || int(vector) >= len(p.c.IndexesMulti) {
		return strconv.AppendInt(append(dst, "indexes_multi#"...), int64(vector), 10)
	}
	v := p.c.IndexesMulti[vector]
	same := func(first, i int) bool { return v[first][0] == v[i+1][0] }
	left := runs(len(v), p.MaxRuns, same, func(first, last int) {
		if first > 0 {
			dst = append(dst, ", "...)
		}
		if v[first][0] < 0 {
			dst = append(dst, '-')
			if last > first {
				dst = strconv.AppendInt(append(dst, " x"...), int64(last-first+1), 10)
			}
			return
		}
		dst = append(p.appendSubmatrix(dst, v[first][0]), '[')
		dst = appendRowList(dst, last-first+1, p.MaxRuns, func(i int) int { return int(v[first+i][1]) })
		dst = append(dst, ']')
	})
	return appendLeft(dst, left)
}

// appendRanges appends a vector of ranges of rows, with inclusive ends, - for an empty one.
func (p *Printer) appendRanges(dst []byte, vector int32) []byte {
	if vector < 0 || int(vector) >= len(p.c.IndexesRanges) {
		return strconv.AppendInt(append(dst, "indexes_ranges#"...), int64(vector), 10)
	}
	v := p.c.IndexesRanges[vector]
	same := func(first, i int) bool { return v[first] == v[i+1] }
	left := runs(len(v), p.MaxRuns, same, func(first, last int) {
		if first > 0 {
			dst = append(dst, ", "...)
		}
		if r := v[first]; r[0] < 0 || r[0] == r[1] {
			dst = append(dst, '-')
		} else {
			dst = appendRange(dst, r[0], r[1]-r[0], -1)
		}
		if last > first {
			dst = strconv.AppendInt(append(dst, " x"...), int64(last-first+1), 10)
		}
	})
	return appendLeft(dst, left)
}

// appendMatrixInfo appends the size of matrix m and, where it is known, what its rows stand for:
//
//	m2  33x48  value of tdnn1.affine_input(0,-16:16)
func (p *Printer) appendMatrixInfo(dst []byte, m int32) []byte {
	info := p.c.Matrices[m]
	dst = fmt.Appendf(dst, "m%d  %dx%d", m, info.Rows, info.Cols)
	if info.StrideEqualNumCols {
		dst = append(dst, " (stride = columns)"...)
	}
	if int(m) >= len(p.c.MatrixDebugInfo) {
		return dst
	}
	debug := p.c.MatrixDebugInfo[m]
	if debug.IsDeriv {
		dst = append(dst, "  derivative of"...)
	} else {
		dst = append(dst, "  value of"...)
	}
	return append(append(dst, ' '), index.FormatCindexes(debug.Cindexes, func(node int) string { return p.net.nodeName(int32(node)) })...)
}
