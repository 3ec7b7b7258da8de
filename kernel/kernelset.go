package kernel

import (
	"os"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"
)

// kernelSet is a family of kernels.
type kernelSet uint8

const (
	blasSet   kernelSet = iota // the implementation of blas32, and plain loops
	goSet                      // the Go twins of the assembly
	neonSet                    // of arm64
	avx2Set                    // needs FMA, too
	avx512Set                  // needs AVX-512F only
)

var kernelSetNames = [...]string{blasSet: "blas", goSet: "go", neonSet: "neon", avx2Set: "avx2", avx512Set: "avx512"}

// String returns the name of the set.
func (s kernelSet) String() string { return kernelSetNames[s] }

// bestSet is the best set that this processor can execute, or the one that the environment asks
// for.
var bestSet = chooseSet(os.Getenv("NNOPT_KERNELS"))

// chooseSet returns the named set, or the best one if there is no such set for this processor.
func chooseSet(name string) kernelSet {
	switch name { // sets that differ in quantized products
	case quantAVXVNNI.String():
		name = avx2Set.String()
	case quantDot.String():
		name = neonSet.String()
	}
	sets := supportedSets()
	if i := slices.IndexFunc(sets, func(s kernelSet) bool { return s.String() == name }); i >= 0 {
		return sets[i]
	}
	return sets[len(sets)-1]
}

// currentSet is the set for products. A BLAS that was set with blas32.Use comes first.
func currentSet() kernelSet {
	if !ownBLAS() {
		return blasSet
	}
	return bestSet
}

// ownBLAS reports whether blas32 uses gonum's own implementation, or this package.
func ownBLAS() bool {
	switch implementation().(type) {
	case gonum.Implementation, BLAS:
		return true
	}
	return false
}

// implementation returns the implementation of blas32, or OpenBLAS if that is gonum's and the
// environment asks for OpenBLAS.
func implementation() blas.Float32 {
	impl := blas32.Implementation()
	if _, plain := impl.(gonum.Implementation); plain && likeOpenBLAS {
		return openBLAS{}
	}
	return impl
}

// assembly reports whether the set is written in assembly.
func (s kernelSet) assembly() bool { return s >= neonSet }

// byWidth returns wide for AVX-512, and narrow for other sets.
func (s kernelSet) byWidth(wide, narrow int) int {
	if s == avx512Set {
		return wide
	}
	return narrow
}

// lanes is the number of elements of a vector.
func (s kernelSet) lanes() int {
	if s == neonSet {
		return 4
	}
	return s.byWidth(16, 8)
}

// panelCols is the number of columns of a panel.
func (s kernelSet) panelCols() int { return s.byWidth(64, 16) }

// laneRows is the largest number of rows of a kernel of narrow products.
func (s kernelSet) laneRows() int { return s.byWidth(6, 3) }

// padded returns n rounded up to whole vectors.
func (s kernelSet) padded(n int) int { return (n + s.lanes() - 1) &^ (s.lanes() - 1) }
