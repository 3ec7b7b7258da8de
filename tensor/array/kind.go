package array

// A kind is how elements of one type are stored and moved.
type kind interface {
	make(n int) any  // n zeros
	spread(data any) // sets all elements to the first one
	sameMemory(a, b any) bool
	copy(dst, src *Array, n int)
	take(out *Array, s *selection)

	// Of blocks, see loop.
	reserve(blocks *lane, n int)
	allot(l, blocks *lane, at, n int)
	fill(l *lane, a *Array)
	point(l *lane, a *Array, lo, n int)
	gather(l *lane, o *operand, shape, steps []int, lo, n int)
	scatter(l *lane, o *operand, shape, steps []int, lo, n int)
}

var kinds = [numDTypes]kind{
	Bool: kindOf[bool]{},
	Int8: kindOf[int8]{}, Int16: kindOf[int16]{}, Int32: kindOf[int32]{}, Int64: kindOf[int64]{},
	Uint8: kindOf[uint8]{}, Uint16: kindOf[uint16]{}, Uint32: kindOf[uint32]{}, Uint64: kindOf[uint64]{},
	Float16: kindOf[F16]{}, BFloat16: kindOf[BF16]{}, Float32: kindOf[float32]{}, Float64: kindOf[float64]{},
}

type kindOf[T Element] struct{}

func (kindOf[T]) make(n int) any { return make([]T, n) }

func (kindOf[T]) spread(data any) {
	d := data.([]T)
	fill(d, d[0])
}

func (kindOf[T]) sameMemory(a, b any) bool {
	d, ok := a.([]T)
	e, ok2 := b.([]T)
	return ok && ok2 && len(d) > 0 && len(e) > 0 && &d[0] == &e[0]
}

func (kindOf[T]) copy(dst, src *Array, n int) { copyElements[T](dst, src, n) }

func (kindOf[T]) take(out *Array, s *selection) { takeElements[T](out, s) }

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

// block returns the field of the type.
func (kindOf[T]) block(l *lane) *[]T {
	var zero T
	var field any
	switch any(zero).(type) {
	case bool:
		field = &l.b
	case int8:
		field = &l.i8
	case int16:
		field = &l.i16
	case int32:
		field = &l.i32
	case int64:
		field = &l.i
	case uint8:
		field = &l.u8
	case uint16:
		field = &l.u16
	case uint32:
		field = &l.u32
	case uint64:
		field = &l.u
	case F16:
		field = &l.h
	case BF16:
		field = &l.bh
	case float32:
		field = &l.f
	case float64:
		field = &l.d
	}
	return field.(*[]T)
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
