//go:build !netlib

package main

// useBLAS leaves products to this module. The build tag netlib hands them to another BLAS.
func useBLAS() {}
