package kernel

import "os"

// quantSet is a family of kernels for quantized products. All give the same bits.
type quantSet uint8

const (
	quantGo      quantSet = iota // words in Go
	quantAVX2                    // words, two multiplications at a time
	quantAVXVNNI                 // the instructions of VNNI with registers of AVX2
	quantAVX512                  // those with registers of AVX-512
)

// String returns the name of the set.
func (s quantSet) String() string { return [...]string{"go", "avx2", "avxvnni", "avx512vnni"}[s] }

// wanted is the name of the kernels that the environment asks for.
var wanted = os.Getenv("NNOPT_KERNELS")

// currentQuantSet is the best set that goes with the set for other products.
func currentQuantSet() quantSet {
	sets := supportedQuantSets()
	best := sets[len(sets)-1]
	switch {
	case bestSet == goSet || bestSet == blasSet || bestSet == neonSet:
		return quantGo
	case bestSet == avx2Set && wanted == "avx2":
		return min(best, quantAVX2)
	case bestSet == avx2Set:
		return min(best, quantAVXVNNI)
	}
	return best
}

// words reports whether the set holds numbers of the given precision in words, rather than bytes.
func (s quantSet) words(p Precision) bool { return p != Int8 || s < quantAVXVNNI }

// lanes is the number of columns of a panel.
func (s quantSet) lanes() int {
	if s == quantAVX512 {
		return 16
	}
	return 8
}

// tileRows is the height of the highest tile, and stripPanels the width of the widest. See
// internal/gen/quant.go.
func (s quantSet) tileRows() int {
	if s == quantAVX512 {
		return 8
	}
	return 6
}

func (s quantSet) stripPanels() int {
	if s == quantAVX512 {
		return 3
	}
	return 2
}
