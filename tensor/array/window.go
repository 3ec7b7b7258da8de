package array

// MaxSpatial is the largest number of spatial dimensions: those behind batch and channels.
const MaxSpatial = 3

// A Window is what convolutions and pools move over the first Dims entries of each field: the
// spatial dimensions of an array. In dimension d, element i of the result belongs to the elements
// i·Stride[d] - Before[d] + k·Dilation[d] of the input, 0 ≤ k < Size[d]. Those that are not in the
// input are padding. The other entries are 0.
type Window struct {
	Dims                   int
	Size, Stride, Dilation [MaxSpatial]int
	Before, After          [MaxSpatial]int // elements of padding; a negative number cuts elements off
}

// Extent returns the distance from the first element of the window to the one behind the last.
func (w *Window) Extent(d int) int { return (w.Size[d]-1)*w.Dilation[d] + 1 }

// OutputSize returns the size of the result in dimension d for an input of size n. Windows end where
// the padding ends; with ceil the last one may end behind it, if it begins before the padding that
// is behind the input.
func (w *Window) OutputSize(d, n int, ceil bool) int {
	room := n + w.Before[d] + w.After[d] - w.Extent(d)
	if !ceil {
		return max(0, divideDown(room, w.Stride[d])+1)
	}
	count := divideDown(room+w.Stride[d]-1, w.Stride[d]) + 1
	return max(0, min(count, divideDown(n+w.Before[d]-1, w.Stride[d])+1))
}

// divideDown returns a/b rounded down, for b > 0.
func divideDown(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Covered returns how many elements of the window at position i of the result are in the input,
// which has size n in dimension d, or with padding in the input or its padding.
func (w *Window) Covered(d, n, i int, padding bool) int {
	lo, hi := 0, n
	if padding {
		lo, hi = -w.Before[d], n+w.After[d]
	}
	first, step := i*w.Stride[d]-w.Before[d], w.Dilation[d]
	from := max(0, divideDown(lo-first+step-1, step))
	to := min(w.Size[d], divideDown(hi-first+step-1, step))
	return max(0, to-from)
}

// A slide is a window on arrays of certain sizes. It has MaxSpatial dimensions: those that are
// missing come first and have size 1, so that one piece of code does for all.
type slide struct {
	in, out                        [MaxSpatial]int
	size, stride, dilation, before [MaxSpatial]int
	ranges                         []span // by element of the window in the last dimension, of newSlide
	phase                          int    // elements of a phase, see inPhases; 0 if there are none
}

// A span is a range of positions.
type span struct{ lo, hi int }

// newSlide takes the spatial sizes of input and result.
func newSlide(w *Window, in, out []int) *slide {
	s := new(slide)
	s.become(w, in, out)
	last := MaxSpatial - 1
	for k := range s.size[last] {
		s.ranges = append(s.ranges, s.rangeOf(last, k))
	}
	return s
}

// become is newSlide for a slide that is there, without ranges.
func (s *slide) become(w *Window, in, out []int) {
	*s = slide{}
	for d := range MaxSpatial {
		s.in[d], s.out[d], s.size[d], s.stride[d], s.dilation[d] = 1, 1, 1, 1, 1
	}
	skip := MaxSpatial - w.Dims
	for d := range w.Dims {
		e := skip + d
		s.in[e], s.out[e] = in[d], out[d]
		s.size[e], s.stride[e], s.dilation[e], s.before[e] = w.Size[d], w.Stride[d], w.Dilation[d], w.Before[d]
	}
}

// rangeOf returns the positions at which element k of the window is in the input.
func (s *slide) rangeOf(d, k int) span {
	// Position i belongs to first + i·step of the input. Both bounds are rounded up, as in covered.
	first, step := k*s.dilation[d]-s.before[d], s.stride[d]
	lo := min(max(0, divideDown(-first+step-1, step)), s.out[d])
	hi := min(max(lo, divideDown(s.in[d]-first+step-1, step)), s.out[d])
	return span{lo, hi}
}

// inPhases makes the input of a slide one of phases: the elements of a line that are a stride apart lie side by side.
// The lines are whole strides long. What a window adds to is then one vector.
func (s *slide) inPhases() {
	s.phase = (s.in[2] + s.stride[2] - 1) / s.stride[2]
	s.in[2] = s.phase * s.stride[2]
}

// column returns where element k of the window is in its line at a position, and how far from there it is at the next.
func (s *slide) column(k, position int) (at, step int) {
	at, step = position*s.stride[2]-s.before[2]+k*s.dilation[2], s.stride[2]
	if s.phase > 0 {
		return at%step*s.phase + at/step, 1
	}
	return at, step
}

// place returns where element k of the window is in the input at position i, and whether it is
// there.
func (s *slide) place(d, i, k int) (at int, ok bool) {
	at = i*s.stride[d] - s.before[d] + k*s.dilation[d]
	return at, at >= 0 && at < s.in[d]
}

// positions returns the number of elements of the result, in a channel.
func (s *slide) positions() int { return s.out[0] * s.out[1] * s.out[2] }

// inputs returns the number of elements of the input, in a channel.
func (s *slide) inputs() int { return s.in[0] * s.in[1] * s.in[2] }

// window returns the number of elements of the window.
func (s *slide) window() int { return s.size[0] * s.size[1] * s.size[2] }

// additions returns how many additions follow each other where the sums of columns are added.
func (s *slide) additions() int { return s.size[0]*s.size[1] + s.size[2] - 2 }

// plain reports whether each element of the result belongs to the element of the input in the same
// place.
func (s *slide) plain() bool {
	one := [MaxSpatial]int{1, 1, 1}
	return s.size == one && s.stride == one && s.before == [MaxSpatial]int{} && s.in == s.out
}

// rows calls f for each row of the input that belongs to a row of the result, which is row out of
// all rows of a channel: with the row of the input, and with the element of the window that begins
// the row of the window.
func (s *slide) rows(out int, f func(in, k int)) {
	i, j := out/s.out[1], out%s.out[1]
	for a := range s.size[0] {
		y, ok := s.place(0, i, a)
		if !ok {
			continue
		}
		for b := range s.size[1] {
			if x, ok := s.place(1, j, b); ok {
				f(y*s.in[1]+x, (a*s.size[1]+b)*s.size[2])
			}
		}
	}
}

// patches sets the rows of dst, stride elements apart, to the elements of the input x, some channels,
// that belong to n positions from first on: a row for each channel at each element of the window,
// and a column for each position. Padding is 0. Only some rows are set.
func patches[T float](dst []T, stride int, x []T, channels int, s *slide, first, n int, some span) {
	size := s.inputs()
	for row := some.lo; row < some.hi; row++ {
		k, c := row/channels, row%channels
		patchRow(dst[row*stride:][:n], x[c*size:][:size], s, s.element(k), first)
	}
}

// element returns element k of the window.
func (s *slide) element(k int) [MaxSpatial]int {
	return [...]int{k / s.size[2] / s.size[1], k / s.size[2] % s.size[1], k % s.size[2]}
}

// patchRow is a row of patches: that of one element of the window in one channel.
func patchRow[T float](dst, plane []T, s *slide, k [MaxSpatial]int, first int) {
	width := s.out[2]
	r, step := s.ranges[k[2]], s.stride[2]
	shift := k[2]*s.dilation[2] - s.before[2]
	line, at := first/width, first%width
	i, j := line/s.out[1], line%s.out[1]
	for len(dst) > 0 {
		// A line of the result, or what is left of it: in a line the elements of the input are equally far
		// apart.
		run := dst[:min(width-at, len(dst))]
		y, ok := s.place(0, i, k[0])
		x, ok2 := s.place(1, j, k[1])
		if lo, hi := max(r.lo, at), min(r.hi, at+len(run)); !ok || !ok2 || lo >= hi {
			clear(run)
		} else {
			clear(run[:lo-at])
			clear(run[hi-at:])
			from := (y*s.in[1]+x)*s.in[2] + lo*step + shift
			part := run[lo-at : hi-at]
			if step == 1 {
				copy(part, plane[from:])
			} else {
				for e := range part {
					part[e] = plane[from]
					from += step
				}
			}
		}
		dst, at = dst[len(run):], 0
		if j++; j == s.out[1] {
			i, j = i+1, 0
		}
	}
}

// addPatches adds the rows of src to the elements of x that patches takes them from: those of some of
// the channels.
func addPatches[T float](x, src []T, stride, channels int, s *slide, first, n int, some span) {
	size := s.inputs()
	for k := range s.window() {
		for c := some.lo; c < some.hi; c++ {
			addPatchRow(x[c*size:][:size], src[(k*channels+c)*stride:][:n], s, s.element(k), first)
		}
	}
}

func addPatchRow[T float](plane, src []T, s *slide, k [MaxSpatial]int, first int) {
	width := s.out[2]
	r := s.ranges[k[2]]
	line, at := first/width, first%width
	i, j := line/s.out[1], line%s.out[1]
	for len(src) > 0 {
		run := src[:min(width-at, len(src))]
		y, ok := s.place(0, i, k[0])
		x, ok2 := s.place(1, j, k[1])
		if lo, hi := max(r.lo, at), min(r.hi, at+len(run)); ok && ok2 && lo < hi {
			to, step := s.column(k[2], lo)
			to += (y*s.in[1] + x) * s.in[2]
			part := run[lo-at : hi-at]
			if step == 1 {
				addScaled(plane[to:][:len(part)], 1, part)
			} else {
				for _, v := range part {
					plane[to] += v
					to += step
				}
			}
		}
		src, at = src[len(run):], 0
		if j++; j == s.out[1] {
			i, j = i+1, 0
		}
	}
}
