package lower

import (
	"math"
	"math/bits"
	"slices"

	"github.com/nnopt/nnopt/internal/kernel/elementary"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// The operators of signals: spectra, and the windows that signals are multiplied with. Spectra are computed with
// float64s: ONNX's tests ask for more than a float32 has left after the sums.
var signals = map[string]func(c *call) []*value{
	"DFT":             (*call).dft,
	"MelWeightMatrix": (*call).mel,
	"HannWindow":      func(c *call) []*value { return c.window(0.5, 0.5, 0) },
	"HammingWindow":   func(c *call) []*value { return c.window(25.0/46, 21.0/46, 0) },
	"BlackmanWindow":  func(c *call) []*value { return c.window(0.42, 0.5, 0.08) },
}

type fourier struct {
	Axis, Length     int
	Inverse, OneSide bool
}

// dft transforms x, […, 1] or complex numbers […, 2], along an axis: an attribute in opset 17, an input
// from 20 on.
func (c *call) dft() []*value {
	shape := c.shape(c.x(0))
	axis := c.int("axis", 1)
	if c.opset >= 20 {
		if axis = -2; c.has(2) {
			axis = int(c.one(2))
		}
	}
	n := len(shape)
	axis = c.axis(axis, n)
	c.failIf(n < 2 || axis == n-1 || shape[n-1] != 1 && shape[n-1] != 2, "axis %d of shape %v", axis, shape)
	p := fourier{axis, shape[axis], c.bool("inverse", false), c.bool("onesided", false)}
	if p.OneSide && p.Inverse {
		// The even one of two lengths that have such a half; the odd one has to be given.
		p.Length = 2 * (shape[axis] - 1)
	}
	if c.has(1) {
		p.Length = int(c.one(1))
	}
	if p.Length < 1 || p.OneSide && p.Inverse != (shape[n-1] == 2) {
		c.fail("%w: length %d, inverse %v, onesided %v, of shape %v", ErrUnsupported, p.Length, p.Inverse, p.OneSide, shape)
	}
	shape[axis], shape[n-1] = p.bins(), p.parts()
	c.bounded(append(slices.Clone(shape), 4)) // with room for what computes odd lengths
	return c.like(routine(c, "Fourier", transformed, p, []variable{c.floats(0)}, tensor.NewType(array.Float64, shape...))[0])
}

// bins returns how many results there are: with real numbers the other half mirrors the first one.
func (p fourier) bins() int {
	if p.OneSide && !p.Inverse {
		return p.Length/2 + 1
	}
	return p.Length
}

// parts returns how many parts a result has: what mirrored numbers become is real.
func (p fourier) parts() int {
	if p.OneSide && p.Inverse {
		return 1
	}
	return 2
}

// transformed transforms along an axis. What is too short is followed by zeros.
func transformed(p fourier, in []*array.Array) ([]*array.Array, error) {
	x, shape := array.Slice[float64](in[0]), slices.Clone(in[0].Shape())
	parts := shape[len(shape)-1]
	n, outer, inner := shape[p.Axis], product(shape[:p.Axis]), product(shape[p.Axis+1:len(shape)-1])
	shape[p.Axis], shape[len(shape)-1] = p.bins(), p.parts()
	y := array.New(array.Float64, shape...)
	out := array.Slice[float64](y)
	t := newTransform(p.Length, p.Inverse)
	line := make([]complex128, p.Length)
	for i := range outer {
		for j := range inner {
			clear(line)
			for k := range min(n, p.Length) {
				line[k] = complexAt(x, ((i*n+k)*inner+j)*parts, parts)
			}
			if p.parts() == 1 {
				mirror(line)
			}
			t.apply(line)
			for k, v := range line[:p.bins()] {
				at := ((i*p.bins()+k)*inner + j) * p.parts()
				if out[at] = real(v); p.parts() == 2 {
					out[at+1] = imag(v)
				}
			}
		}
	}
	return []*array.Array{y}, nil
}

// mirror makes the second half of a line that of a transform of real numbers, whose first number, and
// that in the middle, are real.
func mirror(line []complex128) {
	n := len(line)
	line[0] = complex(real(line[0]), 0)
	for k := 1; k <= n/2; k++ {
		if 2*k == n {
			line[k] = complex(real(line[k]), 0)
		}
		line[n-k] = conjugate(line[k])
	}
}

// complexAt returns a number that has one part or two.
func complexAt(x []float64, i, parts int) complex128 {
	if parts == 2 {
		return complex(x[i], x[i+1])
	}
	return complex(x[i], 0)
}

// A transform computes discrete Fourier transforms of one length.
type transform struct {
	n       int
	inverse bool
	roots   []complex128 // of unity, for the power of two: of its part of 2h numbers, h from the place h on
	// Of other lengths the transform is a convolution with a chirp (Bluestein, 1970), which transforms
	// of a power of two compute.
	chirp, spectrum, buffer []complex128
}

func newTransform(n int, inverse bool) *transform {
	t := &transform{n: n, inverse: inverse}
	m := n
	if n&(n-1) != 0 {
		// A convolution with 2n-1 numbers of the chirp, without wrapping around.
		m = 1 << bits.Len(uint(2*n-1))
	}
	t.roots = make([]complex128, m)
	for k := range m / 2 {
		t.roots[m/2+k] = unit(-2 * math.Pi * float64(k) / float64(m))
	}
	// The roots of half the size are every second one.
	for h := m/2 - 1; h > 0; h-- {
		t.roots[h] = t.roots[2*h]
	}
	if m == n {
		return t
	}
	t.chirp, t.spectrum, t.buffer = make([]complex128, n), make([]complex128, m), make([]complex128, m)
	for k := range t.chirp {
		// The angle is πk²/n; k² modulo 2n keeps it exact.
		t.chirp[k] = unit(-math.Pi * float64(k*k%(2*n)) / float64(n))
		t.spectrum[k] = conjugate(t.chirp[k])
		t.spectrum[(m-k)%m] = conjugate(t.chirp[k])
	}
	t.power(t.spectrum)
	return t
}

func unit(angle float64) complex128 { return complex(elementary.Cos(angle), elementary.Sin(angle)) }

// times multiplies without fused sums, so that all processors have the same bits.
func times(a, b complex128) complex128 {
	return complex(float64(real(a)*real(b))-float64(imag(a)*imag(b)), float64(real(a)*imag(b))+float64(imag(a)*real(b)))
}

func conjugate(v complex128) complex128 { return complex(real(v), -imag(v)) }

// apply transforms a line in place. An inverse one is that of the conjugates, conjugated.
func (t *transform) apply(x []complex128) {
	if t.inverse {
		conjugateAll(x)
	}
	if t.chirp == nil {
		t.power(x)
	} else {
		clear(t.buffer)
		for k, v := range x {
			t.buffer[k] = times(v, t.chirp[k])
		}
		t.power(t.buffer)
		// The way back, by conjugates as below.
		for k := range t.buffer {
			t.buffer[k] = conjugate(times(t.buffer[k], t.spectrum[k]))
		}
		t.power(t.buffer)
		m := complex(float64(len(t.buffer)), 0)
		for k := range x {
			x[k] = times(conjugate(t.buffer[k])/m, t.chirp[k])
		}
	}
	if t.inverse {
		conjugateAll(x)
		for k := range x {
			x[k] /= complex(float64(t.n), 0)
		}
	}
}

func conjugateAll(x []complex128) {
	for k, v := range x {
		x[k] = conjugate(v)
	}
}

// power is the transform of a power of two (Cooley and Tukey, 1965).
func (t *transform) power(x []complex128) {
	n := len(x)
	shift := 64 - bits.Len(uint(n-1))
	for i := range x {
		if j := int(bits.Reverse64(uint64(i)) >> shift); n > 1 && j > i {
			x[i], x[j] = x[j], x[i]
		}
	}
	for size := 2; size <= n; size *= 2 {
		roots := t.roots[size/2 : size]
		for from := 0; from < n; from += size {
			low, high := x[from:from+len(roots)], x[from+len(roots):from+size]
			for k, root := range roots {
				a, b := low[k], times(high[k], root)
				low[k], high[k] = a+b, a-b
			}
		}
	}
}

// mel makes the matrix that adds up bins of a spectrum in triangles, which are equally wide in mels.
func (c *call) mel() []*value {
	count, length, rate := int(c.one(0)), int(c.one(1)), c.one(2)
	low, high := melOf(c.one(3)), melOf(c.one(4))
	bins := length/2 + 1
	if count < 0 || length < 0 || !(rate > 0) || !(low >= 0 && low <= high) {
		c.fail("%d bands from %v to %v mels of %d bins at a rate of %v", count, low, high, length, rate)
	}
	c.bounded([]int{bins, count + 2})
	edges := make([]int, count+2)
	for i := range edges {
		// ONNX divides by the number of edges, not by that of the steps between them.
		mel := low + float64(float64(i)*((high-low)/float64(count+2)))
		at := math.Floor(float64(length+1) * float64(700*(elementary.Pow(10, mel/2595)-1)) / rate)
		c.failIf(!(at >= 0 && at < float64(bins)), "an edge at bin %v of %d", at, bins)
		edges[i] = int(at)
	}
	y := make([]float64, bins*count)
	for i := range count {
		from, top, to := edges[i], edges[i+1], edges[i+2]
		for j := from; j <= top; j++ {
			y[j*count+i] = 1
			if top > from {
				y[j*count+i] = float64(j-from) / float64(top-from)
			}
		}
		for j := top; j < to; j++ {
			y[j*count+i] = float64(to-j) / float64(to-top)
		}
	}
	return c.out(tensor.Constant(array.Of(y, bins, count)), onnx.DataType(c.int("output_datatype", int(onnx.Float))))
}

func melOf(hertz float64) float64 { return float64(2595 * elementary.Log10(1+hertz/700)) }

// window returns a - b cos(2πi/n) + d cos(4πi/n), for i from 0 to a size.
func (c *call) window(a, b, d float64) []*value {
	size := int(c.one(0))
	c.bounded([]int{size})
	n := float64(size)
	if !c.bool("periodic", true) {
		n--
	}
	list := make([]float64, size)
	for i := range list {
		x := 2 * math.Pi * float64(i) / n
		list[i] = a - float64(b*elementary.Cos(x)) + float64(d*elementary.Cos(2*x))
	}
	return c.out(tensor.Constant(array.Of(list, size)), onnx.DataType(c.int("output_datatype", int(onnx.Float))))
}
