package array

// DiagonalTo makes v the view of a diagonal in two different dimensions, from the element at (0,
// offset) on, or at (-offset, 0) if offset is negative. The diagonal becomes the last dimension.
func (a *Array) DiagonalTo(v *Array, offset, dim1, dim2 int) {
	src := *a
	*v = Array{dtype: src.dtype, offset: src.offset, data: src.data}
	for d := range int(src.ndim) {
		if d != dim1 && d != dim2 {
			v.shape[v.ndim], v.strides[v.ndim] = src.shape[d], src.strides[d]
			v.ndim++
		}
	}
	// One step goes to the next row and column at once.
	n := DiagonalLen(src.shape[dim1], src.shape[dim2], offset)
	v.shape[v.ndim], v.strides[v.ndim] = n, src.strides[dim1]+src.strides[dim2]
	v.ndim++
	// The first element of an empty diagonal lies outside, where a view must not begin.
	if v.Len() > 0 {
		v.offset += max(offset, 0)*src.strides[dim2] + max(-offset, 0)*src.strides[dim1]
	}
}

// DiagonalLen returns the number of elements of a diagonal of a matrix.
func DiagonalLen(rows, columns, offset int) int {
	return max(0, min(rows-max(-offset, 0), columns-max(offset, 0)))
}
