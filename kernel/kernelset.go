package kernel

import (
	"os"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"
)

// kernelSet is a family of kernels that compute the same.
type kernelSet uint8

const (
	blasSet   kernelSet = iota // whatever blas32 computes with, and plain loops
	goSet                      // the twins of the assembly
	neonSet                    // chains in assembly, all else as in Go
	avx2Set                    // needs FMA, too
	avx512Set                  // needs AVX-512F only
)

var kernelSetNames = [...]string{blasSet: "blas", goSet: "go", neonSet: "neon", avx2Set: "avx2", avx512Set: "avx512"}

func (s kernelSet) String() string { return kernelSetNames[s] }

// bestSet is the best set that this processor can execute, or that which the environment asks for.
var bestSet = chooseSet(os.Getenv("NNOPT_KERNELS"))

// chooseSet returns the named set, or the best one if this processor can't execute it or there is none of that name.
func chooseSet(name string) kernelSet {
	sets := supportedSets()
	for _, s := range sets {
		if s.String() == name {
			return s
		}
	}
	return sets[len(sets)-1]
}

// currentSet is the set that products are computed with now: a BLAS that was set with blas32.Use comes first.
func currentSet() kernelSet {
	if !ownBLAS() {
		return blasSet
	}
	return bestSet
}

// ownBLAS reports whether blas32 computes with gonum's own implementation, or with this package.
func ownBLAS() bool {
	switch implementation().(type) {
	case gonum.Implementation, BLAS:
		return true
	}
	return false
}

// implementation is what blas32 computes with, unless that is gonum's and the environment asks for another order of sums.
func implementation() blas.Float32 {
	impl := blas32.Implementation()
	if _, plain := impl.(gonum.Implementation); plain && likeOpenBLAS {
		return OpenBLAS{}
	}
	return impl
}

// lanes is the number of elements of a vector.
func (s kernelSet) lanes() int {
	if s == avx512Set {
		return 16
	}
	return 8
}

// panelCols is the number of columns of a panel.
func (s kernelSet) panelCols() int {
	if s == avx512Set {
		return 64
	}
	return 16
}

// laneRows is the number of rows that a kernel of narrow products takes at most.
func (s kernelSet) laneRows() int {
	if s == avx512Set {
		return 6
	}
	return 3
}

// padded returns n, rounded up to whole vectors.
func (s kernelSet) padded(n int) int { return (n + s.lanes() - 1) &^ (s.lanes() - 1) }
