package array

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"sync"

	"github.com/nnopt/nnopt/internal/kernel"
)

// ErrTooLarge is wrapped if an array needs more memory than a Workspace may hand out.
var ErrTooLarge = errors.New("array too large")

// DefaultMaxBytes is the bound of a Workspace without MaxBytes.
const DefaultMaxBytes = 8 << 30

// A Workspace hands out memory for results and temporary arrays. It reuses released memory, so that
// a repeated computation allocates nothing. The zero value is ready for use.
type Workspace struct {
	// MaxBytes bounds the memory that is handed out and not released; 0 means DefaultMaxBytes.
	MaxBytes int64
	// Threads compute together what is worth dividing. Nil is one thread.
	Threads *kernel.Threads
	// Next are the prepared weights that the next op with a product probably reads first: the last
	// product of an op fetches their beginning to the cache meanwhile. That changes no result.
	Next []*kernel.Weights
	// Met, if it is not nil and points at an empty list, gets the prepared weights of the next product.
	Met *[]*kernel.Weights
	// Again, if it is not nil, gets what computes the op for the same headers again, and gives the same bits, from an op
	// that has such a thing.
	Again *func()
	// Read, if it is not nil, is told of parts of a constant when what is prepared of them has been, see NewFactor.
	Read func(part *Array)
	// Context ends ops that run graphs of their own, which may have any number of rounds. Nil never ends.
	Context context.Context

	mu     *sync.Mutex // of the memory, if there are workspaces beside this one
	memory *Workspace  // that this one is beside; nil for its own memory

	outs  []*Array // see Place
	homes []Memory // of outs
	room  *Room

	headers   [3]Array // of the part of a thread
	rowParts  [2]Array // of a product that is computed some rows at a time, or of a reduction of few terms
	matrices  [3]Array // of a product of stacks of them
	sorted    Array    // what a reduction reads
	views     [3]Array // see View
	crew      *crew    // of the threads; nil until they need it
	loop      loop
	epilogue  *loop    // of an Epilogue, if there was one: products need the other loop meanwhile
	args      []*Array // of the epilogue
	zeros     []float32
	segments  []kernel.Segment
	integers  *integers // if there was a product of them
	sums      []float64
	blockSums []float64 // see fold
	conv      *lastConvolution
	planes    planes
	places    []int // of Take and Put
	selection selection
	attention *attentionMemory
	free      *[numDTypes][numClasses][]any // allocated by the first Release, as it is large and many workspaces are used once
	lent      []Array                       // see Lend
	inUse     int64
	most      int64
}

// A buffer has 2^k * (8+i)/8 elements, k >= minShift, 0 <= i < 8.
const (
	minShift   = 3
	maxShift   = 40
	numClasses = (maxShift-minShift)*8 + 1
)

// class returns the smallest size class that holds n elements, and its size.
func class(n int) (class, size int) {
	if n <= 1<<minShift {
		return 0, 1 << minShift
	}
	// Eight classes for each power of two: a buffer is at most an eighth larger than what is asked
	// for, and still fits later requests of about the same size.
	k := bits.Len(uint(n-1)) - 1 // 2^k <= n-1 < 2^(k+1)
	step := 1 << (k - 3)
	i := (n - 1 - 1<<k) / step // the class below n
	return (k-minShift)*8 + i + 1, 1<<k + (i+1)*step
}

// elements returns the number of elements of a shape, and reports whether it is valid and not too
// large.
func elements(shape []int) (int, bool) {
	if slices.Contains(shape, 0) {
		return 0, !slices.ContainsFunc(shape, func(d int) bool { return d < 0 })
	}
	n := 1
	for _, d := range shape {
		hi, lo := bits.Mul64(uint64(n), uint64(d))
		if d < 0 || hi != 0 || lo > 1<<(maxShift-1) {
			return 0, false
		}
		n = int(lo)
	}
	return n, true
}

// Beside returns a workspace for another goroutine at the same time, for arrays that either of them
// makes and the other may release. It has no threads.
func (ws *Workspace) Beside() *Workspace {
	if ws.mu == nil {
		ws.mu = new(sync.Mutex)
	}
	return &Workspace{MaxBytes: ws.MaxBytes, Context: ws.Context, mu: ws.mu, memory: ws}
}

// lock returns the workspace whose memory this one hands out. The caller unlocks it.
func (ws *Workspace) lock() *Workspace {
	if ws.mu != nil {
		ws.mu.Lock()
	}
	if ws.memory != nil {
		return ws.memory
	}
	return ws
}

func (ws *Workspace) unlock() {
	if ws.mu != nil {
		ws.mu.Unlock()
	}
}

// Place makes New give each of outs its home, if it has any, and something else that fits into room, unless that
// is nil, up to the next call of Place. An out that is larger than its home gets memory that the garbage
// collector has. None of it counts as in use, and Release leaves the homes.
func (ws *Workspace) Place(outs []*Array, homes []Memory, room *Room) {
	ws.outs, ws.homes, ws.room = outs, homes, room
	if room != nil {
		room.taken = false
	}
}

// New makes a an array with undefined elements. The error wraps ErrTooLarge.
func (ws *Workspace) New(a *Array, dtype DType, shape ...int) error {
	for i := range ws.homes {
		if ws.outs[i] == a && a.laidOut(ws.homes[i], dtype, shape) {
			return nil
		}
	}
	n, ok := elements(shape)
	if !ok {
		return fmt.Errorf("%w: shape %v", ErrTooLarge, slices.Clone(shape))
	}
	for i, home := range ws.homes {
		if ws.outs[i] != a || home.None() {
			continue
		}
		if home.whole != nil && home.whole.hasRoom(dtype, shape) {
			*a = *home.whole
			copy(a.shape[:], shape)
			return nil
		}
		if a.layOut(dtype, shape); !kinds[dtype].fits(home.data, n) {
			home.data = kinds[dtype].make(n)
		}
		a.data = home.data
		return nil
	}
	if r := ws.room; r != nil && !r.taken && r.fits(dtype, n) {
		a.layOut(dtype, shape)
		a.data, r.taken = r.memory.data, true
		return nil
	}
	k, size := class(n)
	bytes := int64(size) * int64(dtype.Size())
	ws = ws.lock()
	defer ws.unlock()
	limit := ws.MaxBytes
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	if ws.inUse+bytes > limit {
		return fmt.Errorf("%w: %v of shape %v takes %d bytes, %d of %d are in use", ErrTooLarge, dtype, slices.Clone(shape), bytes, ws.inUse, limit)
	}
	ws.inUse += bytes
	ws.most = max(ws.most, ws.inUse)
	a.layOut(dtype, shape)
	if ws.free != nil {
		if list := ws.free[dtype][k]; len(list) > 0 {
			a.data = list[len(list)-1]
			list[len(list)-1] = nil
			ws.free[dtype][k] = list[:len(list)-1]
			return nil
		}
	}
	a.data = kinds[dtype].make(size)
	return nil
}

// Release takes back the memory of an array from New. No view of it may be used any more.
func (ws *Workspace) Release(a *Array) {
	memory := reflect.ValueOf(a.data)
	if memory.Kind() != reflect.Slice {
		return // sparse, or no array
	}
	if i := slices.Index(ws.outs[:len(ws.homes)], a); i >= 0 && !ws.homes[i].None() {
		return
	}
	if r := ws.room; r != nil && r.taken && kinds[a.dtype].sameMemory(a.data, r.memory.data) {
		a.data, r.taken = nil, false
		return
	}
	k, size := class(memory.Len())
	ws = ws.lock()
	defer ws.unlock()
	ws.inUse -= int64(size) * int64(a.dtype.Size())
	if ws.free == nil {
		ws.free = new([numDTypes][numClasses][]any)
	}
	ws.free[a.dtype][k] = append(ws.free[a.dtype][k], a.data)
	a.data = nil
}

// Yield leaves the memory of an array from New to those who have views of it, and clears the array.
func (ws *Workspace) Yield(a *Array) {
	if memory := reflect.ValueOf(a.data); memory.Kind() == reflect.Slice {
		_, size := class(memory.Len())
		ws = ws.lock()
		defer ws.unlock()
		ws.inUse -= int64(size) * int64(a.dtype.Size())
	}
	*a = Array{}
}

// View returns a header for a view that an op needs until it ends, one of three: a header of its own would be on the
// heap. Nothing in this package uses them.
func (ws *Workspace) View(i int) *Array { return &ws.views[i] }

// Lend sets a to a copy of src, with its elements in row-major order. Reclaim releases it.
func (ws *Workspace) Lend(a, src *Array) error {
	ws.room = nil // it is that of the op before
	if err := ws.New(a, src.dtype, src.Shape()...); err != nil {
		return err
	}
	ws.Copy(a, src)
	ws = ws.lock()
	defer ws.unlock()
	ws.lent = append(ws.lent, *a)
	return nil
}

// Reclaim releases all that Lend has made. No view of it may be used any more.
func (ws *Workspace) Reclaim() {
	for i := range ws.lent {
		ws.Release(&ws.lent[i])
	}
	ws.lent = ws.lent[:0]
}

// Reset leaves all arrays that New has made to their users: none is released any more, and none
// counts.
func (ws *Workspace) Reset() { ws.inUse, ws.lent = 0, nil }

// Peak returns the largest number of bytes that were in use at once.
func (ws *Workspace) Peak() int64 { return ws.most }
