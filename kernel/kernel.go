// Package kernel has what programs need of the numerics that networks and tensors are computed with: matrices, the products
// as a BLAS, and an exponential with the same bits on every processor. All else is in internal/kernel.
package kernel

import (
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/kernel/elementary"
)

// Matrix is a view of float32 elements in row-major order: element (i, j) is Data[i*Stride+j].
type Matrix = kernel.Matrix

// BLAS is gonum's implementation of BLAS with the matrix product of nnopt, for
//
//	blas32.Use(kernel.BLAS{})
type BLAS = kernel.BLAS

// Row returns row i of m.
func Row(m Matrix, i int) []float32 { return kernel.Row(m, i) }

// Exp returns e to the power of x, with the same bits on every processor.
func Exp(x float64) float64 { return elementary.Exp(x) }
