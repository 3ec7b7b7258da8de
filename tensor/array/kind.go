package array

import (
	"unsafe"

	"github.com/nnopt/nnopt/internal/hugepages"
)

// A kind is how elements of one type are stored and moved.
type kind interface {
	make(n int) any  // n zeros
	spread(data any) // sets all elements to the first one
	sameMemory(a, b any) bool
	of(memory unsafe.Pointer, n int) any
	address(data any, at int) unsafe.Pointer
	bytes(data any) []byte
	holds(data any, n int) bool
	fits(data any, n int) bool
	copy(dst, src *Array, part, parts int) // a part of the elements; dst and src have one shape
	take(out *Array, s *selection, first, next int)
	pick(out, a *Array, from []int64) int

	// Of blocks, see loop.
	reserve(blocks *lane, n int)
	allot(l, blocks *lane, at, n int)
	fill(l *lane, a *Array)
	point(l *lane, a *Array, lo, n int)
	gather(l *lane, o *operand, shape, steps []int, lo, n int)
	scatter(l *lane, o *operand, shape, steps []int, lo, n int)
}

var kinds = [numDTypes]kind{
	Bool:     kindOf[bool]{func(l *lane) *[]bool { return &l.b }},
	Int8:     kindOf[int8]{func(l *lane) *[]int8 { return &l.i8 }},
	Int16:    kindOf[int16]{func(l *lane) *[]int16 { return &l.i16 }},
	Int32:    kindOf[int32]{func(l *lane) *[]int32 { return &l.i32 }},
	Int64:    kindOf[int64]{func(l *lane) *[]int64 { return &l.i }},
	Uint8:    kindOf[uint8]{func(l *lane) *[]uint8 { return &l.u8 }},
	Uint16:   kindOf[uint16]{func(l *lane) *[]uint16 { return &l.u16 }},
	Uint32:   kindOf[uint32]{func(l *lane) *[]uint32 { return &l.u32 }},
	Uint64:   kindOf[uint64]{func(l *lane) *[]uint64 { return &l.u }},
	Float16:  kindOf[F16]{func(l *lane) *[]F16 { return &l.h }},
	BFloat16: kindOf[BF16]{func(l *lane) *[]BF16 { return &l.bh }},
	Float32:  kindOf[float32]{func(l *lane) *[]float32 { return &l.f }},
	Float64:  kindOf[float64]{func(l *lane) *[]float64 { return &l.d }},
}

// A kindOf knows the field of lanes that holds its elements.
type kindOf[T Element] struct{ block func(l *lane) *[]T }

func (kindOf[T]) make(n int) any { return hugepages.Make[T](n) }

func (kindOf[T]) spread(data any) {
	d := data.([]T)
	fill(d, d[0])
}

func (kindOf[T]) sameMemory(a, b any) bool {
	d, ok := a.([]T)
	e, ok2 := b.([]T)
	return ok && ok2 && len(d) > 0 && len(e) > 0 && &d[0] == &e[0]
}

func (kindOf[T]) copy(dst, src *Array, part, parts int) { copyElements[T](dst, src, part, parts) }

func (kindOf[T]) take(out *Array, s *selection, first, next int) {
	takeElements[T](out, s, first, next)
}

func (kindOf[T]) pick(out, a *Array, from []int64) int { return pickElements[T](out, a, from) }

// A lane is a block of elements of one type, in the field of that type.
type lane struct {
	b   []bool
	i8  []int8
	i16 []int16
	i32 []int32
	i   []int64
	u8  []uint8
	u16 []uint16
	u32 []uint32
	u   []uint64
	h   []F16
	bh  []BF16
	f   []float32
	d   []float64
}

// reserve makes the block at least n elements long.
func (k kindOf[T]) reserve(blocks *lane, n int) {
	if b := k.block(blocks); len(*b) < n {
		*b = make([]T, n)
	}
}

// allot gives the lane n elements of the block.
func (k kindOf[T]) allot(l, blocks *lane, at, n int) {
	*k.block(l) = (*k.block(blocks))[at:][:n]
}

// fill sets all elements of the lane to the first one of a.
func (k kindOf[T]) fill(l *lane, a *Array) { fill(*k.block(l), dataOf[T](a)[a.offset]) }

// point makes the lane a view of n elements of a, from lo on.
func (k kindOf[T]) point(l *lane, a *Array, lo, n int) {
	*k.block(l) = dataOf[T](a)[a.offset+lo:][:n]
}

func (k kindOf[T]) gather(l *lane, o *operand, shape, steps []int, lo, n int) {
	gather((*k.block(l))[:n], dataOf[T](o.Array), o.offset, shape, steps, lo)
}

func (k kindOf[T]) scatter(l *lane, o *operand, shape, steps []int, lo, n int) {
	scatter(dataOf[T](o.Array), (*k.block(l))[:n], o.offset, shape, steps, lo)
}
