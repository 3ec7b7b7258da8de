package array

import "github.com/nnopt/nnopt/tensor/array/internal/interleave"

// interleave copies x to dst, which is contiguous, if x is images of few channels one after the
// other, seen with channels last. It reports false if not.
func (ws *Workspace) interleave(dst, x *Array) bool {
	var shape, steps [MaxDims]int
	k := x.joined(&shape, &steps)
	images, ok := interleave.Of(shape[:k], steps[:k])
	if !ok || x.dtype != Float32 {
		return false
	}
	j := interleaving{images, Slice[float32](dst), dataOf[float32](x)[x.offset:]}
	if parts := ws.partsOf(2*moved*4*x.Len(), images.Blocks, 1); parts > 1 {
		j.shared(ws, parts)
	} else {
		j.images.Run(j.to, j.from, 0, images.Blocks)
	}
	return true
}

// interleaving is what interleave does.
type interleaving struct {
	images   interleave.Images
	to, from []float32
}

// shared is run by several threads, for a copy that may be on the heap.
func (j interleaving) shared(ws *Workspace, parts int) {
	ws.inParts(parts, j.images.Blocks, 1, func(_ *Workspace, first, next int) { j.images.Run(j.to, j.from, first, next) })
}
