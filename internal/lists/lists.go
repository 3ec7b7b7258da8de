// Package lists makes slices of slices' elements.
package lists

// Map returns what f makes of each element. The result is never nil.
func Map[S ~[]T, T, U any](s S, f func(T) U) []U {
	out := make([]U, len(s))
	for i, x := range s {
		out[i] = f(x)
	}
	return out
}

// Range returns 0, 1, …, n-1.
func Range[T ~int | ~int32 | ~int64](n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = T(i)
	}
	return out
}
