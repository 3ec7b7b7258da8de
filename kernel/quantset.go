package kernel

import "os"

// quantSet is a family of kernels for quantized products. All give the same bits.
type quantSet uint8

const (
	quantGo      quantSet = iota // words in Go
	quantNEON                    // words of arm64
	quantAVX2                    // words, two multiplications at a time
	quantDot                     // the dot products of arm64, of signed bytes
	quantAVXVNNI                 // the instructions of VNNI with registers of AVX2
	quantAVX512                  // those with registers of AVX-512
)

// String returns the name of the set.
func (s quantSet) String() string {
	return [...]string{"go", "neon", "avx2", "neondot", "avxvnni", "avx512vnni"}[s]
}

// wanted is the name of the kernels that the environment asks for.
var wanted = os.Getenv("NNOPT_KERNELS")

// currentQuantSet is the best set that goes with the set for other products.
func currentQuantSet() quantSet { return chooseQuantSet(supportedQuantSets(), bestSet, wanted) }

// chooseQuantSet returns the best of the supported sets, the best last, that goes with the set for
// other products and with the name of the kernels that are asked for.
func chooseQuantSet(supported []quantSet, set kernelSet, name string) quantSet {
	limit := supported[len(supported)-1]
	switch {
	case !set.assembly():
		limit = quantGo
	case set == neonSet && name == "neon":
		limit = quantNEON
	case set == avx2Set && name == "avx2":
		limit = quantAVX2
	case set == avx2Set:
		limit = quantAVXVNNI
	}
	// A processor that has the limit's successors need not have the limit: AMD's Zen 4 has VNNI with
	// registers of AVX-512, but not with those of AVX2. So the limit itself may only be compared with.
	best := supported[0]
	for _, s := range supported {
		if s <= limit {
			best = s
		}
	}
	return best
}

// words reports whether the set holds numbers of the given precision in words, rather than bytes.
func (s quantSet) words(p Precision) bool { return p != Int8 || s < quantDot }

// lanes is the number of columns of a panel.
func (s quantSet) lanes() int {
	switch {
	case s == quantAVX512:
		return 16
	case s.arm():
		return 4
	}
	return 8
}

// arm reports whether s is a set of arm64.
func (s quantSet) arm() bool { return s == quantNEON || s == quantDot }

// halves reports whether the kernel for numbers of the given precision takes one multiplication for two
// terms. Its sums begin with what a row and a column contribute: see internal/gen/quant.go.
func (s quantSet) halves(p Precision) bool { return s == quantAVX2 && p == Int8 }

// tileRows is the height of the highest tile, and stripPanels the width of the widest. See
// internal/gen/quant.go.
func (s quantSet) tileRows(p Precision) int {
	switch {
	case s == quantAVX512:
		return 8
	case s.halves(p):
		return 4
	}
	return 6
}

func (s quantSet) stripPanels() int {
	switch {
	case s == quantAVX512:
		return 3
	case s.arm():
		return 4
	}
	return 2
}
