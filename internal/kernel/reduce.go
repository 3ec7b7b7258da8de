package kernel

// AddColProducts adds alpha times the column sums of the element-wise product of a and b to dst.
func AddColProducts(dst []float32, alpha float32, a, b Matrix) {
	sameShape(&a, &b)
	if len(dst) != a.Cols {
		panic(errShape)
	}
	for i := range a.Rows {
		addScaledMul(dst, Row(a, i), Row(b, i), alpha)
	}
}

// squareRows is how many rows are summed by themselves, so that threads can divide rows. A thread that
// had columns instead would fetch what is behind its piece of each row, as its processor foresees that
// the row goes on, and take it away from the thread that writes there.
const squareRows = 64

var addDoubles = Float64Map("add")

// eachSquares adds sums of squares of m to sumsq, or none if it is nil: add adds those of some rows.
// Threads, which may be nil, divide the rows.
func (t *Threads) eachSquares(sumsq []float64, m *Matrix, a args, add func(a *args, sumsq []float64, first, n int)) {
	blocks := (m.Rows + squareRows - 1) / squareRows
	if blocks == 0 {
		return
	}
	ws := getWorkspace()
	defer ws.put()
	a.add, a.x = add, *m
	if sumsq != nil {
		a.sums = ws.doubles(blocks * m.Cols)
	}
	if !t.divide(m, m.Rows, squareRows, computed, (*matrixJob).squares, a) {
		j := &ws.squares
		j.args = a
		j.squares(0, m.Rows)
		j.args = args{}
	}
	if sumsq != nil {
		for b := range blocks {
			addDoubles(sumsq, sumsq, a.sums[b*m.Cols:])
		}
	}
}

// squares computes the sums of some rows, beginning with a multiple of squareRows.
func (j *matrixJob) squares(first, n int) {
	for i := first; i < first+n; i += squareRows {
		var sums []float64
		if j.sums != nil {
			b := i / squareRows
			sums = j.sums[b*j.x.Cols : (b+1)*j.x.Cols]
			clear(sums)
		}
		j.add(&j.args, sums, i, min(squareRows, first+n-i))
	}
}

// MatrixDot returns the sum of the products of the elements of a and b.
func MatrixDot(a, b Matrix) float64 {
	sameShape(&a, &b)
	var sum float64
	for i := range a.Rows {
		x, y := Row(a, i), Row(b, i)
		y = head(y, len(x))
		for j, v := range x {
			sum += float64(float64(v) * float64(y[j]))
		}
	}
	return sum
}

// Sum returns the sum of the elements of x. Its order depends on the length alone.
func Sum(x []float32) (sum float32) {
	for ; len(x) > maxTerms; x = x[maxTerms:] {
		sum += shortSum(x[:maxTerms])
	}
	return sum + shortSum(x)
}

// shortSum adds up four partial sums of every fourth element.
func shortSum(x []float32) float32 {
	var a, b, c, d float32
	for len(x) >= 4 {
		a, b, c, d = a+x[0], b+x[1], c+x[2], d+x[3]
		x = x[4:]
	}
	for _, v := range x {
		a += v
	}
	return (a + b) + (c + d)
}
