//go:build netlib

package main

import (
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/netlib/blas/netlib"
)

// useBLAS computes products by the BLAS that the program is linked with.
func useBLAS() { blas32.Use(netlib.Implementation{}) }
