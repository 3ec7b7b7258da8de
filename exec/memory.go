package exec

import (
	"math/bits"

	"github.com/nnopt/nnopt/internal/kernel"
)

// Workspace is the memory of a Computer: one buffer for a program with a plan, one per matrix for a
// looped one. Buffers that are given back are kept, by size, and used again, the most recently used
// first, because it is warm. A workspace may serve several computers of one goroutine, one after
// the other; each gives its memory back in Reset. The zero value is ready for use.
//
// It never holds more buffers of a size than were in use at once. Sizes are rounded up by at most
// an eighth, so that programs for slightly different requests share buffers. Of buffers for plans it
// holds the largest: they are as large as all of their program's values together, and programs for
// requests of all lengths would have as many.
type Workspace struct {
	free  map[int][][]float32 // by size
	plan  []float32           // the free buffer for plans
	held  int64               // elements in free buffers
	inUse int64               // elements handed out
	peak  int64               // the largest sum of held and inUse

	threads *kernel.Threads // of the last computer that had several
}

// threadsOf returns the given number of threads. Computers that share a workspace share them, so
// that the next one finds them awake.
func (w *Workspace) threadsOf(n int) *kernel.Threads {
	if w.threads.Size() != n {
		w.threads = kernel.NewThreads(n)
	}
	return w.threads
}

// bufferSize rounds n up to a size of buffers: 2^k * (8+i)/8 elements, 0 <= i < 8, at least 64.
func bufferSize(n int) int {
	n = max(n, 64)
	step := 1 << (bits.Len(uint(n-1)) - 4)
	return (n + step - 1) &^ (step - 1)
}

// get returns n elements with undefined contents.
func (w *Workspace) get(n int) []float32 {
	size := bufferSize(n)
	w.inUse += int64(size)
	if list := w.free[size]; len(list) > 0 {
		b := list[len(list)-1]
		list[len(list)-1] = nil
		w.free[size] = list[:len(list)-1]
		w.held -= int64(size)
		return b[:n]
	}
	w.peak = max(w.peak, w.held+w.inUse)
	return kernel.NewFloats(size)[:n]
}

// getPlan returns n elements with undefined contents for a plan.
func (w *Workspace) getPlan(n int) []float32 {
	b := w.plan
	w.held -= int64(cap(b))
	// The buffer counts as in use, or, if it is too small, is dropped before the larger one is
	// made, so that both never exist at once.
	w.plan = nil
	if cap(b) < n {
		size := bufferSize(n)
		w.peak = max(w.peak, w.held+w.inUse+int64(size))
		b = kernel.NewFloats(size)
	}
	w.inUse += int64(cap(b))
	return b[:n]
}

// putPlan takes back a buffer that came from getPlan.
func (w *Workspace) putPlan(b []float32) {
	w.inUse -= int64(cap(b))
	// Keep the largest: it also serves all smaller programs.
	if cap(b) > cap(w.plan) {
		w.held += int64(cap(b)) - int64(cap(w.plan))
		w.plan = b
	}
}

// put takes back a buffer that came from get.
func (w *Workspace) put(b []float32) {
	size := bufferSize(cap(b))
	w.inUse -= int64(size)
	w.held += int64(size)
	if w.free == nil {
		w.free = make(map[int][][]float32)
	}
	w.free[size] = append(w.free[size], b)
}

// Bytes returns the size of the workspace, memory in use included.
func (w *Workspace) Bytes() int64 { return 4 * (w.held + w.inUse) }

// MaxBytes returns the largest size so far.
func (w *Workspace) MaxBytes() int64 { return 4 * w.peak }

// Trim leaves all memory that is not in use to the garbage collector.
func (w *Workspace) Trim() { w.free, w.plan, w.held = nil, nil, 0 }
