// Package kernel holds the numerics that computations are made of: products, element-wise maps, reductions and moves of
// rows, on float32 matrices in row-major order.
//
// It is not a matrix library. A Matrix is gonum's blas32.General, a plain view: rows follow each other at a distance of
// Stride elements, which may exceed Cols; a matrix may have no rows. Functions write into a destination that the caller
// owns, allocate nothing, and treat the gap between Cols and Stride as somebody else's memory. Source and destination
// may be the same view where a function maps elements to elements; otherwise they must not overlap.
//
// NaN and infinities go through: no function skips a factor because the other one is zero. Shapes that do not fit are
// a fault of the caller and panic, as in BLAS, and so are matrices and vectors that have fewer elements than they should, and
// matrices to be written to whose rows overlap. Nothing is read or written beyond the length of a slice, whatever its capacity.
//
// # Products
//
// The product that everything is made for is y = x·Wᵀ with weights that stay the same (Weights), with what is done to
// the result before it is stored (Epilogue), or a sum of such products (MulSegments). MulNT, MulNN and MulTN are products of
// factors that are not prepared. On amd64 with AVX2 or AVX-512 and on arm64 they are computed in assembly, elsewhere by gonum. Every sum over
// the inner dimension is one chain of fused multiply-adds in order, or, where y has few columns (IsNarrow), sixteen chains. So an
// element has the same bits whatever is computed with it, wherever it stands, and with any instruction set; gonum's are others.
//
// Who sets another BLAS with blas32.Use has it used here, with its own roundings. BLAS makes the products of this package
// available to others in the same way.
//
// The environment variable NNOPT_KERNELS, read when the program starts, forces a set of kernels: avx512, avx2, neon, go (the same
// bits as the assembly, slowly, for looking for faults or for processors without it), blas, or openblas (OpenBLAS, for comparing with Kaldi).
//
// # Vectors
//
// Maps and reductions round every operation by itself, in assembly and in Go, so that they give the same bits on every
// processor.
//
// # Float64
//
// DExp and its siblings are maps of float64s, whose Go code is package elementary; DGemm is their product. They fuse multiplications and
// additions, the same ones in assembly and in Go: here, too, the bits are the same everywhere.
//
// The functions are safe for concurrent use as long as nobody writes what another one touches.
package kernel

//go:generate go run ./internal/gen
