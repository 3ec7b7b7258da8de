//go:build !netlib

package main

// useBLAS does nothing: products are computed by package kernel. The build tag netlib
// selects another BLAS.
func useBLAS() {}
