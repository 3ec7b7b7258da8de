package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// compute returns the value of an expression of arrays. It checks the inferred shapes, and that the
// ops print as text that reads as the same ops. With sizes, types tell them; otherwise only sizes of
// 1, which the ops have to know of.
func compute(t *testing.T, sizes, optimize bool, f func(in []*fgraph.Variable) *fgraph.Variable, args ...*array.Array) (*array.Array, error) {
	t.Helper()
	in := make([]*fgraph.Variable, len(args))
	for i, a := range args {
		shape := slices.Clone(a.Shape())
		for d, n := range shape {
			if n != 1 && !sizes {
				shape[d] = tensor.Unknown
			}
		}
		in[i] = fgraph.NewInput(tensor.NewType(a.DType(), shape...), fmt.Sprint("i", i))
	}
	y, err := tensor.Try(func() *fgraph.Variable { return f(in) })
	if err != nil {
		return nil, err
	}
	if a := y.Owner(); a != nil {
		op, ok := expr.Default().Op(a.Op().String())
		if !ok || !fgraph.OpsEqual(op, a.Op()) {
			t.Errorf("%v reads as %v, %v", a.Op(), op, ok)
		}
	}
	opts := exec.FunctionOptions{Check: true}
	if optimize {
		opts.Optimizer = passtest.Optimizer(t, "+fast_run")
	}
	g, err := exec.NewFunction(t.Context(), in, []*fgraph.Variable{y}, opts)
	if err != nil {
		return nil, err
	}
	out, err := g.Call(t.Context(), args...)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func randomArray(r *rand.Rand, dtype array.DType, shape ...int) *array.Array {
	a := array.New(dtype, shape...)
	for i := range a.Len() {
		a.SetFloat(i, math.Round(r.NormFloat64()*16)/16)
	}
	return a
}

// A sample is a window on arrays of random sizes.
type sample struct {
	dims                              int
	items, groups, in, out            int // channels of a group
	spatial, sizes                    []int
	slide                             tensor.Slide
	strides, dilations, before, after []int
}

func randomSample(r *rand.Rand) sample {
	s := sample{dims: 1 + r.IntN(3), items: r.IntN(4), groups: 1 + r.IntN(3), in: 1 + r.IntN(5), out: 1 + r.IntN(6)}
	if r.IntN(4) == 0 {
		s.in = 1
	}
	for range s.dims {
		s.sizes = append(s.sizes, 1+r.IntN(4))
		s.strides = append(s.strides, 1+r.IntN(3))
		s.dilations = append(s.dilations, 1+r.IntN(2))
		s.before = append(s.before, r.IntN(3))
		s.after = append(s.after, r.IntN(3))
		s.spatial = append(s.spatial, 1+r.IntN([]int{60, 14, 8}[s.dims-1]))
	}
	switch r.IntN(5) {
	case 0: // as most convolutions of one element are
		for d := range s.dims {
			s.sizes[d], s.strides[d], s.before[d], s.after[d] = 1, 1, 0, 0
		}
	case 1:
		s.before[0], s.after[0] = -r.IntN(3), -r.IntN(2)
	case 2:
		for d := range s.dims {
			s.strides[d] = 1
		}
	}
	s.slide = tensor.Slide{Strides: s.strides, Dilations: s.dilations, Before: s.before, After: s.after}
	return s
}

// result returns the spatial sizes of the result, and false if a window does not fit.
func (s sample) result(ceil bool) (out []int, ok bool) {
	ok = true
	for d, n := range s.spatial {
		room := n + s.before[d] + s.after[d] - (s.sizes[d]-1)*s.dilations[d] - 1
		k := int(math.Floor(float64(room)/float64(s.strides[d]))) + 1
		if ceil {
			k = int(math.Ceil(float64(room)/float64(s.strides[d]))) + 1
			for k > 0 && (k-1)*s.strides[d] >= n+s.before[d] {
				k--
			}
		}
		out = append(out, k)
		ok = ok && k > 0
	}
	return out, ok
}

// odometer calls f for all indexes of a shape, in row-major order.
func odometer(shape []int, f func(at []int)) {
	n := 1
	for _, k := range shape {
		n *= k
	}
	at := make([]int, len(shape))
	for i := range n {
		for d, left := len(shape)-1, i; d >= 0; d-- {
			at[d] = left % shape[d]
			left /= shape[d]
		}
		f(at)
	}
}

// flatAt returns the place of an index in row-major order.
func flatAt(shape []int, at ...int) int {
	i := 0
	for d, n := range shape {
		i = i*n + at[d]
	}
	return i
}

// inputAt returns the place in the input that element k of a window at a position is for, and
// whether it is in the input, or at least in the padding.
func (s sample) inputAt(position, k []int) (at []int, inside, padded bool) {
	inside, padded = true, true
	for d := range s.dims {
		i := position[d]*s.strides[d] - s.before[d] + k[d]*s.dilations[d]
		at = append(at, i)
		inside = inside && i >= 0 && i < s.spatial[d]
		padded = padded && i < s.spatial[d]+s.after[d]
	}
	return at, inside, padded
}

// each calls f for each product of a convolution: with the places of its factors.
func (s sample) each(out []int, f func(x, w, y int)) {
	channels, results := s.groups*s.in, s.groups*s.out
	xShape := append([]int{s.items, channels}, s.spatial...)
	wShape := append([]int{results, s.in}, s.sizes...)
	yShape := append([]int{s.items, results}, out...)
	odometer(yShape, func(y []int) {
		odometer(wShape[1:], func(k []int) {
			if at, ok, _ := s.inputAt(y[2:], k[1:]); ok {
				x := append([]int{y[0], y[1]/s.out*s.in + k[0]}, at...)
				f(flatAt(xShape, x...), flatAt(wShape, append([]int{y[1]}, k...)...), flatAt(yShape, y...))
			}
		})
	})
}

func near(t *testing.T, what string, got *array.Array, shape []int, want []float64) {
	t.Helper()
	if !slices.Equal(got.Shape(), shape) {
		t.Fatalf("%s: shape %v, want %v", what, got.Shape(), shape)
	}
	tol := 1e-12
	if got.DType() == array.Float32 {
		tol = 1e-5
	}
	for i, v := range want {
		if g := got.Float(i); !(math.Abs(g-v) <= tol*max(1, math.Abs(v)) || g == v || v != v && g != g) {
			t.Fatalf("%s: element %d of shape %v is %v, want %v", what, i, shape, g, v)
		}
	}
}

// TestConv compares convolutions, their transposes and the gradients of the weights with loops over
// all products.
func TestConv(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range longtest.Of(60, 2000) {
		s := randomSample(r)
		out, ok := s.result(false)
		dtype := []array.DType{array.Float64, array.Float32}[i%2]
		x := randomArray(r, dtype, append([]int{s.items, s.groups * s.in}, s.spatial...)...)
		w := randomArray(r, dtype, append([]int{s.groups * s.out, s.in}, s.sizes...)...)
		b := randomArray(r, dtype, s.groups*s.out)
		what := fmt.Sprintf("%+v of %v and %v", s, x.Shape(), w.Shape())
		known, optimize := r.IntN(2) == 0, i%8 == 0
		got, err := compute(t, known, optimize, func(in []*fgraph.Variable) *fgraph.Variable {
			return tensor.Conv(in[0], in[1], in[2], s.slide, s.groups)
		}, x, w, b)
		if !ok {
			if err == nil || !errors.Is(err, tensor.ErrShape) && !errors.Is(err, tensor.ErrType) || !strings.Contains(err.Error(), "dimension") {
				t.Fatalf("%s: %v", what, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		y := randomArray(r, dtype, append([]int{s.items, s.groups * s.out}, out...)...)
		wantX, wantW, wantY := make([]float64, x.Len()), make([]float64, w.Len()), make([]float64, y.Len())
		plane := y.Len() / max(1, s.items*s.groups*s.out)
		for i := range wantY {
			wantY[i] = b.Float(i / plane % b.Len())
		}
		s.each(out, func(i, j, k int) {
			wantY[k] += x.Float(i) * w.Float(j)
			wantX[i] += y.Float(k) * w.Float(j)
			wantW[j] += y.Float(k) * x.Float(i)
		})
		near(t, what, got, y.Shape(), wantY)
		for k, want := range [][]float64{wantX, wantW} {
			like := []*array.Array{x, w}[k]
			got, err := compute(t, known, optimize, func(in []*fgraph.Variable) *fgraph.Variable {
				cost := tensor.Sum(tensor.Mul(tensor.Conv(in[0], in[1], nil, s.slide, s.groups), in[2]))
				g, err := tensor.Grad(cost, in[k])
				if err != nil {
					t.Fatal(err)
				}
				return g[0]
			}, x, w, y)
			if err != nil {
				t.Fatalf("gradient %d of %s: %v", k, what, err)
			}
			near(t, fmt.Sprintf("gradient %d of %s", k, what), got, like.Shape(), want)
		}
	}
}

// TestConvTranspose compares with the sums of all products, also where the result is larger than
// need be.
func TestConvTranspose(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for range longtest.Of(100, 1000) {
		s := randomSample(r)
		positions := s.spatial // of a convolution, which are the input
		s.spatial = nil
		var output []int
		for d, n := range positions {
			more := r.IntN(s.strides[d])
			size := (n-1)*s.strides[d] + (s.sizes[d]-1)*s.dilations[d] + 1 - s.before[d] - s.after[d] + more
			output, s.spatial = append(output, more), append(s.spatial, max(size, 0))
		}
		fits := !slices.Contains(s.spatial, 0)
		x := randomArray(r, array.Float32, append([]int{s.items, s.groups * s.out}, positions...)...)
		w := randomArray(r, array.Float32, append([]int{s.groups * s.out, s.in}, s.sizes...)...)
		what := fmt.Sprintf("%+v of %v and %v", s, x.Shape(), w.Shape())
		got, err := compute(t, r.IntN(2) == 0, false, func(in []*fgraph.Variable) *fgraph.Variable {
			return tensor.ConvTranspose(in[0], in[1], nil, s.slide, output, s.groups)
		}, x, w)
		if !fits {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		shape := append([]int{s.items, s.groups * s.in}, s.spatial...)
		want := make([]float64, got.Len())
		s.each(positions, func(i, j, k int) { want[i] += x.Float(k) * w.Float(j) })
		near(t, what, got, shape, want)
	}
}

// TestPools compares pools with loops over all windows.
func TestPools(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	tried := 0
	for i := range longtest.Of(120, 3000) {
		s := randomSample(r)
		ceil := r.IntN(2) == 0
		out, ok := s.result(ceil)
		dtype := []array.DType{array.Float64, array.Float32, array.Int64}[i%3]
		x := randomArray(r, dtype, append([]int{s.items, s.in}, s.spatial...)...)
		for k := range x.Len() {
			if dtype.IsFloat() && r.IntN(40) == 0 {
				x.SetFloat(k, []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)])
			}
		}
		shape := append([]int{s.items, s.in}, out...)
		what := fmt.Sprintf("%+v of %v, ceil %v", s, x.Shape(), ceil)
		want := make(map[string][]float64)
		if ok {
			odometer(shape, func(y []int) {
				most, place, sum, sum2, inside, padded := math.Inf(-1), -1, 0.0, 0.0, 0.0, 0.0
				odometer(s.sizes, func(k []int) {
					at, in, pad := s.inputAt(y[2:], k)
					if pad {
						padded++
					}
					if !in {
						return
					}
					at = append([]int{y[0], y[1]}, at...)
					e := flatAt(x.Shape(), at...)
					v := x.Float(e)
					if place < 0 || v > most || v != v && most == most {
						most, place = v, e
					}
					sum, sum2, inside = sum+v, sum2+v*v, inside+1
				})
				ok = ok && inside > 0
				for name, v := range map[string]float64{"max": most, "places": float64(place), "mean": sum / inside, "padded": sum / padded, "sum": sum, "lp": math.Sqrt(sum2)} {
					want[name] = append(want[name], v)
				}
			})
		}
		for name, f := range map[string]func(x *fgraph.Variable) *fgraph.Variable{
			"max":    func(x *fgraph.Variable) *fgraph.Variable { return tensor.MaxPool(x, s.sizes, s.slide, ceil) },
			"places": func(x *fgraph.Variable) *fgraph.Variable { return tensor.MaxPoolPlaces(x, s.sizes, s.slide, ceil) },
			"mean":   func(x *fgraph.Variable) *fgraph.Variable { return tensor.AveragePool(x, s.sizes, s.slide, ceil, false) },
			"padded": func(x *fgraph.Variable) *fgraph.Variable { return tensor.AveragePool(x, s.sizes, s.slide, ceil, true) },
			"sum":    func(x *fgraph.Variable) *fgraph.Variable { return tensor.SumPool(x, s.sizes, s.slide, ceil) },
			"lp":     func(x *fgraph.Variable) *fgraph.Variable { return tensor.LpPool(x, 2, s.sizes, s.slide, ceil) },
		} {
			known := r.IntN(2) == 0
			got, err := compute(t, known, i%16 == 0, func(in []*fgraph.Variable) *fgraph.Variable {
				y := f(in[0])
				if name == "lp" { // not the last op, whose text is read again
					return tensor.Mul(y, tensor.Number(1, y))
				}
				return y
			}, x)
			switch {
			case !ok && s.items > 0 && (name == "max" || name == "mean" || name == "places"):
				if err == nil || !strings.Contains(err.Error(), "dimension") {
					t.Fatalf("%s of %s: %v, want an error", name, what, err)
				}
			case !ok:
			case err != nil && s.items == 0 && strings.Contains(err.Error(), "only padding"):
			case err != nil:
				t.Fatalf("%s of %s: %v", name, what, err)
			default:
				near(t, name+" of "+what, got, shape, want[name])
				tried++
			}
		}
	}
	if tried < longtest.Of(300, 500) {
		t.Errorf("only %d pools were compared", tried)
	}
}

// TestWindowErrors checks that what can't be computed is an error that says why.
func TestWindowErrors(t *testing.T) {
	s := expr.NewScope()
	if err := s.Declare("x: float64[2, 4, 9, 9]; w: float64[6, 4, 3, 3]; v: float64[6, 2, 3, 3]; y: float64[2, 6, 7, 7]; b: float64[5]; M: matrix; i: int64[1, 1, 5]; t: tensor3; u: tensor3"); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"conv(x, v)":                               "dimension 1 has size 2",
		"conv(x, w, groups=3)":                     "4 channels are not divisible into 3 groups",
		"conv(x, v, groups=4)":                     "not divisible into 4 groups",
		"conv(x, w, groups=0)":                     "0 groups",
		"conv(x, w, b)":                            "a bias that is",
		"conv(x, w, strides=[1, 0])":               "stride of spatial dimension 1 is 0",
		"conv(x, w, strides=[1, 1, 1])":            "3 strides for 2 spatial dimensions",
		"conv(x, w, dilations=[5, 1])":             "extends over 11 elements, does not fit dimension 2",
		"conv(x, w, pads=[1, 1])":                  "2 pads for 2 spatial dimensions",
		"conv(x, w, pads=99999999)":                "padding before of spatial dimension 0 is 99999999",
		"conv(M, M)":                               "1 to 3 spatial dimensions are expected",
		"conv(x, t)":                               "spatial dimensions are expected",
		"Conv{2}(x, t)":                            "with 4 dimensions",
		"Conv{2}(x)":                               "2 arguments",
		"conv_transpose(y, v, groups=4)":           "6 channels of the result are not divisible into 4 groups",
		"conv_transpose(x, w)":                     "has size 6 where 4 is expected",
		"conv_transpose(y, w, output_padding=[1])": "output padding",
		"ConvTranspose{2}(y, w, 9, 8)":             "dimension 3 of the first one has size 6, not 7",
		"ConvWeights{2}(x, y, 3, 0)":               "a window of size 0",
		"ConvWeights{2}(x, y, 3, 4)":               "dimension 3 should have size 6",
		"max_pool(x, 0)":                           "size of the window in spatial dimension 0 is 0",
		"max_pool(x, [3, 3, 3])":                   "3 sizes for 2 spatial dimensions",
		"max_pool(x, 10)":                          "does not fit dimension 2",
		"max_pool(x, 2, pads=3)":                   "window 0 of dimension 2, which has size 9, has only padding",
		"max_pool(M, 2)":                           "0 spatial dimensions",
		"max_pool(x > 0, 2)":                       "not a tensor of numbers",
		"AveragePool{2}(i)":                        "not a tensor of numbers",
		"AveragePoolGrad{3,3}(y, 9, 8)":            "dimension 3 of the first one has size 6, not 7",
		"resize(x, scales=[1, 1, 0, 2])":           "the scale of dimension 2 is 0",
		"resize(x, scales=[2, 2])":                 "2 sizes or scales",
		"resize(x, sizes=[2, 4, 9, -1])":           "negative",
		"resize(x, sizes=x.shape, mode='a')":       "there is no mode",
		"topk(x, 10)":                              "10 elements of dimension 3, which has size 9",
		"gather_nd(x, [[0, 0, 0, 0, 0]])":          "the last dimension is how many are indexed",
		"gather_elements(x, [1])":                  "an index that is",
	} {
		if y, err := s.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want an error: %s", text, y, err, want)
		}
	}
	// The same when sizes are known only at run time.
	one := func(shape ...int) *array.Array { return array.Full(array.Float64, 1, shape...) }
	for text, c := range map[string]struct {
		t, u *array.Array
		want string
	}{
		"conv(t, u)":                              {one(2, 3, 5), one(2, 2, 3), "dimension 1 has size 2"},
		"conv(t, u, groups=2)":                    {one(2, 4, 5), one(3, 2, 3), "3 channels of the result"},
		"conv(t, u, dilations=2)":                 {one(2, 4, 5), one(3, 4, 4), "extends over 7 elements, does not fit dimension 2"},
		"conv_transpose(t, u)":                    {one(2, 4, 5), one(3, 4, 4), "weights of shape [3 4 4] for 4 channels"},
		"ConvTranspose{1}(t, u, -1)":              {one(2, 4, 5), one(4, 4, 4), "negative size"},
		"ConvTranspose{1}(t, u, 7)":               {one(2, 4, 5), one(4, 4, 4), "dimension 2 has size 5"},
		"ConvWeights{1}(t, u, u.size)":            {one(2, 4, 5), one(2, 4, 4), "does not fit dimension 2"},
		"max_pool(t, 6) + u":                      {one(2, 4, 5), one(2, 4, 1), "does not fit dimension 2"},
		"max_pool(t, 3, dilations=4, pads=4) + u": {one(2, 4, 1), one(2, 4, 1), ""},
		"max_pool(t, 2, dilations=4, pads=2) + u": {one(2, 4, 1), one(2, 4, 1), "only padding"},
		"AveragePoolGrad{2}(t, 7) + u":            {one(2, 4, 5), one(2, 4, 1), "where windows on 7 elements make 6"},
	} {
		y, err := expr.NewScope(), error(nil)
		if err = y.Declare("t u: tensor3"); err != nil {
			t.Fatal(err)
		}
		v, err := y.ParseOne(text)
		var f *exec.Function
		if err == nil {
			f, err = exec.NewFunction(t.Context(), y.Inputs(), []*fgraph.Variable{v}, exec.FunctionOptions{})
		}
		if err == nil {
			_, err = f.Call(t.Context(), c.t, c.u)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error: %s", text, err, c.want)
		}
	}
	for _, op := range []tensor.Op{tensor.ConvOp{}, tensor.ConvTransposeOp{}, tensor.ConvWeightsOp{}, tensor.PoolOp{}, tensor.PoolPlacesOp{}, tensor.PoolGradOp{}, tensor.ResizePlacesOp{}, tensor.InterpolateOp{},
		tensor.ConvOp{Window: array.Window{Dims: 9}, Groups: 1}, tensor.PoolOp{Window: array.Window{Dims: -1}}} {
		if _, err := op.Infer([]*fgraph.Variable{s.Lookup("x")}); err == nil {
			t.Errorf("%v without parameters is possible", op)
		}
	}
}

// TestConvNothing computes convolutions and pools without items, channels or elements.
func TestConvNothing(t *testing.T) {
	zero := func(shape ...int) *array.Array { return array.Full(array.Float32, 1, shape...) }
	for _, c := range []struct {
		x, w  *array.Array
		pads  int
		shape []int
		value float64
	}{
		{zero(0, 2, 5), zero(3, 2, 3), 0, []int{0, 3, 3}, 0},
		{zero(2, 0, 5), zero(3, 0, 3), 0, []int{2, 3, 3}, 0},
		{zero(2, 2, 5), zero(0, 2, 3), 0, []int{2, 0, 3}, 0},
		{zero(2, 2, 0), zero(3, 2, 3), 0, []int{2, 3, 0}, 0},
		{zero(2, 2, 0), zero(3, 2, 3), 2, []int{2, 3, 2}, 0},
	} {
		for _, known := range []bool{true, false} {
			slide := tensor.Slide{Before: []int{c.pads}, After: []int{c.pads}}
			for k := range 3 {
				got, err := compute(t, known, false, func(in []*fgraph.Variable) *fgraph.Variable {
					y := tensor.Conv(in[0], in[1], nil, slide, 1)
					if k == 0 {
						return y
					}
					g, err := tensor.Grad(tensor.Sum(y), in[k-1])
					if err != nil {
						t.Fatal(err)
					}
					return g[0]
				}, c.x, c.w)
				if err != nil {
					t.Fatalf("%v by %v: %v", c.x.Shape(), c.w.Shape(), err)
				}
				shape := [][]int{c.shape, c.x.Shape(), c.w.Shape()}[k]
				near(t, fmt.Sprint(k), got, shape, make([]float64, got.Len()))
			}
		}
	}
	for _, known := range []bool{true, false} {
		got, err := compute(t, known, false, func(in []*fgraph.Variable) *fgraph.Variable {
			return tensor.MaxPool(in[0], []int{2}, tensor.Slide{}, true)
		}, zero(0, 2, 5))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "max", got, []int{0, 2, 4}, nil)
		got, err = compute(t, known, false, func(in []*fgraph.Variable) *fgraph.Variable {
			return tensor.SumPool(in[0], []int{2}, tensor.Slide{}, false)
		}, zero(2, 2, 0))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "sum", got, []int{2, 2, 0}, nil)
	}
}

// TestConvMemory checks that a convolution takes little more memory than its result.
func TestConvMemory(t *testing.T) {
	x, w := array.New(array.Float32, 1, 64, 56, 56), array.New(array.Float32, 64, 64, 3, 3)
	in := []*fgraph.Variable{fgraph.NewInput(tensor.NewType(array.Float32, -1, -1, -1, -1), "x"), fgraph.NewInput(tensor.NewType(array.Float32, -1, -1, -1, -1), "w")}
	slide := tensor.Slide{Before: []int{1, 1}, After: []int{1, 1}}
	y := tensor.Conv(in[0], in[1], nil, slide, 1)
	f, err := exec.NewFunction(t.Context(), in, []*fgraph.Variable{y}, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := f.NewRunner()
	if _, err := r.Run(t.Context(), x, w); err != nil {
		t.Fatal(err)
	}
	if most := int64(x.Bytes() + 1<<20); r.Peak() > most {
		t.Errorf("%d bytes, want at most %d", r.Peak(), most)
	}
	f, err = exec.NewFunction(t.Context(), in, []*fgraph.Variable{y}, exec.FunctionOptions{MaxBytes: int64(x.Bytes())})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Call(t.Context(), x, w); !errors.Is(err, array.ErrTooLarge) {
		t.Errorf("%v, want %v", err, array.ErrTooLarge)
	}
}
