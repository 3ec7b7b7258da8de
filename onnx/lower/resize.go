package lower

import (
	"math"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A resizing is what Resize does along all dimensions.
type resizing struct {
	*call
	mode, coordinates, nearest string
	a                          float64 // of cubic convolution
	antialias, inside          bool
	sizes                      []int
	scales                     []float64
	roi                        []float64 // starts, then ends, as parts of the dimensions
	asSize                     bool      // sizes were given, and not scales
}

// resize lowers Resize of all opsets, and Upsample. What tensors have is an op of theirs; the rest are
// sums of elements with weights that are known here.
func (c *call) resize() []*value {
	r := &resizing{call: c, mode: strings.TrimPrefix(c.oneOf("mode", "nearest", "nearest", "linear", "cubic", "bilinear"), "bi"), coordinates: c.text("coordinate_transformation_mode", "half_pixel"),
		nearest: c.text("nearest_mode", "round_prefer_floor"), a: c.float("cubic_coeff_a", -0.75),
		antialias: c.bool("antialias", false), inside: c.bool("exclude_outside", false)}
	if c.open != nil && unsized(c.x(0)) {
		return c.like(r.openSizes(c.x(0)))
	}
	r.measure()
	o := r.options()
	// What tensors have is neither cubic nor smooth, and has fewer kinds of coordinates.
	switch {
	case r.mode == "cubic" || r.antialias && r.mode != "nearest" || r.inside && r.mode == "linear" || r.rare():
		return c.like(r.weighted(c.x(0)))
	case r.sizes != nil && r.scales != nil: // which are not what the sizes make
		return c.like(r.weighted(c.x(0)))
	case r.asSize:
		return c.like(tensor.ResizeTo(c.x(0), o, sizes(r.sizes)...))
	}
	return c.like(tensor.ResizeBy(c.x(0), o, r.scales...))
}

func (r *resizing) options() tensor.ResizeOptions {
	return tensor.ResizeOptions{Linear: r.mode == "linear", Coordinates: r.coordinates, Nearest: r.nearest}
}

// rare reports whether coordinates are of a kind that tensors don't have.
func (r *resizing) rare() bool {
	return slices.Contains([]string{"tf_crop_and_resize", "tf_half_pixel_for_nn", "half_pixel_symmetric"}, r.coordinates)
}

// openSizes resizes a tensor whose sizes are not known by known scales, or to sizes that are computed of those of inputs.
func (r *resizing) openSizes(x variable) variable {
	_, scalesAt, sizesAt := r.places()
	simple := r.mode != "cubic" && !r.antialias && !r.inside && r.attribute("axes") == nil && r.text("keep_aspect_ratio_policy", "stretch") == "stretch" &&
		!r.rare()
	r.failIf(!simple, "%w: a Resize of this kind", ErrSizes)
	if r.has(sizesAt) {
		if list := r.elements(sizesAt); len(list) == ndim(x) {
			return tensor.ResizeTo(x, r.options(), r.scalars(list)...)
		}
	}
	r.failIf(!r.has(scalesAt), "%w: a Resize of this kind", ErrSizes)
	scales := r.array(scalesAt).Floats()
	if len(scales) != ndim(x) || slices.ContainsFunc(scales, func(s float64) bool { return !(s > 0 && s <= maxMade) }) {
		r.fail("scales %v for a %v", scales, x.Type())
	}
	return tensor.ResizeBy(x, r.options(), scales...)
}

// places returns which inputs are the region, the scales and the sizes.
func (r *resizing) places() (roi, scales, sizes int) {
	if r.op.Type == "Upsample" || r.opset < 11 {
		// Before there were attributes for them, these were meant.
		r.coordinates, r.nearest = "asymmetric", "floor"
		return 4, 1, 4
	}
	return 1, 2, 3
}

// measure finds the sizes, or the scales, of all dimensions.
func (r *resizing) measure() {
	shape := r.shape(r.x(0))
	roiAt, scalesAt, sizesAt := r.places()
	axes := r.axesOr("axes", len(shape))
	if r.coordinates == "tf_crop_and_resize" {
		r.readRoi(roiAt, axes, len(shape))
	}
	if r.has(sizesAt) && r.array(sizesAt).Len() > 0 {
		r.readSizes(shape, axes, r.ints(sizesAt))
		return
	}
	scales := slices.Repeat([]float64{1}, len(shape))
	var list []float64
	if r.has(scalesAt) {
		list = r.array(scalesAt).Floats()
	}
	r.failIf(len(list) != len(axes), "%d scales for %d dimensions", len(list), len(axes))
	for i, a := range axes {
		scales[a] = list[i]
	}
	for d, s := range scales {
		r.failIf(!(s > 0) || !(s*float64(shape[d]) <= maxMade), "the scale of dimension %d is %v", d, s)
		shape[d] = int(float64(shape[d]) * s)
	}
	r.bounded(shape)
	r.scales = scales
}

// readRoi reads the part of x that is cropped, by dimension.
func (r *resizing) readRoi(k int, axes []int, n int) {
	list := r.array(k).Floats()
	r.failIf(len(list) != 2*len(axes), "a region of %d numbers for %d dimensions", len(list), len(axes))
	r.roi = make([]float64, 2*n)
	for d := range n {
		r.roi[n+d] = 1
	}
	for i, a := range axes {
		r.roi[a], r.roi[n+a] = list[i], list[len(axes)+i]
	}
}

// readSizes sets the sizes. A policy gives all dimensions the scale of one of them.
func (r *resizing) readSizes(shape, axes, list []int) {
	r.failIf(len(list) != len(axes), "%d sizes for %d dimensions", len(list), len(axes))
	r.asSize = true
	policy := r.oneOf("keep_aspect_ratio_policy", "stretch", "stretch", "not_larger", "not_smaller")
	scale := math.NaN()
	for i, a := range axes {
		s := float64(list[i]) / float64(max(shape[a], 1))
		switch {
		case scale != scale:
			scale = s
		case policy == "not_larger":
			scale = min(scale, s)
		case policy == "not_smaller":
			scale = max(scale, s)
		}
	}
	r.sizes = slices.Clone(shape)
	if policy != "stretch" {
		// Coordinates follow from the scale of the policy, not from the rounded sizes.
		r.scales = slices.Repeat([]float64{1}, len(shape))
	}
	for i, a := range axes {
		if r.sizes[a] = list[i]; policy != "stretch" {
			r.scales[a] = scale
			r.sizes[a] = int(min(math.Floor(float64(scale*float64(shape[a]))+0.5), maxMade+1))
		}
	}
	r.bounded(r.sizes)
}

// weighted resizes one dimension after the other.
func (r *resizing) weighted(x variable) variable {
	// Weights are fractions, which integers would lose.
	if d := tensor.TypeOf(x).DType(); !d.IsFloat() && r.mode != "nearest" {
		x = tensor.Cast(x, array.Float32)
	}
	shape := r.shape(x)
	var outside variable
	for d, n := range shape {
		m, scale := n, 1.0
		if r.scales != nil {
			scale = r.scales[d]
			m = int(float64(n) * scale)
		}
		if r.sizes != nil {
			if m = r.sizes[d]; r.scales == nil {
				scale = float64(m) / float64(max(n, 1))
			}
		}
		if m == n && scale == 1 && r.roi == nil {
			continue
		}
		r.failIf(n == 0 && m > 0, "%d elements of none", m)
		places := make([]float64, m)
		beyond := make([]bool, m)
		for i := range places {
			places[i] = r.place(i, n, m, d, scale)
			beyond[i] = !(places[i] >= 0 && places[i] <= float64(n-1))
		}
		x = r.along(x, d, places, scale)
		if r.roi != nil {
			out := asDim(tensor.Constant(array.Of(beyond, m)), d, len(shape))
			if outside == nil {
				outside = out
			} else {
				outside = tensor.Map(array.Or, outside, out)
			}
		}
	}
	if outside != nil {
		x = tensor.Switch(outside, number(r.float("extrapolation_value", 0), x), x)
	}
	return x
}

// place returns where element i of m is among n. Sizes are whole numbers also if scales make others,
// as in PyTorch and ONNX Runtime: data of ONNX's tests for align_corners differ there.
func (r *resizing) place(i, n, m, d int, scale float64) float64 {
	at, last := float64(i), float64(n-1)
	switch r.coordinates {
	case "half_pixel":
		return (at+0.5)/scale - 0.5
	case "half_pixel_symmetric":
		// The middle stays in the middle if the scale makes no whole number.
		share := float64(m) / (float64(n) * scale)
		return float64(float64(n)/2*(1-share)) + (at+0.5)/scale - 0.5
	case "pytorch_half_pixel":
		if m == 1 {
			return 0
		}
		return (at+0.5)/scale - 0.5
	case "align_corners":
		return at * last / float64(max(m-1, 1))
	case "asymmetric":
		return at / scale
	case "tf_half_pixel_for_nn":
		return (at + 0.5) / scale
	case "tf_crop_and_resize":
		from, to := r.roi[d], r.roi[len(r.roi)/2+d]
		if m == 1 {
			return 0.5 * (from + to) * last
		}
		return float64(from*last) + at*(to-from)*last/float64(m-1)
	}
	r.fail("%w: coordinate_transformation_mode %q", ErrUnsupported, r.coordinates)
	return 0
}

// along takes the elements of a dimension at places.
func (r *resizing) along(x variable, d int, places []float64, scale float64) variable {
	n := r.shape(x)[d]
	if r.mode == "nearest" {
		return takeAlong(x, d, within(func(i int) int { return r.rounded(places[i]) }, len(places), n))
	}
	// An element is a sum over a window, which is wider than its kernel where it smooths.
	reach, wide := 1.0, 1.0
	if r.mode == "cubic" {
		reach = 2
	}
	if r.antialias {
		// Only shrinking smooths: there is nothing to average where elements are repeated.
		wide = min(scale, 1)
	}
	// A place lies between two elements. The window reaches as far behind the second one as before the first.
	first := int(math.Floor(-reach/wide)) + 1
	count := 2 - 2*first
	r.failIf(count > maxTaps || count*len(places) > maxMade, "%w: each element is a sum of %d", ErrUnsupported, count)
	weights := lists.Map(places, func(at float64) []float64 { return r.weights(at, n, first, count, wide) })
	var sum variable
	for k := range count {
		list := lists.Map(weights, func(w []float64) float64 { return w[k] })
		w := asDim(tensor.Cast(tensor.Constant(array.Of(list, len(list))), tensor.TypeOf(x).DType()), d, ndim(x))
		part := tensor.Mul(w, takeAlong(x, d, within(func(i int) int { return floorOf(places[i]) + first + k }, len(places), n)))
		if sum == nil {
			sum = part
		} else {
			sum = tensor.Add(sum, part)
		}
	}
	return sum
}

// maxTaps bounds the elements that one is a sum of.
const maxTaps = 1 << 10

// weights returns what elements from the one at floor(at)+first on count, together 1.
func (r *resizing) weights(at float64, n, first, count int, wide float64) []float64 {
	list, sum := make([]float64, count), 0.0
	for k := range list {
		i := floorOf(at) + first + k
		x := float64((float64(i) - at) * wide)
		if r.mode == "cubic" {
			list[k] = cubic(x, r.a)
		} else {
			list[k] = max(0, 1-math.Abs(x))
		}
		if r.inside && (i < 0 || i >= n) {
			list[k] = 0
		}
		sum += list[k]
	}
	// Weights of what is inside alone don't add up to 1, nor do samples of a widened kernel.
	if sum != 0 {
		for k := range list {
			list[k] /= sum
		}
	}
	return list
}

// floorOf is the element before a place, which may be anywhere.
func floorOf(at float64) int {
	if at != at {
		return 0
	}
	return int(math.Floor(min(max(at, -far), far)))
}

// rounded returns the nearest element.
func (r *resizing) rounded(at float64) int {
	switch r.nearest {
	case "round_prefer_floor":
		// A half goes down here, and up in the next mode.
		return floorOf(math.Ceil(at - 0.5))
	case "round_prefer_ceil":
		return floorOf(at + 0.5)
	case "floor":
		return floorOf(at)
	case "ceil":
		return floorOf(math.Ceil(at))
	}
	r.fail("%w: nearest_mode %q", ErrUnsupported, r.nearest)
	return 0
}

// within returns m places among n elements; those outside are the last ones.
func within(at func(i int) int, m, n int) []int64 {
	list := make([]int64, m)
	for i := range list {
		list[i] = int64(min(max(at(i), 0), n-1))
	}
	return list
}
