// Package hugepages makes large slices for what is read again and again, or written at once.
package hugepages

import "unsafe"

// Make returns n zeros. On Linux they are on huge pages, if there are any: with pages of 4 kB, address translation costs
// products with large factors 5 to 15 % of their speed, and touching memory for the first time takes several times as
// long as writing it.
func Make[T any](n int) []T {
	v := make([]T, n)
	prefer(unsafe.Pointer(unsafe.SliceData(v)), uintptr(n)*unsafe.Sizeof(*new(T)))
	return v
}
