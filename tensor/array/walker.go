package array

import (
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/tensor/array/internal/interleave"
)

// A walker visits the elements of a view in row-major order, in runs along the last dimension.
type walker struct {
	shape, steps []int
	index        [MaxDims]int
	at           int // offset of the element at index
}

// walk returns a walker on element lo of the view whose first element has offset at. It is a value: what a
// method stores behind its receiver is on the heap.
func walk(at int, shape, steps []int, lo int) walker {
	w := walker{shape: shape, steps: steps, at: at}
	for d := len(shape) - 1; d >= 0; d-- {
		w.index[d] = lo % shape[d]
		lo /= shape[d]
		w.at += w.index[d] * steps[d]
	}
	return w
}

// run returns the length of the rest of the run, at most n, and the step between its elements.
func (w *walker) run(n int) (length, step int) {
	last := len(w.shape) - 1
	if last < 0 {
		return 1, 0
	}
	return min(n, w.shape[last]-w.index[last]), w.steps[last]
}

// advance skips n elements of the run.
func (w *walker) advance(n int) {
	d := len(w.shape) - 1
	if d < 0 {
		return
	}
	w.index[d] += n
	w.at += n * w.steps[d]
	w.carry(d)
}

// carry moves the dimensions before d on where d is at its end.
func (w *walker) carry(d int) {
	// Like an odometer: a digit that is full goes back to zero, and the one before moves on. The
	// first digit is left beyond its end, which says that the walk is over.
	for ; d > 0 && w.index[d] == w.shape[d]; d-- {
		w.index[d] = 0
		w.index[d-1]++
		w.at += w.steps[d-1] - w.shape[d]*w.steps[d]
	}
}

// gather copies elements of a view, from element lo on.
func gather[T any](dst, src []T, at int, shape, steps []int, lo int) {
	w := walk(at, shape, steps, lo)
	for len(dst) > 0 {
		if n := gatherRows(dst, src, &w); n > 0 {
			dst = dst[n:]
			continue
		}
		n, step := w.run(len(dst))
		switch step {
		case 0:
			fill(dst[:n], src[w.at])
		case 1:
			copy(dst[:n], src[w.at:])
		default:
			at, i := w.at, 0
			if d, ok := any(dst).([]float32); ok && step == 2 { // channels that were shuffled, for example
				i = n - 1 // what follows the last one need not exist
				kernel.EverySecond(d[:i], any(src).([]float32)[at:][:2*i])
				at += 2 * i
			}
			for ; i < n; i++ {
				dst[i] = src[at]
				at += step
			}
		}
		dst = dst[n:]
		w.advance(n)
	}
}

// shortRun is the length of a run for which it takes less time to copy elements one by one than to
// prepare for it.
const shortRun = 16

// gatherRows copies whole runs of the last two dimensions that are short, or lie in memory, and returns how many
// elements these are.
func gatherRows[T any](dst, src []T, w *walker) int {
	at, run, rows := w.rows(len(dst), shortRun)
	if rows == 0 {
		return 0
	}
	step, apart := w.steps[len(w.steps)-1], w.steps[len(w.steps)-2]
	if run == 2 && apart == 1 && step >= 0 { // of two that are repeated, for example
		interleave.Block(dst[:rows*run], src[at:], step, run, rows)
		return rows * run
	}
	for r := range rows {
		part := dst[r*run:][:run]
		if run > shortRun {
			copy(part, src[at:])
		} else {
			from := at
			for i := range part {
				part[i] = src[from]
				from += step
			}
		}
		at += apart
	}
	return rows * run
}

// rows advances by whole runs of the last two dimensions, by at most n elements: it returns where they begin, their
// length, and how many there are. There are none if a run is longer than short, and does not lie in memory.
func (w *walker) rows(n, short int) (at, run, rows int) {
	d := len(w.shape) - 1
	if d < 1 || w.shape[d] > short && w.steps[d] != 1 || w.index[d] != 0 {
		return 0, 0, 0
	}
	at, run = w.at, w.shape[d]
	if rows = min(n/run, w.shape[d-1]-w.index[d-1]); rows > 0 {
		w.index[d-1] += rows
		w.at += rows * w.steps[d-1]
		w.carry(d - 1)
	}
	return at, run, rows
}

// scatter copies elements into a view, from element lo on.
func scatter[T any](dst, src []T, at int, shape, steps []int, lo int) {
	w := walk(at, shape, steps, lo)
	for len(src) > 0 {
		if at, run, rows := w.rows(len(src), 0); rows > 0 {
			apart := steps[len(steps)-2]
			for range rows {
				copy(dst[at:], src[:run])
				at, src = at+apart, src[run:]
			}
			continue
		}
		n, step := w.run(len(src))
		if step == 1 {
			copy(dst[w.at:], src[:n])
		} else {
			at := w.at
			for i := range n {
				dst[at] = src[i]
				at += step
			}
		}
		src = src[n:]
		w.advance(n)
	}
}

// CopyTo copies the elements of src, broadcast to the shape of dst, to dst. Both have the same
// element type. They may be views of the same memory: dst gets what src was before.
func CopyTo(dst, src *Array) {
	if s, ok := src.data.(*csr); ok {
		dst.data = &csr{s.values.Clone(), slices.Clone(s.columns), slices.Clone(s.pointers)}
		return
	}
	if n := dst.Len(); n > 0 {
		// What rounds of a loop hand on is copied in less time than it takes to find out how.
		if d, ok := dst.data.([]float32); ok && dst.ndim == src.ndim && dst.shape == src.shape && dst.Contiguous() && src.Contiguous() {
			copy(d[dst.offset:][:n], dataOf[float32](src)[src.offset:])
			return
		}
		src = src.broadcastAs(dst)
		if src.changesUnder(dst) {
			src = src.Clone()
		}
		kinds[dst.dtype].copy(dst, src, 0, 1)
	}
}

// changesUnder reports whether elements of a may be overwritten, one after the other, before they are copied to dst,
// which has the same shape. Contiguous memory is moved as one.
func (a *Array) changesUnder(dst *Array) bool {
	if !a.Overlaps(dst) || a.Contiguous() && dst.Contiguous() {
		return false
	}
	first, end := a.reach()
	from, to := dst.reach()
	same := first == from && a.strides == dst.strides // each element is copied to itself
	return first < to && from < end && !same
}

// broadcastAs returns a, broadcast to the shape of b, which has elements. It panics if that is
// impossible.
func (a *Array) broadcastAs(b *Array) *Array {
	if a.ndim == b.ndim && a.Len() == b.Len() {
		return a
	}
	v, err := a.BroadcastTo(b.Shape()...)
	if err != nil {
		panic(err)
	}
	return v
}

func copyElements[T Element](dst, src *Array, part, parts int) {
	d, s := dataOf[T](dst), dataOf[T](src)
	lo, next := piece(part, parts, dst.Len(), leastMoved)
	n := next - lo
	// Copying into contiguous memory or from it takes one pass. If neither is contiguous, runs of
	// both would have to be matched: blocks in between avoid that.
	var shape, steps, outer, apart [MaxDims]int
	if !dst.Contiguous() && src.Contiguous() {
		to, from := *dst, *src
		if inMemoryOrder(&to, &from); to.Contiguous() {
			dst, src = &to, &from // and src is gathered, in blocks if that is faster
		}
	}
	switch {
	case dst.Contiguous() && src.Contiguous():
		// A walk goes by rows, which may be as short as those of a kernel of 3×3.
		copy(d[dst.offset+lo:][:n], s[src.offset+lo:][:n])
	case dst.Contiguous():
		k := src.joined(&shape, &steps)
		if k > 1 && steps[k-1] >= turnStep && dst.Len() >= leastTurned {
			turn(d[dst.offset:][:dst.Len()], s, src.offset, shape[:k], steps[:k], part, parts)
			return
		}
		gather(d[dst.offset+lo:][:n], s, src.offset, shape[:k], steps[:k], lo)
	case src.Contiguous():
		k := dst.joined(&shape, &steps)
		scatter(d, s[src.offset+lo:][:n], dst.offset, shape[:k], steps[:k], lo)
	default:
		k, m := src.joined(&shape, &steps), dst.joined(&outer, &apart)
		var buf [blockSize]T
		block := buf[:min(n, blockSize)]
		for ; n > 0; n -= len(block) {
			block = block[:min(len(block), n)]
			gather(block, s, src.offset, shape[:k], steps[:k], lo)
			scatter(d, block, dst.offset, outer[:m], apart[:m], lo)
			lo += len(block)
		}
	}
}

// inMemoryOrder turns both arrays, of one shape, so that the strides of the first fall.
func inMemoryOrder(a, b *Array) {
	for i := 1; i < int(a.ndim); i++ { // by insertion: there are few dimensions
		for k := i; k > 0 && a.strides[k] > a.strides[k-1]; k-- {
			for _, v := range [...]*Array{a, b} {
				v.shape[k], v.shape[k-1] = v.shape[k-1], v.shape[k]
				v.strides[k], v.strides[k-1] = v.strides[k-1], v.strides[k]
			}
		}
	}
}

const (
	// turnBlock is the number of elements of a line of a cache: what turn copies at a time.
	turnBlock = 16
	// A view whose elements are turnStep or more apart, and that has leastTurned, takes longer to gather
	// in its own order than in that of memory: others are in a cache.
	turnStep    = 16
	leastTurned = 1 << 11
)

// turn copies a part of the elements of a view whose last dimension has a long step, such as weights
// whose channels change places. It takes some of the last dimension at a time, and the other dimensions
// in the order in which memory has them, so that lines that are read are used before they leave the
// cache.
func turn[T any](dst, src []T, at int, shape, steps []int, part, parts int) {
	last := len(shape) - 1
	var order, index, to, from, end [MaxDims]int
	size := 1
	longest := 0 // dimension: the one that is divided
	for d := last; d >= 0; d-- {
		to[d], size = size, size*shape[d]
		end[d] = shape[d]
		if shape[d] > shape[longest] {
			longest = d
		}
		order[d] = d
	}
	from[longest], end[longest] = piece(part, parts, shape[longest], turnBlock)
	dims := order[:last]
	for i := range dims { // by insertion: package slices would put steps on the heap
		for k := i; k > 0 && steps[dims[k]] > steps[dims[k-1]]; k-- {
			dims[k], dims[k-1] = dims[k-1], dims[k]
		}
	}
	if y, ok := any(dst).([]float32); ok && steps[dims[last-1]] == 1 {
		turnMatrices(y, any(src).([]float32), at, dims, from, end, to, steps)
		return
	}
	for first := from[last]; first < end[last]; first += turnBlock {
		run := min(turnBlock, end[last]-first)
		in, out := at+first*steps[last], first
		for _, d := range dims {
			index[d] = from[d]
			in, out = in+from[d]*steps[d], out+from[d]*to[d]
		}
		for from[longest] < end[longest] {
			row := dst[out:][:run]
			p := in
			for i := range row {
				row[i] = src[p]
				p += steps[last]
			}
			k := last - 1
			for ; k >= 0; k-- {
				d := dims[k]
				index[d]++
				in += steps[d]
				out += to[d]
				if index[d] < end[d] {
					break
				}
				n := end[d] - from[d]
				in -= n * steps[d]
				out -= n * to[d]
				index[d] = from[d]
			}
			if k < 0 {
				break
			}
		}
	}
}

// turnMatrices is turn where the elements of a dimension follow each other, the last one of dims: it and the last
// dimension of the view are those of matrices.
func turnMatrices(dst, src []float32, at int, dims []int, from, end, to [MaxDims]int, steps []int) {
	rows, outer := len(dims), dims[:len(dims)-1]
	columns := dims[len(outer)]
	m := kernel.Matrix{Rows: end[rows] - from[rows], Cols: end[columns] - from[columns], Stride: steps[rows]}
	if m.Rows == 0 || m.Cols == 0 {
		return
	}
	count := 1
	for _, d := range outer {
		count *= end[d] - from[d]
	}
	for i := range count {
		in, out := at+from[rows]*steps[rows]+from[columns], from[rows]+from[columns]*to[columns]
		for k := len(outer) - 1; k >= 0; k-- {
			d := outer[k]
			size := end[d] - from[d]
			p := from[d] + i%size
			in, out, i = in+p*steps[d], out+p*to[d], i/size
		}
		m.Data = src[in:][:(m.Rows-1)*m.Stride+m.Cols]
		kernel.Transpose(dst[out:], to[columns], m)
	}
}

// joined returns the shape and the strides of a with dimensions that are one in memory joined, and
// without sizes of 1. It returns their number.
func (a *Array) joined(shape, steps *[MaxDims]int) int {
	n := 0
	for d, size := range a.Shape() {
		switch {
		case size == 1:
		case n > 0 && steps[n-1] == a.strides[d]*size:
			shape[n-1], steps[n-1] = shape[n-1]*size, a.strides[d]
		default:
			shape[n], steps[n] = size, a.strides[d]
			n++
		}
	}
	return n
}
