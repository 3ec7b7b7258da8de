package exec

import (
	"math/bits"

	"github.com/nnopt/nnopt/kernel"
)

// Workspace is the memory of a Computer: one buffer for a program that has a plan, one a matrix for a looped one. Buffers
// that are given back are kept, by size, for whoever asks next: the most recently used first, because it is warm. A
// workspace may serve several computers, one after the other, of one goroutine; each gives its memory back in Reset. The
// zero value is ready for use.
//
// It never holds more buffers of a size than were in use at once. Sizes are rounded up by at most an eighth, so that
// programs for slightly different requests find each other's buffers.
type Workspace struct {
	free  [numClasses][][]float32
	held  int64 // elements in free buffers
	inUse int64 // elements handed out
	most  int64 // the most that held and inUse were together
}

// A buffer has 2^k * (8+i)/8 elements, k >= minShift, 0 <= i < 8.
const (
	minShift   = 6
	maxShift   = 40
	numClasses = (maxShift - minShift) * 8
)

// class returns the smallest size class with at least n elements, and its size.
func class(n int) (class, size int) {
	if n <= 1<<minShift {
		return 0, 1 << minShift
	}
	k := bits.Len(uint(n-1)) - 1 // 2^k <= n-1 < 2^(k+1)
	step := 1 << (k - 3)
	i := (n - 1 - 1<<k) / step // the class below n
	return (k-minShift)*8 + i + 1, 1<<k + (i+1)*step
}

// get returns n elements with undefined contents.
func (w *Workspace) get(n int) []float32 {
	k, size := class(n)
	w.inUse += int64(size)
	if list := w.free[k]; len(list) > 0 {
		b := list[len(list)-1]
		list[len(list)-1] = nil
		w.free[k] = list[:len(list)-1]
		w.held -= int64(size)
		return b[:n]
	}
	w.most = max(w.most, w.held+w.inUse)
	return kernel.NewFloats(size)[:n]
}

// put takes a buffer of get back.
func (w *Workspace) put(b []float32) {
	k, size := class(cap(b))
	w.inUse -= int64(size)
	w.held += int64(size)
	w.free[k] = append(w.free[k], b)
}

// Bytes is how much memory the workspace has, in use or not.
func (w *Workspace) Bytes() int64 { return 4 * (w.held + w.inUse) }

// MaxBytes is the most that it ever had.
func (w *Workspace) MaxBytes() int64 { return 4 * w.most }

// Trim gives all memory that is not in use back to the garbage collector.
func (w *Workspace) Trim() {
	w.free = [numClasses][][]float32{}
	w.held = 0
}
