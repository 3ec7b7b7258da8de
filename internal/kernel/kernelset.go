package kernel

import (
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/cpu"
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
	avx2Set                    // AVX2, FMA and F16C
	avx512Set                  // AVX-512F
)

var kernelSetNames = [...]string{blasSet: "blas", goSet: "go", neonSet: "neon", avx2Set: "avx2", avx512Set: "avx512"}

// String returns the name of the set.
func (s kernelSet) String() string { return kernelSetNames[s] }

// errNoAssembly is the panic of assembly that was written for other processors.
const errNoAssembly = "kernel: no assembly for this processor"

// supportedSets returns the sets that this processor can execute, the best last.
func supportedSets() []kernelSet {
	x := &cpu.X86
	switch {
	case runtime.GOARCH == "arm64":
		return []kernelSet{blasSet, goSet, neonSet}
	case runtime.GOARCH == "wasm": // a page gives the bits that the program gives
		return []kernelSet{blasSet, goSet}
	case runtime.GOARCH != "amd64" || !x.HasAVX2 || !x.HasFMA || !convertsHalves():
		return []kernelSet{goSet, blasSet}
	case !x.HasAVX512F:
		return []kernelSet{blasSet, goSet, avx2Set}
	}
	return []kernelSet{blasSet, goSet, avx2Set, avx512Set}
}

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

// fewColumns is the largest number of columns for which half vectors beat the whole ones of AVX-512: those of up to
// half a vector otherwise multiply padding as much as themselves. Zen 4 has halves only, and takes two
// steps for a whole one.
var fewColumns = func() int {
	if halvesVectors() {
		return 24
	}
	return 8
}()

// setFor is the set for weights of n columns, which are tall or not. Others than tall ones may be narrow.
func setFor(n int, tall bool) kernelSet {
	set := currentSet()
	if set == avx512Set && tall && n <= fewColumns {
		return avx2Set
	}
	return set
}

// current is the set that p would be packed for now.
func (p *Weights) current() kernelSet {
	n, _ := p.shape()
	return setFor(n, p.tall)
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

// tile runs a kernel, which moves t from tile to tile. It calls directly, so that t can stay on the stack.
func (s kernelSet) tile(t *tile) {
	switch {
	case s == avx512Set:
		tileAVX512(t)
	case s == avx2Set:
		tileAVX2(t)
	default:
		for s.oneTile(t); t.tiles > 1; t.tiles-- {
			t.advance()
			s.oneTile(t)
		}
	}
}

// oneTile runs a kernel that leaves the next tile to others.
func (s kernelSet) oneTile(t *tile) {
	switch {
	case s != neonSet:
		s.tileGo(t)
	case t.tail == s.lanes():
		tileNEON(t)
	default:
		s.partialTile(t)
	}
}

// partialTile runs a kernel whose last vector is partial, which NEON can't load or store. Such a
// tile has one panel. Its sums are whole vectors of scratch memory.
func (s kernelSet) partialTile(t *tile) {
	var sums [maxTileRows * 16]float32
	cols := t.vecs * s.lanes()
	stored := cols - s.lanes() + t.tail
	if t.p != nil {
		for i := range t.rows {
			for j := range stored {
				sums[i*cols+j] = t.begun(uintptr(i), uintptr(j)*4)
			}
		}
	}
	whole := *t
	whole.flags = 0
	whole.p, whole.pRow = &sums[0], uintptr(cols)*4
	whole.y, whole.yRow = whole.p, whole.pRow
	tileNEON(&whole)
	for i := range t.rows {
		for j := range stored {
			*elem(t.y, uintptr(i)*t.yRow+uintptr(j)*4) = t.finish(sums[i*cols+j], uintptr(i), uintptr(j)*4)
		}
	}
}

// dotLanes runs a kernel of narrow products, for at most laneRows rows.
func (s kernelSet) dotLanes(t *laneTile) {
	switch s {
	case avx512Set:
		dotLanesAVX512(t)
	case avx2Set:
		dotLanesAVX2(t)
	case neonSet:
		dotLanesNEON(t)
	default:
		dotLanesGo(t)
	}
}

// dTile adds alpha·a·b to a whole tile of c. a and b are packed.
func (s kernelSet) dTile(alpha float64, a, b []float64, depth int, c []float64, stride int) {
	s.checkTile(a, b, depth, c, stride)
	switch s {
	case avx512Set:
		dTileAVX512(&a[0], &b[0], depth, &c[0], uintptr(8*stride), alpha)
	case avx2Set:
		dTileAVX2(&a[0], &b[0], depth, &c[0], uintptr(8*stride), alpha)
	case neonSet:
		dTileNEON(&a[0], &b[0], depth, &c[0], uintptr(8*stride), alpha)
	default:
		s.dTileGo(alpha, a, b, depth, c, stride)
	}
}
