// Package kernel computes on float32 matrices in row-major order: products, element-wise maps,
// reductions, moves of rows.
//
// It is not a matrix library. A Matrix is gonum's blas32.General, a plain view: rows are Stride
// elements apart, which may be more than Cols; a matrix may have no rows. Functions write to a
// destination that the caller owns, allocate nothing, and leave the gap between Cols and Stride
// alone. Source and destination may be the same view where a function maps elements to elements;
// otherwise they must not overlap.
//
// NaN and infinities propagate: no function skips a factor because the other one is zero. Functions
// panic, as in BLAS, if shapes don't fit, if a matrix or vector has too few elements, or if rows of
// a destination overlap. They never read or write beyond the length of a slice,
// even within its capacity.
//
// # Products
//
// The main product is y = x·Wᵀ with weights that stay the same (Weights). An Epilogue completes the
// result before it is stored, and MulSegments sums several such products. MulNT, MulNN and MulTN
// multiply factors that are not packed, and Weights.MulPatches what a window shows of an image at each
// of its positions. On amd64 with AVX2 or AVX-512, and on arm64, products, maps and reductions are
// computed in assembly, elsewhere products by gonum. Every sum over the inner dimension is one chain of
// fused multiply-adds in order, or sixteen chains if y has few columns, for every 16,384 terms
// (Divisible). So the bits of an element depend neither on the other elements, nor on its place, nor on
// the instruction set. Gonum's products have other bits.
//
// After blas32.Use, products use that BLAS, with its own rounding. BLAS offers the products of this
// package to others in the same way.
//
// The environment variable NNOPT_KERNELS, read at program start, forces a set of kernels: avx512,
// avxvnni (avx2, with VNNI for quantized products), avx2, neondot (neon, with dot products for
// quantized ones), neon, go (slow; for debugging, or for processors without assembly; with the same
// bits), blas, or openblas (the order of sums of OpenBLAS, to compare with Kaldi).
//
// # Threads
//
// Threads compute together what is worth dividing, in parts whose borders never cut a sum: products
// with an Epilogue that has Threads, and the methods of Threads, which are functions and methods of
// this package by the same names. No result depends on the number of threads.
//
// # Quantized products
//
// MulQuantized multiplies QuantizedRows, the rows of a matrix as integers, by QuantizedWeights.
// Sums of integers are exact, and the epilogue rounds every operation by itself, so these products
// have the same bits everywhere, too, and rows don't depend on each other.
//
// # Vectors
//
// Functions whose names end in Vec take vectors; MapRows and MapRows2 apply them to matrices. Maps
// and reductions round every operation by itself, or fuse the same ones in assembly and in Go, so that
// they give the same bits on every processor.
//
// # Float64
//
// Float64Map returns functions on vectors of float64s, whose Go code is package elementary. DGemm
// is their product. Both fuse multiplications and additions, the same ones in assembly and in Go.
// So their bits are the same everywhere as well.
//
// All functions are safe for concurrent use, as long as no goroutine writes what another one uses.
package kernel

//go:generate go run ./internal/gen
