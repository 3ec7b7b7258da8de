package array

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
