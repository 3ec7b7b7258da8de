package computation

import (
	"fmt"

	"github.com/nnopt/nnopt/nnet3/index"
)

// appendRuns divides n rows into maximal runs and appends the text of each, separated by commas,
// but of no more than most runs (0: all), and then how many rows it left out. same reports whether
// row i+1 continues a run that begins at first and holds i.
func appendRuns(dst []byte, n, most int, same func(first, i int) bool, run func(dst []byte, first, last int) []byte) []byte {
	count := 0
	for first := 0; first < n; count++ {
		if most > 0 && count == most {
			return append(appendInt(dst, ", ... ", n-first), " more"...)
		}
		last := first
		for last+1 < n && same(first, last) {
			last++
		}
		if first > 0 {
			dst = append(dst, ", "...)
		}
		dst = run(dst, first, last)
		first = last + 1
	}
	return dst
}

// appendTimes appends how often an item is repeated, nothing for once.
func appendTimes(dst []byte, n int) []byte {
	if n == 1 {
		return dst
	}
	return appendInt(dst, " x", n)
}

// appendIndexes appends a vector of row numbers in brackets, - for -1.
func (p *Printer) appendIndexes(dst []byte, vector int32) []byte {
	if vector < 0 || int(vector) >= len(p.c.Indexes) {
		return appendInt(dst, "indexes#", vector)
	}
	v := p.c.Indexes[vector]
	return append(appendRowList(append(dst, '['), len(v), p.MaxRuns, func(i int) int { return int(v[i]) }), ']')
}

// appendRowList appends n row numbers as arithmetic progressions: 7, 0:9, 0:27:3, 5 x10.
func appendRowList(dst []byte, n, most int, row func(i int) int) []byte {
	same := func(first, i int) bool {
		// A run is all -1, or begins with two numbers whose distance the others keep.
		if row(first) < 0 || row(i+1) < 0 {
			return row(first) == row(i+1)
		}
		return i == first || row(i+1)-row(i) == row(first+1)-row(first)
	}
	return appendRuns(dst, n, most, same, func(dst []byte, first, last int) []byte {
		if row(first) < 0 {
			return appendTimes(append(dst, '-'), last-first+1)
		}
		dst = appendInt(dst, "", row(first))
		if last == first || row(first+1) == row(first) {
			return appendTimes(dst, last-first+1)
		}
		dst = appendInt(dst, ":", row(last))
		if step := row(first+1) - row(first); step != 1 {
			dst = appendInt(dst, ":", step)
		}
		return dst
	})
}

// appendMulti appends a vector of (sub-matrix, row) pairs: m3[0:9], m4(:, 0:31)[2], -.
func (p *Printer) appendMulti(dst []byte, vector int32) []byte {
	if vector < 0 || int(vector) >= len(p.c.IndexesMulti) {
		return appendInt(dst, "indexes_multi#", vector)
	}
	v := p.c.IndexesMulti[vector]
	same := func(first, i int) bool { return v[first][0] == v[i+1][0] }
	return appendRuns(dst, len(v), p.MaxRuns, same, func(dst []byte, first, last int) []byte {
		if v[first][0] < 0 {
			return appendTimes(append(dst, '-'), last-first+1)
		}
		dst = append(p.appendSubmatrix(dst, v[first][0]), '[')
		dst = appendRowList(dst, last-first+1, p.MaxRuns, func(i int) int { return int(v[first+i][1]) })
		return append(dst, ']')
	})
}

// appendRanges appends a vector of ranges of rows, with inclusive ends, - for an empty one.
func (p *Printer) appendRanges(dst []byte, vector int32) []byte {
	if vector < 0 || int(vector) >= len(p.c.IndexesRanges) {
		return appendInt(dst, "indexes_ranges#", vector)
	}
	v := p.c.IndexesRanges[vector]
	same := func(first, i int) bool { return v[first] == v[i+1] }
	return appendRuns(dst, len(v), p.MaxRuns, same, func(dst []byte, first, last int) []byte {
		if r := v[first]; r[0] < 0 || r[0] == r[1] {
			dst = append(dst, '-')
		} else {
			dst = appendRange(dst, r[0], r[1]-r[0], -1)
		}
		return appendTimes(dst, last-first+1)
	})
}

// appendMatrixInfo appends the size of matrix m and the meaning of its rows where it is known:
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
		dst = append(dst, "  derivative of "...)
	} else {
		dst = append(dst, "  value of "...)
	}
	return append(dst, index.FormatCindexes(debug.Cindexes, func(node int) string { return p.net.nodeName(int32(node)) })...)
}
