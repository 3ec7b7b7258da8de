package array

// Cumulate sets out to the sums of the elements of in up to each one along a dimension, or to the
// products. Out is contiguous and has the shape of in and the type Sum.Result. Floats are
// accumulated in double precision, one after the other.
func (ws *Workspace) Cumulate(out, in *Array, axis int, products bool) {
	if in.dtype != out.dtype {
		in = in.Cast(out.dtype)
	}
	// In place from here on: each element is read before its sum overwrites it.
	ws.Copy(out, in)
	inner := product(out.shape[axis+1 : out.ndim])
	group := out.shape[axis] * inner
	if out.Len() == 0 {
		return
	}
	ws.pieces(out.Len()*cumulated, out.Len()/group, 1, func(ws *Workspace, first, next int) {
		lo, hi, n := first*group, next*group, out.shape[axis]
		switch out.dtype {
		case Int64:
			cumulate(Slice[int64](out)[lo:hi], make([]int64, inner), n, products)
		case Uint64:
			cumulate(Slice[uint64](out)[lo:hi], make([]uint64, inner), n, products)
		case Float32:
			cumulate(Slice[float32](out)[lo:hi], ws.accumulators(inner), n, products)
		case Float64:
			cumulate(Slice[float64](out)[lo:hi], ws.accumulators(inner), n, products)
		}
	})
}

// cumulated is what an element takes, in picoseconds.
const cumulated = 1000

// accumulators returns scratch memory of n float64s.
func (ws *Workspace) accumulators(n int) []float64 {
	if len(ws.sums) < n {
		ws.sums = make([]float64, n)
	}
	return ws.sums[:n]
}

// cumulate replaces groups of n rows, each as long as acc, by their sums or products so far.
func cumulate[T, A number](x []T, acc []A, n int, products bool) {
	for size := n * len(acc); len(x) > 0; x = x[size:] {
		// Along the last dimension one accumulator is enough, and stays in a register.
		if len(acc) == 1 {
			cumulateLine[T, A](x[:n], products)
			continue
		}
		for i, v := range x[:len(acc)] {
			acc[i] = A(v)
		}
		for row := x[len(acc):size]; len(row) > 0; row = row[len(acc):] {
			cumulateRow(row[:len(acc)], acc, products)
		}
	}
}

func cumulateLine[T, A number](x []T, products bool) {
	acc := A(x[0])
	rest := x[1:]
	if products {
		for i, v := range rest {
			acc *= A(v)
			rest[i] = T(acc)
		}
		return
	}
	for i, v := range rest {
		acc += A(v)
		rest[i] = T(acc)
	}
}

func cumulateRow[T, A number](row []T, acc []A, products bool) {
	if products {
		for i, v := range row {
			acc[i] *= A(v)
			row[i] = T(acc[i])
		}
		return
	}
	for i, v := range row {
		acc[i] += A(v)
		row[i] = T(acc[i])
	}
}
