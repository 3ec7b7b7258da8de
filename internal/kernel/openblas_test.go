package kernel

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/nnopt/nnopt/internal/kernel/kerneltest"
)

// openBLASResults are products by OpenBLAS 0.3.21 on a processor with AVX-512: C += A·B for m, n
// and k, with plain or transposed factors, and the hash of the bits of C.
var openBLASResults = []struct {
	tA, tB  blas.Transpose
	m, n, k int
	hash    uint64
}{
	{blas.NoTrans, blas.Trans, 1, 1, 1, 0x4c8fc5e182b6ad83},
	{blas.NoTrans, blas.Trans, 7, 30, 16, 0xbdacabb58b10845},
	{blas.NoTrans, blas.Trans, 4, 12, 31, 0xd940208f9b186631},
	{blas.NoTrans, blas.Trans, 7, 48, 48, 0xe1501eddedf52811},
	{blas.NoTrans, blas.Trans, 7, 12, 48, 0x6a0468b5b4e93a58},
	{blas.NoTrans, blas.Trans, 31, 38, 64, 0x1ec06a75fbe1993e},
	{blas.NoTrans, blas.Trans, 5, 7, 54, 0x2f0f7de5efacc47c},
	{blas.NoTrans, blas.Trans, 1, 1200, 32, 0x3a5de9d0879bf67b},
	{blas.NoTrans, blas.Trans, 25, 48, 33, 0x9e4f0eeb202aca7d},
	{blas.NoTrans, blas.Trans, 25, 49, 33, 0xd410420477862c6a},
	{blas.NoTrans, blas.Trans, 3, 2, 900, 0xb15f89c17bedd53f},
	{blas.NoTrans, blas.Trans, 40, 30, 900, 0x92e9a7384086cba3},
	{blas.NoTrans, blas.Trans, 40, 40, 400, 0x8fa38bf141a1e8ba},
	{blas.NoTrans, blas.Trans, 70, 33, 96, 0xccb6b21d38a30159},
	{blas.NoTrans, blas.Trans, 9, 200, 641, 0x650f0aa5a4ae47da},
	{blas.NoTrans, blas.Trans, 60, 60, 384, 0xcd3b0085f4cc44a1},
	{blas.NoTrans, blas.Trans, 12, 150, 1000, 0xc8e8bff6022482c8},
	{blas.NoTrans, blas.NoTrans, 7, 30, 16, 0x3e06b5df8c8ff13e},
	{blas.NoTrans, blas.NoTrans, 16, 24, 31, 0x6a569bdcc972f587},
	{blas.NoTrans, blas.NoTrans, 16, 24, 32, 0x17b13d886fccffe2},
	{blas.NoTrans, blas.NoTrans, 61, 1, 124, 0xe848b991aa01c7b6},
	{blas.NoTrans, blas.NoTrans, 5, 103, 190, 0x4558e8426f8451df},
	{blas.NoTrans, blas.NoTrans, 10, 25, 40, 0x577284ba12a8cb09},
	{blas.NoTrans, blas.NoTrans, 40, 40, 400, 0x2986764f86b208},
	{blas.NoTrans, blas.NoTrans, 100, 56, 100, 0xe8d0b0eec12d6df6},
	{blas.NoTrans, blas.NoTrans, 64, 72, 300, 0xc4cfe9226065898f},
	{blas.NoTrans, blas.NoTrans, 60, 64, 384, 0xf448ce876339c8d3},
	{blas.Trans, blas.NoTrans, 7, 30, 16, 0xaf97d24b84adefe5},
	{blas.Trans, blas.NoTrans, 48, 24, 57, 0x9d9b1aa6f2e19d0a},
	{blas.Trans, blas.NoTrans, 40, 40, 400, 0x444cbb8509aa2cd5},
	{blas.Trans, blas.NoTrans, 60, 64, 384, 0x9caccec41a7868a8},
	{blas.Trans, blas.NoTrans, 9, 208, 641, 0x30cf6406cd38f9fb},
	{blas.Trans, blas.Trans, 7, 30, 16, 0x3d3e032796b95037},
	{blas.Trans, blas.Trans, 24, 40, 57, 0x9f3a9d5dc009679b},
	{blas.Trans, blas.Trans, 40, 40, 400, 0x42ca0621f96daebd},
	{blas.Trans, blas.Trans, 60, 64, 384, 0x376dd60ff2f74e90},
}

// randomProduct returns the factors of a product and its destination, which are the same on every
// processor.
func randomProduct(m, n, k int) (a, b, c []float32) {
	r := rand.New(rand.NewPCG(uint64(m)<<32|uint64(n), uint64(k)))
	fill := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	return fill(m * k), fill(n * k), fill(m * n)
}

func hashBits(v []float32) uint64 {
	h := fnv.New64a()
	for _, x := range v {
		h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
	}
	return h.Sum64()
}

// TestOpenBLAS: the bits are those of the library.
func TestOpenBLAS(t *testing.T) {
	for _, p := range openBLASResults {
		a, b, c := randomProduct(p.m, p.n, p.k)
		lda, ldb := p.k, p.n
		if p.tA == blas.Trans {
			lda = p.m
		}
		if p.tB == blas.Trans {
			ldb = p.k
		}
		openBLAS{}.Sgemm(p.tA, p.tB, p.m, p.n, p.k, 1, a, lda, b, ldb, 1, c, p.n)
		if got := hashBits(c); got != p.hash {
			t.Errorf("%c%c, %d×%d, k=%d: hash %#x, want %#x", p.tA, p.tB, p.m, p.n, p.k, got, p.hash)
		}
	}
}

// TestColSumsLikeOpenBLAS: sums of columns have the bits of OpenBLAS's product of the transpose
// with a vector of ones.
func TestColSumsLikeOpenBLAS(t *testing.T) {
	for _, c := range []struct {
		rows, cols int
		hash       uint64
	}{
		{65, 16, 0x7789dc6bbfbe0f8d},
		{66, 20, 0x5768cbe5487b227d},
		{67, 24, 0x3b0034a3b607bf7c},
		{68, 40, 0xff1faebb786be34b},
		{81, 12, 0xbe1f72434e15ac38},
		{79, 4, 0x5b33825aaa17cdca},
		{65, 19, 0xff9aa90a844f0f8},
		{300, 33, 0x77a02e1b1ad7bff4},
		{128, 48, 0x68ad227efa87ee08},
	} {
		m, _, _ := randomProduct(c.rows, 1, c.cols)
		_, _, sum := randomProduct(1, c.cols, 1)
		AddColSums(sum, 1/float32(c.rows), Matrix{Rows: c.rows, Cols: c.cols, Stride: c.cols, Data: m})
		if got := hashBits(sum); got != c.hash {
			t.Errorf("%d×%d: hash %#x, want %#x", c.rows, c.cols, got, c.hash)
		}
	}
}

// TestOpenBLASFactors: products are gonum's, up to rounding, for all kinds of factors.
func TestOpenBLASFactors(t *testing.T) {
	const m, n, k = 7, 9, 40
	for _, tA := range []blas.Transpose{blas.NoTrans, blas.Trans} {
		for _, tB := range []blas.Transpose{blas.NoTrans, blas.Trans} {
			for _, f := range []struct{ alpha, beta float32 }{{1, 0}, {0, 2}, {-0.5, 1}, {2, -3}} {
				a, b, c := randomProduct(m, n, k)
				want := append([]float32(nil), c...)
				lda, ldb := k, n
				if tA == blas.Trans {
					lda = m
				}
				if tB == blas.Trans {
					ldb = k
				}
				if f.beta == 0 {
					c[0] = float32(math.NaN()) // not read
				}
				openBLAS{}.Sgemm(tA, tB, m, n, k, f.alpha, a, lda, b, ldb, f.beta, c, n)
				gonum.Implementation{}.Sgemm(tA, tB, m, n, k, f.alpha, a, lda, b, ldb, f.beta, want, n)
				for i, w := range want {
					if d := math.Abs(float64(c[i] - w)); !(d <= 1e-4) {
						t.Fatalf("%c%c %+v: element %d is %v, want %v", tA, tB, f, i, c[i], w)
					}
				}
			}
		}
	}
	mustPanic(t, "a stride that is too short", func() {
		openBLAS{}.Sgemm(blas.NoTrans, blas.Trans, 2, 2, 2, 1, make([]float32, 4), 1, make([]float32, 4), 2, 0, make([]float32, 4), 2)
	})
}

// TestLikeOpenBLAS: the environment can ask for OpenBLAS. Another BLAS in use takes precedence.
func TestLikeOpenBLAS(t *testing.T) {
	if !likeOpenBLAS {
		kerneltest.Again(t, "NNOPT_KERNELS=openblas", "TestLikeOpenBLAS")
		return
	}
	const m, n, k = 3, 5, 64
	a, b, want := randomProduct(m, n, k)
	clear(want)
	x, w := Matrix{Rows: m, Cols: k, Stride: k, Data: a}, Matrix{Rows: n, Cols: k, Stride: k, Data: b}
	y := New(m, n)
	NewWeights(w).Mul(x, Epilogue{}, y)
	openBLAS{}.Sgemm(blas.NoTrans, blas.Trans, m, n, k, 1, a, k, b, k, 0, want, n)
	for i, v := range want {
		if y.Data[i] != v {
			t.Errorf("element %d is %v, want %v", i, y.Data[i], v)
		}
	}
	defer blas32.Use(blas32.Implementation())
	calls := 0
	blas32.Use(counted{calls: &calls})
	if NewWeights(w).Mul(x, Epilogue{}, y); calls == 0 {
		t.Error("the BLAS in use did not compute the product")
	}
}
