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

// AddColSquares adds the column sums of the squares of m to sumsq.
func AddColSquares(sumsq []float64, m Matrix) {
	if len(sumsq) != m.Cols {
		panic(errShape)
	}
	checkData(&m)
	for i := range m.Rows {
		addSquares(sumsq, Row(m, i))
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
