package tensor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// Windows of convolutions and pools: see [array.Window]. The window is part of the op, except for
// the sizes of that of a convolution, which its weights have.

// maxWindow bounds the numbers of a window, so that sums and products of them and of sizes don't
// overflow.
const maxWindow = 1 << 20

// Slide says how a window moves over the spatial dimensions. Each list has an entry for each of
// them, or is empty.
type Slide struct {
	Strides   []int // 1 if empty
	Dilations []int // from an element of the window to the next one; 1 if empty
	// Before and After are the elements of padding on both sides; 0 if empty. A negative number cuts
	// elements off.
	Before, After []int
}

// window returns the window of dims dimensions. Sizes are empty for a convolution.
func (s Slide) window(name string, dims int, sizes []int) array.Window {
	if dims < 1 || dims > array.MaxSpatial {
		fail(name, "%d spatial dimensions, there can be 1 to %d", dims, array.MaxSpatial)
	}
	w := array.Window{Dims: dims}
	for _, f := range []struct {
		what    string
		list    []int
		to      *[array.MaxSpatial]int
		missing int
	}{
		{"sizes", sizes, &w.Size, 0}, {"strides", s.Strides, &w.Stride, 1}, {"dilations", s.Dilations, &w.Dilation, 1},
		{"pads before", s.Before, &w.Before, 0}, {"pads after", s.After, &w.After, 0},
	} {
		if len(f.list) != 0 && len(f.list) != dims {
			fail(name, "%d %s for %d spatial dimensions", len(f.list), f.what, dims)
		}
		for d := range dims {
			if f.to[d] = f.missing; len(f.list) > 0 {
				f.to[d] = f.list[d]
			}
		}
	}
	return w
}

// checkWindow says what is wrong with the window of an op. Sized windows are those of pools.
func checkWindow(op fgraph.Op, w array.Window, sized bool) error {
	if w.Dims < 1 || w.Dims > array.MaxSpatial {
		return opError(op, "%d spatial dimensions, there can be 1 to %d", w.Dims, array.MaxSpatial)
	}
	for d := range w.Dims {
		for _, f := range []struct {
			what     string
			n, least int
		}{
			{"stride", w.Stride[d], 1}, {"dilation", w.Dilation[d], 1},
			{"padding before", w.Before[d], -maxWindow}, {"padding after", w.After[d], -maxWindow},
		} {
			if f.n < f.least || f.n > maxWindow {
				return opError(op, "the %s of spatial dimension %d is %d", f.what, d, f.n)
			}
		}
		if sized && (w.Size[d] < 1 || w.Size[d] > maxWindow) {
			return opError(op, "the size of the window in spatial dimension %d is %d", d, w.Size[d])
		}
	}
	return nil
}

// windowText returns the parameters of a window, each in braces. Those that have their usual value
// are left out.
func windowText(w array.Window) string {
	dims := min(max(w.Dims, 0), array.MaxSpatial)
	var b strings.Builder
	add := func(name string, usual int, lists ...[array.MaxSpatial]int) {
		var parts []string
		other := false
		for _, list := range lists {
			for _, n := range list[:dims] {
				parts = append(parts, strconv.Itoa(n))
				other = other || n != usual
			}
		}
		if other {
			b.WriteString("{" + name + "=" + strings.Join(parts, ",") + "}")
		}
	}
	add("strides", 1, w.Stride)
	add("dilations", 1, w.Dilation)
	add("pads", 0, w.Before, w.After)
	return b.String()
}

// slidArgs checks that an argument of an op has floats, batch, channels and the spatial dimensions
// of a window.
func slidArgs(op fgraph.Op, i int, v *fgraph.Variable, w array.Window) (spec, error) {
	t := TypeOf(v).h.Value()
	if int(t.ndim) != w.Dims+2 || !t.dtype.IsFloat() || t.csr {
		return t, argError(op, i, "is a %v, not a tensor of floats with %d dimensions", v.Type(), w.Dims+2)
	}
	return t, nil
}

// slidSize returns the size of the result of a window of a size in spatial dimension d, for an input
// of size n. Either may be Unknown.
func slidSize(w array.Window, d, n, size int, ceil bool) (int, error) {
	if n == Unknown || size == Unknown {
		return Unknown, nil
	}
	w.Size[d] = size
	out := w.OutputSize(d, n, ceil)
	// A window that does not fit is an error, but nothing in nothing is not.
	if out == 0 && n > 0 {
		return 0, fmt.Errorf("the window, which extends over %d elements, does not fit dimension %d, which has size %d and padding %d and %d",
			w.Extent(d), d+2, n, w.Before[d], w.After[d])
	}
	return out, nil
}

// slidDim is slidSize for sizes that are int64 scalars.
func slidDim(s *Shapes, w array.Window, d int, n, size *fgraph.Variable, ceil bool) *fgraph.Variable {
	num, stride := s.size, s.size(w.Stride[d])
	extent := intMap(array.Add, intMap(array.Mul, intMap(array.Sub, size, num(1)), num(w.Dilation[d])), num(1))
	// The number of windows is (n + padding - extent)/stride + 1, rounded down, or rounded up with ceil.
	room := intMap(array.Sub, intMap(array.Add, n, num(w.Before[d]+w.After[d])), extent)
	count := func(room *fgraph.Variable) *fgraph.Variable {
		return intMap(array.Add, intMap(array.IntDiv, room, stride), num(1))
	}
	if !ceil {
		return intMap(array.Maximum, count(room), num(0))
	}
	// Rounded up, the last window may end behind the padding, but it has to begin before the end of the input.
	ends := count(intMap(array.Add, room, num(w.Stride[d]-1)))
	begins := count(intMap(array.Add, n, num(w.Before[d]-1)))
	return intMap(array.Maximum, intMap(array.Minimum, ends, begins), num(0))
}
