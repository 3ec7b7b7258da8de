package kernel

// copyRows is [Threads.CopyRows] of a thread.
func copyRows(dst, src Matrix, indexes []int32) {
	checkRows(dst, src, len(indexes))
	for i, r := range indexes {
		if r < 0 {
			clear(Row(dst, i))
			continue
		}
		copy(Row(dst, i), sourceRow(src, r))
	}
}

// addRows is [Threads.AddRows] of a thread.
func addRows(dst Matrix, alpha float32, src Matrix, indexes []int32) {
	checkRows(dst, src, len(indexes))
	for i, r := range indexes {
		if r >= 0 {
			AddVec(Row(dst, i), alpha, sourceRow(src, r))
		}
	}
}

// AddRowRanges adds alpha times the sum of the rows [first, second) of src to row i of dst, for
// each pair i of ranges. (-1, -1) is an empty range.
func AddRowRanges[Pair ~[2]int32](dst Matrix, alpha float32, src Matrix, ranges []Pair) {
	checkRows(dst, src, len(ranges))
	for i, p := range ranges {
		row := Row(dst, i)
		for r := p[0]; r < p[1]; r++ {
			AddVec(row, alpha, sourceRow(src, r))
		}
	}
}

// PermuteCols sets column j of dst to column from[j] of src.
func PermuteCols(dst, src Matrix, from []int32) {
	if dst.Rows != src.Rows || dst.Cols != len(from) {
		panic(errShape)
	}
	checkApart(&dst)
	checkData(&src)
	for i := range dst.Rows {
		d, s := Row(dst, i), Row(src, i)
		d = head(d, len(from))
		for j, f := range from {
			d[j] = s[f]
		}
	}
}

// checkRows panics unless dst has n rows, and the columns of src.
func checkRows(dst, src Matrix, n int) {
	if dst.Rows != n || dst.Cols != src.Cols {
		panic(errShape)
	}
	checkApart(&dst)
	checkData(&src)
}

// sourceRow returns row r of m. It panics if there is none.
func sourceRow(m Matrix, r int32) []float32 {
	if r < 0 || int(r) >= m.Rows {
		panic(errIndex)
	}
	return Row(m, int(r))
}
