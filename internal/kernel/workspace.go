package kernel

import (
	"sync"
	"unsafe"
)

// workspace is scratch memory of a product. Workspaces come from a pool and keep their memory, so
// that products allocate nothing in the long run.
type workspace struct {
	buf  []float32
	used int

	weights Weights // of a factor that is not packed
	segs    [1]Segment
	parts   []part  // memory for the parts of a product
	next    []part  // and for those of the next one
	runs    []runs  // where patches are
	product product // here because it would escape to the heap

	quantized quantProduct
	blocks    blockProduct
	tall      tallFactors
	squares   matrixJob
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

func getWorkspace() *workspace { return workspaces.Get().(*workspace) }

// put gives the workspace back. Slices from floats become invalid.
func (w *workspace) put() {
	w.used = 0
	clear(w.parts)
	clear(w.next)
	clear(w.runs)
	w.weights, w.segs = Weights{}, [1]Segment{}
	// These are large, and most products use one of them.
	w.endProduct()
	if w.quantized.segs != nil {
		w.quantized = quantProduct{}
	}
	if w.blocks.w != nil {
		w.blocks = blockProduct{}
	}
	if w.tall.c.Data != nil {
		w.tall = tallFactors{}
	}
	workspaces.Put(w)
}

// begin returns the product of the workspace. The fields that are not set here are zero: to copy a product as a whole
// takes as long as to compute a small one.
func (w *workspace) begin(set kernelSet, segs []Segment, ep *Epilogue, mul float32, y *Matrix) *product {
	w.endProduct()
	p := &w.product
	p.set, p.segs, p.ep, p.mul, p.y = set, segs, *ep, mul, *y
	return p
}

// endProduct makes the product zero.
func (w *workspace) endProduct() {
	if w.product.segs != nil {
		w.product = product{}
	}
}

// cacheLine is the size of a cache line in elements.
const cacheLine = 16

// floats returns n elements with undefined contents that begin at a cache line.
func (w *workspace) floats(n int) []float32 {
	size := (n + cacheLine - 1) &^ (cacheLine - 1)
	if w.used+size > len(w.buf) {
		// Slices that were handed out before keep the old memory.
		w.buf = alignedFloats(w.used + size)
	}
	v := w.buf[w.used : w.used+n : w.used+n]
	w.used += size
	return v
}

// doubles is floats for float64s.
func (w *workspace) doubles(n int) []float64 {
	return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(w.floats(2*n)))), n)
}

// int32s is floats for integers.
func (w *workspace) int32s(n int) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(w.floats(n)))), n)
}

// alignedFloats returns n zeros that begin at a cache line.
func alignedFloats(n int) []float32 {
	v := NewFloats(n + cacheLine - 1)
	skip := 0
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(v))) % (4 * cacheLine); at != 0 {
		skip = int(4*cacheLine-at) / 4
	}
	return v[skip : skip+n : skip+n]
}
