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
	put(y *Array, s *selection, add bool)
	at(data any, i int) float64
	set(data any, i int, v float64) // nothing if the elements are of another type

	// Of blocks, see loop.
	reserve(blocks *lane, n int)
	allot(l, blocks *lane, at, n int)
	fill(l *lane, a *Array)
	point(l *lane, a *Array, lo, n int)
	gather(l *lane, o *operand, shape, steps []int, lo, n int)
	scatter(l *lane, o *operand, shape, steps []int, lo, n int)
	choose(dst, cond, a, b *lane, n int)
}

var kinds = [numDTypes]kind{
	Bool: &kindOf[bool]{field[bool](unsafe.Offsetof(lane{}.b)),
		func(v bool) float64 { return float64(keyOfBool(v)) }, func(v float64) bool { return v != 0 }, putBools},
	Int8:     kindOfNumber[int8](unsafe.Offsetof(lane{}.i8)),
	Int16:    kindOfNumber[int16](unsafe.Offsetof(lane{}.i16)),
	Int32:    kindOfNumber[int32](unsafe.Offsetof(lane{}.i32)),
	Int64:    kindOfNumber[int64](unsafe.Offsetof(lane{}.i)),
	Uint8:    kindOfNumber[uint8](unsafe.Offsetof(lane{}.u8)),
	Uint16:   kindOfNumber[uint16](unsafe.Offsetof(lane{}.u16)),
	Uint32:   kindOfNumber[uint32](unsafe.Offsetof(lane{}.u32)),
	Uint64:   kindOfNumber[uint64](unsafe.Offsetof(lane{}.u)),
	Float16:  kindOfHalf(unsafe.Offsetof(lane{}.h), f16OfDouble, F16Of),
	BFloat16: kindOfHalf(unsafe.Offsetof(lane{}.bh), func(v float64) BF16 { return BF16Of(float32(v)) }, BF16Of),
	Float32:  kindOfNumber[float32](unsafe.Offsetof(lane{}.f)),
	Float64:  kindOfNumber[float64](unsafe.Offsetof(lane{}.d)),
}

// A field is the offset of the field of a lane that holds the elements of a type. A function that returns the
// field would be called for each operand of each block.
type field[T Element] uintptr

func (f field[T]) block(l *lane) *[]T { return (*[]T)(unsafe.Add(unsafe.Pointer(l), uintptr(f))) }

// A kindOf knows the field of lanes that holds its elements, how to convert one, and Put.
type kindOf[T Element] struct {
	field[T]
	float func(v T) float64
	from  func(v float64) T
	puts  func(y *Array, s *selection, add bool)
}

func kindOfNumber[T number](at uintptr) *kindOf[T] {
	return &kindOf[T]{field[T](at), func(v T) float64 { return float64(v) }, ofDouble[T], putElements[T]}
}

func kindOfHalf[T interface {
	Element
	Float32() float32
}](at uintptr, of func(float64) T, round func(float32) T) *kindOf[T] {
	return &kindOf[T]{field[T](at), func(v T) float64 { return float64(v.Float32()) }, of, func(y *Array, s *selection, add bool) {
		putBy(y, s, add, func(x, y T) T { return round(x.Float32() + y.Float32()) })
	}}
}

func (*kindOf[T]) make(n int) any { return hugepages.Make[T](n) }

func (*kindOf[T]) spread(data any) {
	d := data.([]T)
	fill(d, d[0])
}

func (*kindOf[T]) sameMemory(a, b any) bool {
	d, ok := a.([]T)
	e, ok2 := b.([]T)
	return ok && ok2 && len(d) > 0 && len(e) > 0 && &d[0] == &e[0]
}

func (*kindOf[T]) copy(dst, src *Array, part, parts int) { copyElements[T](dst, src, part, parts) }

func (*kindOf[T]) take(out *Array, s *selection, first, next int) {
	takeElements[T](out, s, first, next)
}

func (*kindOf[T]) pick(out, a *Array, from []int64) int { return pickElements[T](out, a, from) }

func (k *kindOf[T]) put(y *Array, s *selection, add bool) { k.puts(y, s, add) }

func (k *kindOf[T]) at(data any, i int) float64 { return k.float(data.([]T)[i]) }

func (k *kindOf[T]) set(data any, i int, v float64) {
	if d, ok := data.([]T); ok {
		d[i] = k.from(v)
	}
}

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
func (k *kindOf[T]) reserve(blocks *lane, n int) {
	if b := k.block(blocks); len(*b) < n {
		*b = make([]T, n)
	}
}

// allot gives the lane n elements of the block.
func (k *kindOf[T]) allot(l, blocks *lane, at, n int) {
	*k.block(l) = (*k.block(blocks))[at:][:n]
}

// fill sets all elements of the lane to the first one of a.
func (k *kindOf[T]) fill(l *lane, a *Array) { fill(*k.block(l), dataOf[T](a)[a.offset]) }

// point makes the lane a view of n elements of a, from lo on.
func (k *kindOf[T]) point(l *lane, a *Array, lo, n int) {
	*k.block(l) = dataOf[T](a)[a.offset+lo:][:n]
}

func (k *kindOf[T]) gather(l *lane, o *operand, shape, steps []int, lo, n int) {
	gather((*k.block(l))[:n], dataOf[T](o.Array), o.offset, shape, steps, lo)
}

func (k *kindOf[T]) scatter(l *lane, o *operand, shape, steps []int, lo, n int) {
	scatter(dataOf[T](o.Array), (*k.block(l))[:n], o.offset, shape, steps, lo)
}

func (k *kindOf[T]) choose(dst, cond, a, b *lane, n int) {
	selectBlock((*k.block(dst))[:n], cond.b, *k.block(a), *k.block(b))
}
