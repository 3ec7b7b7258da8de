package array

import "math"

// Sort sets out to the elements of in, sorted along a dimension: the smallest first, NaN last, and
// equal ones, such as zeros of both signs, in their order. Out is contiguous and has the type and
// shape of in.
func (ws *Workspace) Sort(out, in *Array, axis int) { sorters[in.dtype].values(ws, out, in, axis) }

// ArgSort sets out to the positions of the elements of in along a dimension, in the order of Sort.
// Out holds integers, is contiguous and has the shape of in.
func (ws *Workspace) ArgSort(out, in *Array, axis int) { sorters[in.dtype].places(ws, out, in, axis) }

// A sorter sorts elements of one type.
type sorter struct {
	values, places func(ws *Workspace, out, in *Array, axis int)
}

var sorters = [numDTypes]sorter{
	Bool: sorterOf(keyOfBool),
	Int8: sorterOf(keyOfInt[int8]), Int16: sorterOf(keyOfInt[int16]), Int32: sorterOf(keyOfInt[int32]), Int64: sorterOf(keyOfInt[int64]),
	Uint8: sorterOf(keyOfUint[uint8]), Uint16: sorterOf(keyOfUint[uint16]), Uint32: sorterOf(keyOfUint[uint32]), Uint64: sorterOf(keyOfUint[uint64]),
	Float16: sorterOf(func(v F16) uint64 { return keyOfFloat(v.Float32()) }), BFloat16: sorterOf(func(v BF16) uint64 { return keyOfFloat(v.Float32()) }),
	Float32: sorterOf(keyOfFloat[float32]), Float64: sorterOf(keyOfFloat[float64]),
}

func sorterOf[T Element](key func(T) uint64) sorter {
	return sorter{
		func(ws *Workspace, out, in *Array, axis int) { sortLines(ws, in, out, axis, key, pickValues[T]) },
		func(ws *Workspace, out, in *Array, axis int) { sortLines(ws, in, out, axis, key, pickPlaces[T]) },
	}
}

// A keyed is the key of an element, by which it is sorted, and its place.
type keyed struct {
	key uint64
	at  int64
}

func keyOfBool(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

func keyOfInt[T signed](v T) uint64 { return uint64(int64(v)) ^ 1<<63 }

func keyOfUint[T unsigned](v T) uint64 { return uint64(v) }

// keyOfFloat returns keys in the order of the numbers. Zeros are equal, and NaN is last.
func keyOfFloat[T float](v T) uint64 {
	if v != v {
		return math.MaxUint64
	}
	b := math.Float64bits(float64(v) + 0) // -0 becomes 0
	// The bits of floats are in the order of absolute values, which is the wrong one for negative numbers.
	// These are turned around, and the others go above them.
	if b>>63 != 0 {
		return ^b
	}
	return b ^ 1<<63
}

func pickValues[T Element](dst, line []T, order []keyed) {
	for i, k := range order {
		dst[i] = line[k.at]
	}
}

func pickPlaces[T Element](dst []int64, _ []T, order []keyed) {
	for i, k := range order {
		dst[i] = k.at
	}
}

// sortLines sorts each line of in along a dimension by the keys of its elements. Pick makes the
// line of out.
func sortLines[T, R Element](ws *Workspace, in, out *Array, axis int, key func(T) uint64, pick func(dst []R, line []T, order []keyed)) {
	if in.Len() == 0 {
		return
	}
	order := make([]int, 0, MaxDims)
	for d := range int(in.ndim) {
		if d != axis {
			order = append(order, d)
		}
	}
	order = append(order, axis)
	src, dst := in.Transpose(order...), out.Transpose(order...)
	ws.pieces(in.Len()*sorted, in.Len()/in.shape[axis], 1, func(_ *Workspace, first, next int) {
		sortSome(src, dst, first, next, key, pick)
	})
}

// sorted is what an element takes to be sorted, in picoseconds.
const sorted = 20_000

// sortSome sorts lines first to next along the last dimension.
func sortSome[T, R Element](src, dst *Array, first, next int, key func(T) uint64, pick func(dst []R, line []T, order []keyed)) {
	d := int(src.ndim) - 1
	n := src.shape[d]
	data, results := dataOf[T](src), dataOf[R](dst)
	line, result, keys, spare := make([]T, n), make([]R, n), make([]keyed, n), make([]keyed, n)
	from := walk(src.offset, src.shape[:d], src.strides[:d], first)
	to := walk(dst.offset, dst.shape[:d], dst.strides[:d], first)
	for range next - first {
		for i := range line {
			v := data[from.at+i*src.strides[d]]
			line[i], keys[i] = v, keyed{key(v), int64(i)}
		}
		pick(result, line, sortKeys(keys, spare))
		for i, v := range result {
			results[to.at+i*dst.strides[d]] = v
		}
		from.advance(1)
		to.advance(1)
	}
}

// sortKeys sorts x stably, in x or in spare of the same length.
func sortKeys(x, spare []keyed) []keyed {
	if len(x) <= 48 { // where counting takes longer
		for i, v := range x {
			k := i
			for ; k > 0 && v.key < x[k-1].key; k-- {
				x[k] = x[k-1]
			}
			x[k] = v
		}
		return x
	}
	// A radix sort, from the last byte to the first. Each round is stable, so it keeps the order of
	// the bytes before. All counts take a single pass over the keys.
	var counts [8][256]int // of each byte of the keys
	for _, v := range x {
		for b := range counts {
			counts[b][byte(v.key>>(8*b))]++
		}
	}
	for b := range counts {
		count := &counts[b]
		if count[byte(x[0].key>>(8*b))] == len(x) { // all have the same byte
			continue
		}
		// Counts become places: where the next key with that byte goes.
		at := 0
		for c, n := range count {
			count[c] = at
			at += n
		}
		for _, v := range x {
			c := byte(v.key >> (8 * b))
			spare[count[c]] = v
			count[c]++
		}
		x, spare = spare, x
	}
	return x
}
