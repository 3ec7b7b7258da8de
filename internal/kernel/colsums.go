package kernel

// Columns are summed in the order of OpenBLAS, and so of Kaldi: up to fewSumRows rows one after the
// other; of more rows, groups of eight, then four, two and one, are added before their sum is
// multiplied and added. Columns that don't fill a vector have orders of their own (those of less
// than four columns are not known). The order depends on the number of rows, but not on the
// kernels.
const (
	fewSumRows = 64
	sumRows    = 8
	// chunkRows is how many rows are read at a time. Processors prefetch at least that many
	// streams.
	chunkRows = 2 * sumRows
)

// AddColSums adds alpha times the column sums of m to dst.
func AddColSums(dst []float32, alpha float32, m Matrix) {
	if len(dst) != m.Cols {
		panic(errShape)
	}
	checkData(&m)
	colMoments(dst, alpha, nil, m, Matrix{})
}

// addColMoments is [Threads.AddColMoments] of a thread.
func addColMoments(sum []float32, alpha float32, product []float64, x, y Matrix) {
	sameShape(&x, &y)
	if len(sum) != x.Cols || len(product) != x.Cols {
		panic(errShape)
	}
	colMoments(sum, alpha, product, x, y)
}

// colMoments is AddColMoments, or AddColSums if product is nil.
func colMoments(sum []float32, alpha float32, product []float64, x, y Matrix) {
	if x.Cols == 0 {
		return
	}
	few := x.Rows <= fewSumRows
	// The moments of many rows, as batch normalization needs them, have a way of their own if no
	// column is left over, because they are read from memory.
	if product != nil && !few && wholeBlocks(x.Cols)*block == x.Cols {
		rowMoments(sum, alpha, product, x, y)
		return
	}
	whole := x.Cols &^ 3
	// The last columns, less than a vector of four, are summed from top to bottom and multiplied
	// once.
	for j := whole; j < x.Cols && !few; j++ {
		total := float32(0)
		for i := range x.Rows {
			total += x.Data[i*x.Stride+j]
		}
		sum[j] = fma32(alpha, total, sum[j])
	}
	for i, rows := 0, chunkRows; i < x.Rows; i += rows {
		// At the end groups become smaller by halves, as the remaining number of rows says in
		// binary.
		for rows > x.Rows-i {
			rows /= 2
		}
		xi := Rows(x, i, rows)
		switch {
		case few:
			for r := range rows {
				FMAVec(sum, alpha, Row(xi, r))
			}
		case whole > 0:
			colSums(sum[:whole], alpha, Cols(xi, 0, whole))
		}
		if product != nil {
			colProducts(product, xi, Rows(y, i, rows))
		}
	}
}

// rowMoments is colMoments for many rows of whole blocks. It reads two rows of each matrix at a
// time from end to end: more streams, or pieces of many rows, take longer if they come from memory.
func rowMoments(sum []float32, alpha float32, product []float64, x, y Matrix) {
	ws := getWorkspace()
	defer ws.put()
	group, n := ws.floats(x.Cols), x.Cols/block
	for i, rows := 0, sumRows; i < x.Rows; i += rows {
		for rows > x.Rows-i {
			rows /= 2
		}
		if rows == 1 {
			FMAVec(sum, alpha, Row(x, i))
			colProducts(product, Rows(x, i, 1), Rows(y, i, 1))
			continue
		}
		for r := i; r < i+rows; r += 2 {
			x0, x1, y0, y1 := &Row(x, r)[0], &Row(x, r+1)[0], &Row(y, r)[0], &Row(y, r+1)[0]
			// The first two rows of a group overwrite the sums of the group before.
			if r == i {
				firstMomentsBlocks(&group[0], &product[0], x0, x1, y0, y1, n)
			} else {
				nextMomentsBlocks(&group[0], &product[0], x0, x1, y0, y1, n)
			}
		}
		FMAVec(sum, alpha, group)
	}
}

// colSums adds alpha times the sums of groups of rows of x to sum. The number of rows is chunkRows,
// or half that, and so on down to 1, and that of columns a multiple of four.
func colSums(sum []float32, alpha float32, x Matrix) {
	if x.Rows == 1 {
		FMAVec(sum, alpha, Row(x, 0))
		return
	}
	group := min(x.Rows, sumRows)
	first := x.Cols % block
	for i := 0; i < x.Rows; i += group {
		// The first columns, those that do not fill a block, are summed in two halves.
		for j := range first {
			pairs := alternatingSum(x.Data[i*x.Stride+j:], x.Stride, group)
			// OpenBLAS does not fuse here if a group has more than two rows.
			if group > 2 {
				sum[j] += float32(alpha * pairs)
			} else {
				sum[j] = fma32(alpha, pairs, sum[j])
			}
		}
	}
	if wholeBlocks(x.Cols) == 0 {
		for i := 0; i < x.Rows; i += group {
			for j := first; j < x.Cols; j++ {
				total := x.Data[i*x.Stride+j]
				for r := i + 1; r < i+group; r++ {
					total += x.Data[r*x.Stride+j]
				}
				sum[j] = fma32(alpha, total, sum[j])
			}
		}
		return
	}
	for j := first; j < x.Cols; j += block {
		colSumsBlocks(&sum[j], alpha, &x.Data[j], uintptr(4*x.Stride), group, x.Rows/group)
	}
}

// alternatingSum returns the sum of n elements that are stride apart, those with even numbers added
// by themselves. n is even.
func alternatingSum(x []float32, stride, n int) float32 {
	var even, odd float32
	for i := 0; i < n; i += 2 {
		even += x[i*stride]
		odd += x[(i+1)*stride]
	}
	return even + odd
}

// colProducts adds the column sums of x∘y to product.
func colProducts(product []float64, x, y Matrix) {
	n := 0
	if x.Rows > 1 {
		n = wholeBlocks(x.Cols) * block
	}
	for j := 0; j < n; j += block {
		colProductsBlocks(&product[j], &x.Data[j], &y.Data[j], uintptr(4*x.Stride), uintptr(4*y.Stride), x.Rows/2)
	}
	for i := 0; i < x.Rows; i += 2 {
		for j := n; j < x.Cols; j++ {
			// A last row without a partner has a product without a sum.
			p := float32(x.Data[i*x.Stride+j] * y.Data[i*y.Stride+j])
			if i+1 < x.Rows {
				p = fma32(x.Data[i*x.Stride+j], y.Data[i*y.Stride+j], float32(x.Data[(i+1)*x.Stride+j]*y.Data[(i+1)*y.Stride+j]))
			}
			product[j] += float64(p)
		}
	}
}
