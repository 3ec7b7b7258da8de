//go:build netlib

package main

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/netlib/blas/netlib"

	"github.com/nnopt/nnopt/internal/kernel"
)

// TestNetlib: the program computes with the BLAS that it is linked with, and gets what this
// module's products are.
func TestNetlib(t *testing.T) {
	defer blas32.Use(blas32.Implementation())
	useBLAS()
	if _, ok := blas32.Implementation().(netlib.Implementation); !ok {
		t.Fatalf("products are computed by %T", blas32.Implementation())
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	matrix := func(rows, cols int) kernel.Matrix {
		m := kernel.New(rows, cols)
		for i := range m.Data {
			m.Data[i] = float32(rnd.NormFloat64())
		}
		return m
	}
	for _, s := range [][3]int{{1, 40, 30}, {7, 64, 100}, {50, 33, 129}} {
		x, w, bias := matrix(s[0], s[2]), matrix(s[1], s[2]), matrix(1, s[1]).Data
		y, want := kernel.New(s[0], s[1]), kernel.New(s[0], s[1])
		kernel.NewWeights(w).Mul(x, kernel.Epilogue{Bias: bias, ReLU: true}, y)
		blas32.Use(kernel.BLAS{})
		kernel.NewWeights(w).Mul(x, kernel.Epilogue{Bias: bias, ReLU: true}, want)
		useBLAS()
		for i, v := range y.Data {
			if math.Abs(float64(v-want.Data[i])) > 1e-4 {
				t.Fatalf("%v: element %d is %g, not %g", s, i, v, want.Data[i])
			}
		}
	}
}
