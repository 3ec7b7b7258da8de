package kernel

// Fill sets every element of m to v.
func Fill(m Matrix, v float32) {
	checkApart(&m)
	for i := range m.Rows {
		row := Row(m, i)
		if v == 0 {
			clear(row)
			continue
		}
		for j := range row {
			row[j] = v
		}
	}
}

// Scale multiplies m by alpha. An alpha of 0 sets m to zero without reading it.
func Scale(m Matrix, alpha float32) {
	checkApart(&m)
	switch alpha {
	case 1:
	case 0:
		Fill(m, 0)
	default:
		MapRows(m, m, func(dst, src []float32) { ScaleVec(dst, alpha, src) })
	}
}

// Copy sets dst to src.
func Copy(dst, src Matrix) {
	onto(&dst, &src)
	if Same(dst, src) {
		return
	}
	for i := range dst.Rows {
		copy(Row(dst, i), Row(src, i))
	}
}

// CopyScaled sets dst to alpha·src.
func CopyScaled(dst Matrix, alpha float32, src Matrix) {
	if alpha == 1 {
		Copy(dst, src)
		return
	}
	MapRows(dst, src, func(dst, src []float32) { ScaleVec(dst, alpha, src) })
}

// Add adds alpha·src to dst.
func Add(dst Matrix, alpha float32, src Matrix) {
	MapRows(dst, src, func(dst, src []float32) { AddVec(dst, alpha, src) })
}

// AddVec adds alpha·src to dst.
func AddVec(dst []float32, alpha float32, src []float32) {
	if alpha == 1 {
		addVec(dst, src)
		return
	}
	addScaled(dst, src, alpha)
}

// SetRows sets every row of dst to v.
func SetRows(dst Matrix, v []float32) {
	if len(v) != dst.Cols {
		panic(errShape)
	}
	checkApart(&dst)
	for i := range dst.Rows {
		copy(Row(dst, i), v)
	}
}

// AddRow adds alpha·v to every row of dst.
func AddRow(dst Matrix, alpha float32, v []float32) {
	if len(v) != dst.Cols {
		panic(errShape)
	}
	checkApart(&dst)
	for i := range dst.Rows {
		AddVec(Row(dst, i), alpha, v)
	}
}

// scaleCols is [Threads.ScaleCols] of a thread.
func scaleCols(dst, src Matrix, scale []float32) {
	if len(scale) != dst.Cols {
		panic(errShape)
	}
	MapRows(dst, src, func(dst, src []float32) { MulVec(dst, src, scale) })
}

// scaleOffset is [Threads.ScaleOffset] of a thread.
func scaleOffset(dst, src Matrix, scale, offset []float32) {
	if len(scale) != dst.Cols || len(offset) != dst.Cols {
		panic(errShape)
	}
	MapRows(dst, src, func(dst, src []float32) { MulAddVec(dst, src, scale, offset) })
}
