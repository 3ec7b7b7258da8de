package array

import (
	"fmt"
	"unsafe"

	"github.com/nnopt/nnopt/internal/kernel"
)

// A Block is memory in which arrays are placed that are planned beforehand, see [Workspace.Place].
type Block struct{ floats []float32 }

// Alignment is the multiple of bytes at which the memory of arrays in a Block should begin: a cache line.
const Alignment = 64

// NewBlock returns a block.
func NewBlock(bytes int) Block {
	// A line more than asked for, so that the block can begin at one.
	floats := kernel.NewFloats((bytes + Alignment) / 4)
	past := int(uintptr(unsafe.Pointer(unsafe.SliceData(floats)))%Alignment) / 4
	return Block{floats[(Alignment/4-past)%(Alignment/4):][:bytes/4]}
}

// Bytes returns the size.
func (b Block) Bytes() int { return 4 * len(b.floats) }

// A Memory is memory of one array, in which its elements lie in row-major order, or as the first ones of a larger
// array along its dimensions.
type Memory struct {
	data  any
	whole *Array // the larger array, nil if there is none
}

// At returns memory for n elements, bytes from the beginning of the block. It may overlap other memory.
func (b Block) At(bytes int, dtype DType, n int) Memory {
	if bytes%Alignment != 0 || bytes+n*dtype.Size() > 4*len(b.floats) {
		panic(fmt.Sprintf("array: %d elements of %d bytes at %d of a block of %d bytes", n, dtype.Size(), bytes, 4*len(b.floats)))
	}
	return Memory{data: kinds[dtype].of(unsafe.Pointer(unsafe.SliceData(b.floats[bytes/4:])), n)}
}

// A Room is memory of a Block for an array that an op needs until it ends. Which it is shows when New is first
// asked for one that fits. The same one is made each time, so that nothing is allocated.
type Room struct {
	Block  Block
	At, N  int // bytes
	memory Memory
	taken  bool
}

// Taken reports whether an array is there that was not released.
func (r *Room) Taken() bool { return r.taken }

// fits reports whether the room has memory for n elements.
func (r *Room) fits(dtype DType, n int) bool {
	if r.memory.None() && n > 0 && n*dtype.Size() <= r.N {
		r.memory = r.Block.At(r.At, dtype, r.N/dtype.Size()) // calls of other sizes need more, or less
	}
	return kinds[dtype].fits(r.memory.data, n)
}

// NewMemory returns memory for n elements.
func NewMemory(dtype DType, n int) Memory { return Memory{data: kinds[dtype].make(n)} }

// MemoryWithin returns memory for what is, along each dimension, the beginning of an array. Who makes an array there
// must not ask for elements in row-major order.
func MemoryWithin(whole *Array) Memory { return Memory{whole: whole} }

// Beginning returns a view of the elements at the beginning of a along each dimension. It panics if there are not so many.
func (a *Array) Beginning(shape ...int) *Array {
	if !a.hasRoom(a.dtype, shape) {
		panic(fmt.Sprintf("array: the beginning of shape %v of %v", shape, a.Shape()))
	}
	b := *a
	copy(b.shape[:], shape)
	return &b
}

// Begins reports whether a is, along each dimension, the beginning of an array.
func (a *Array) Begins(whole *Array) bool {
	return a.SharesMemory(whole) && a.offset == whole.offset && a.strides == whole.strides && whole.hasRoom(a.dtype, a.Shape())
}

// hasRoom reports whether an array of this shape can be the beginning of a.
func (a *Array) hasRoom(dtype DType, shape []int) bool {
	if a.dtype != dtype || int(a.ndim) != len(shape) {
		return false
	}
	for d, n := range shape {
		if n > a.shape[d] {
			return false
		}
	}
	return true
}

// Unmade returns an array that has no memory, to find out about views of it.
func Unmade(dtype DType, shape ...int) *Array {
	a := new(Array)
	a.layOut(dtype, shape)
	return a
}

// MemoryOf returns the memory of an array. It reports false if elements do not lie there in row-major order.
func MemoryOf(a *Array) (Memory, bool) {
	if a.IsCSR() || !a.Contiguous() {
		return Memory{}, false
	}
	if n := a.Len(); n > 0 {
		return Memory{data: kinds[a.dtype].of(kinds[a.dtype].address(a.data, a.offset), n)}, true
	}
	return NewMemory(a.dtype, 0), true
}

// In reports whether a is all of the memory, in row-major order.
func (a *Array) In(m Memory) bool {
	return a.offset == 0 && a.Contiguous() && kinds[a.dtype].holds(m.data, a.Len()) && kinds[a.dtype].sameMemory(a.data, m.data)
}

// laidOut reports whether a is what New makes of its home: most often it is, from the call before.
func (a *Array) laidOut(home Memory, dtype DType, shape []int) bool {
	// New copies the interface, and with it the address of the slice; to compare slices takes longer.
	type face struct{ kind, value unsafe.Pointer }
	if home.data == nil || (*face)(unsafe.Pointer(&a.data)).value != (*face)(unsafe.Pointer(&home.data)).value {
		return false
	}
	if a.dtype != dtype || int(a.ndim) != len(shape) || a.offset != 0 {
		return false
	}
	step := 1
	for d := len(shape) - 1; d >= 0; d-- {
		if a.shape[d] != shape[d] || a.strides[d] != step {
			return false
		}
		step *= shape[d]
	}
	return true
}

// None reports whether m is the zero value.
func (m Memory) None() bool { return m.data == nil && m.whole == nil }

// Poison overwrites the memory with what is NaN for floats.
func (m Memory) Poison() {
	for _, k := range kinds {
		if b := k.bytes(m.data); b != nil {
			fill(b, 0xff)
		}
	}
}

// Overlaps reports whether the arrays have memory in common, elements that are left out by a view
// included.
func (a *Array) Overlaps(b *Array) bool {
	if a.data == nil || b.data == nil || a.IsCSR() || b.IsCSR() {
		return false
	}
	x, y := kinds[a.dtype].bytes(a.data), kinds[b.dtype].bytes(b.data)
	if len(x) == 0 || len(y) == 0 {
		return false
	}
	p, q := uintptr(unsafe.Pointer(unsafe.SliceData(x))), uintptr(unsafe.Pointer(unsafe.SliceData(y)))
	return p < q+uintptr(len(y)) && q < p+uintptr(len(x))
}

// reach returns the addresses of the first byte of the elements of an array that has some, and behind the last one.
func (a *Array) reach() (first, end uintptr) {
	low, high := a.offset, a.offset+1
	for d, n := range a.Shape() {
		if far := a.strides[d] * (n - 1); far < 0 {
			low += far
		} else {
			high += far
		}
	}
	base, size := uintptr(kinds[a.dtype].address(a.data, 0)), uintptr(a.dtype.Size())
	return base + uintptr(low)*size, base + uintptr(high)*size
}

// Repeats reports whether elements of the array may have memory in common, as those of a view that BroadcastTo made.
func (a *Array) Repeats() bool {
	var seen [MaxDims]bool
	reach := 0 // from the first to the last element over the dimensions with shorter steps
	for range a.Shape() {
		least := -1
		for d, n := range a.Shape() {
			if !seen[d] && n != 1 && (least < 0 || a.step(d) < a.step(least)) {
				least = d
			}
		}
		if least < 0 {
			break
		}
		// No two elements meet as long as each step is longer than all shorter ones reach together.
		if a.step(least) <= reach {
			return a.Len() > 0
		}
		seen[least] = true
		reach += a.step(least) * (a.shape[least] - 1)
	}
	return false
}

// step returns how far apart in memory elements are that follow each other in a dimension.
func (a *Array) step(d int) int { return max(a.strides[d], -a.strides[d]) }

// of returns n elements of memory that somebody owns.
func (*kindOf[T]) of(memory unsafe.Pointer, n int) any { return unsafe.Slice((*T)(memory), n) }

// address returns where an element is.
func (*kindOf[T]) address(data any, at int) unsafe.Pointer { return unsafe.Pointer(&data.([]T)[at]) }

// holds reports whether the memory is of n elements.
func (*kindOf[T]) holds(data any, n int) bool {
	d, ok := data.([]T)
	return ok && len(d) == n
}

// fits reports whether memory has room for n elements.
func (*kindOf[T]) fits(data any, n int) bool {
	d, ok := data.([]T)
	return ok && len(d) >= n
}

// bytes returns the memory of elements, or nil if they are of another type.
func (*kindOf[T]) bytes(data any) []byte {
	d, _ := data.([]T)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(d))), uintptr(len(d))*unsafe.Sizeof(*new(T)))
}
