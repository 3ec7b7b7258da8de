package tensor

import (
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// ResizeOptions say which elements a resized tensor is computed from. The names are those of ONNX.
type ResizeOptions struct {
	// Linear computes elements from their two neighbours in each dimension, otherwise each is the
	// nearest one.
	Linear bool
	// Coordinates says where the elements of the result are in x: half_pixel, the default, pytorch_half_pixel,
	// align_corners or asymmetric.
	Coordinates string
	// Nearest says which element is the nearest one: round_prefer_floor, the default, round_prefer_ceil, floor or ceil.
	Nearest string
}

// The coordinates map element i of m elements to a place among n elements; scale is m/n unless it was given.
const (
	halfPixel        = "half_pixel"         // (i + ½)/scale - ½
	pytorchHalfPixel = "pytorch_half_pixel" // the same, but 0 if m is 1
	alignCorners     = "align_corners"      // i·(n-1)/(m-1), 0 if m is 1
	asymmetric       = "asymmetric"         // i/scale
)

// The ways to round a place.
const (
	roundPreferFloor = "round_prefer_floor" // ½ down
	roundPreferCeil  = "round_prefer_ceil"  // ½ up
	nearestFloor     = "floor"
	nearestCeil      = "ceil"
)

var (
	coordinateModes = []string{halfPixel, pytorchHalfPixel, alignCorners, asymmetric}
	nearestModes    = []string{roundPreferFloor, roundPreferCeil, nearestFloor, nearestCeil}
)

// checked returns the options with modes, for a tensor of n dimensions.
func (o ResizeOptions) checked(name string, x *fgraph.Variable, n int) ResizeOptions {
	if o.Coordinates == "" {
		o.Coordinates = halfPixel
	}
	if o.Nearest == "" {
		o.Nearest = roundPreferFloor
	}
	if !slices.Contains(coordinateModes, o.Coordinates) {
		fail(name, "there are no coordinates %q; there are %v", o.Coordinates, coordinateModes)
	}
	if !slices.Contains(nearestModes, o.Nearest) {
		fail(name, "there is no way %q to round; there are %v", o.Nearest, nearestModes)
	}
	if d := TypeOf(x).NDim(); d != n {
		fail(name, "%d sizes or scales for a %v", n, x.Type())
	}
	return o
}

// ResizeTo returns x with other sizes: integer scalars, one for each dimension, or nil for a
// dimension that stays as it is.
func ResizeTo(x *fgraph.Variable, o ResizeOptions, sizes ...*fgraph.Variable) *fgraph.Variable {
	const name = "resize"
	o = o.checked(name, x, len(sizes))
	for d, m := range slices.Backward(sizes) { // the last dimensions first, while there are fewer of their lines
		if m == nil {
			continue
		}
		m, n := natural(name, AsSize(name, m)), sizeOf(x, d)
		k, known := constantInt(m)
		l, known2 := constantInt(n)
		switch {
		case known && known2 && k == l: // in all modes
		case known && known2 && l > 0 && k%l == 0 && o.repeats():
			x = Repeat(x, Int(k/l), d)
		default:
			x = o.along(x, d, n, m, TrueDiv(Cast(m, array.Float64), Cast(n, array.Float64)))
		}
	}
	return x
}

// ResizeBy returns x with sizes that are multiples of its own, rounded down. There is a scale for each
// dimension.
func ResizeBy(x *fgraph.Variable, o ResizeOptions, scales ...float64) *fgraph.Variable {
	const name = "resize"
	o = o.checked(name, x, len(scales))
	for d, scale := range slices.Backward(scales) {
		k := int(scale)
		switch n := sizeOf(x, d); {
		case !(scale > 0 && scale <= maxWindow):
			fail(name, "the scale of dimension %d is %v", d, scale)
		case scale == 1:
		case scale == float64(k) && o.repeats():
			x = Repeat(x, Int(k), d)
		default:
			size := scaledSize(n, scale)
			x = o.along(x, d, n, size, Float(scale))
		}
	}
	return x
}

// scaledSize returns n·scale rounded down.
func scaledSize(n *fgraph.Variable, scale float64) *fgraph.Variable {
	if k, ok := constantInt(n); ok {
		return Int(int(float64(k) * scale))
	}
	return Cast(Map(array.Floor, Mul(Cast(n, array.Float64), Float(scale))), array.Int64)
}

// repeats reports whether an integer scale repeats each element.
func (o ResizeOptions) repeats() bool {
	if o.Linear {
		return false
	}
	switch o.Coordinates {
	case asymmetric:
		return o.Nearest == nearestFloor
	case halfPixel: // less than half an element away from the one that is repeated
		return o.Nearest == roundPreferFloor || o.Nearest == roundPreferCeil
	}
	return false
}

// along resizes dimension d from n elements to m.
func (o ResizeOptions) along(x *fgraph.Variable, d int, n, m, scale *fgraph.Variable) *fgraph.Variable {
	if !o.Linear {
		return takeAlong(x, d, MustApply(ResizePlacesOp{Coordinates: o.Coordinates, Nearest: o.Nearest}, n, m, scale))
	}
	// Behind the ends there is nothing to go on with, so places there are those of the ends.
	at := MustApply(ResizePlacesOp{Coordinates: o.Coordinates}, n, m, scale)
	dtype := TypeOf(x).DType().Float()
	if dtype.IsHalf() {
		return Cast(MustApply(InterpolateOp{Axis: int8(d)}, Cast(x, array.Float32), at), dtype)
	}
	return MustApply(InterpolateOp{Axis: int8(d)}, Cast(x, dtype), at)
}

// ResizePlacesOp computes where the elements of a resized dimension are in the original one: inputs
// n, m, as integer scalars, and the scale, a float64 scalar. The places are float64s from 0 to n-1,
// or integers if Nearest says how to round. It is an op of its own because arithmetic that rewriters
// change may round a place to the other side.
type ResizePlacesOp = resizePlacesOp

type resizePlacesOp struct {
	noGradient
	Coordinates string
	Nearest     string
}

// String returns for example ResizePlaces{half_pixel}{floor}.
func (op resizePlacesOp) String() string {
	text := "ResizePlaces{" + op.Coordinates + "}"
	if op.Nearest != "" {
		text += "{" + op.Nearest + "}"
	}
	return text
}

// Valid reports whether there are such modes.
func (op resizePlacesOp) Valid() bool {
	return slices.Contains(coordinateModes, op.Coordinates) && (op.Nearest == "" || slices.Contains(nearestModes, op.Nearest))
}

// Infer returns a vector of m elements.
func (op resizePlacesOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 3 {
		return nil, wrongCount(op, in, 3)
	}
	if !op.Valid() {
		return nil, opError(op, "there are no such modes")
	}
	s, err := sizesOf(op, 0, in[:2])
	if err != nil {
		return nil, err
	}
	if t := TypeOf(in[2]); t != ScalarType(array.Float64) {
		return nil, argError(op, 2, "is a %v, not a float64 scalar", t)
	}
	dtype := array.Float64
	if op.Nearest != "" {
		dtype = array.Int64
	}
	return one(spec{dtype: dtype, ndim: 1, shape: [array.MaxDims]int32{s.shape[1]}}.intern()), nil
}

// Compile computes the places one by one.
func (op resizePlacesOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		sizes, err := readSizes(op, &buf, in[:2])
		if err != nil {
			return err
		}
		n, m, scale := sizes[0], sizes[1], in[2].Float(0)
		if n == 0 && m > 0 {
			return fmt.Errorf("%w: %v: %d elements of none", ErrShape, op, m)
		}
		dtype := array.Float64
		if op.Nearest != "" {
			dtype = array.Int64
		}
		if err := ws.New(out[0], dtype, m); err != nil {
			return err
		}
		for i := range m {
			place := op.round(op.place(i, n, m, scale))
			if place = min(max(place, 0), float64(n-1)); place != place {
				place = 0 // a scale of 0 or NaN
			}
			if op.Nearest != "" {
				array.Slice[int64](out[0])[i] = int64(place)
			} else {
				array.Slice[float64](out[0])[i] = place
			}
		}
		return nil
	}, nil
}

// place returns where element i of m is among n.
func (op resizePlacesOp) place(i, n, m int, scale float64) float64 {
	switch op.Coordinates {
	case asymmetric:
		return float64(i) / scale
	case alignCorners:
		return float64(float64(i)*float64(n-1)) / float64(max(m-1, 1))
	case pytorchHalfPixel:
		if m == 1 {
			return 0
		}
	}
	return (float64(i)+0.5)/scale - 0.5
}

func (op resizePlacesOp) round(at float64) float64 {
	switch op.Nearest {
	case roundPreferFloor:
		return math.Ceil(at - 0.5)
	case roundPreferCeil:
		return math.Floor(at + 0.5)
	case nearestFloor:
		return math.Floor(at)
	case nearestCeil:
		return math.Ceil(at)
	}
	return at
}

// InferShape returns m.
func (op resizePlacesOp) InferShape(a *fgraph.Apply, _ *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{{a.Inputs()[1]}}
}

// InterpolateOp computes elements along the dimension Axis of x that lie between its elements: inputs x, of
// float32s or float64s, and a vector of float64s with the places of the elements. Element i is the sum of its
// two neighbours, weighted by how near they are. Places outside of x are those of its ends.
type InterpolateOp = interpolateOp

type interpolateOp struct{ Axis int8 }

func (op interpolateOp) String() string { return fmt.Sprintf("Interpolate{axis=%d}", op.Axis) }

// Infer returns the type of x with as many elements along the dimension as there are places.
func (op interpolateOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 2 {
		return nil, wrongCount(op, in, 2)
	}
	t, err := alongAxis(op, in[:1], op.Axis)
	if err != nil {
		return nil, err
	}
	if !t.DType().IsFloat() || t.DType().IsHalf() {
		return nil, argError(op, 0, "is a %v, not of float32s or float64s", t)
	}
	places := TypeOf(in[1])
	if places.NDim() != 1 || places.DType() != array.Float64 {
		return nil, argError(op, 1, "is a %v, not a vector of float64s", places)
	}
	s := t.h.Value()
	s.shape[op.Axis] = staticSize(places.Dim(0))
	return one(s.intern()), nil
}

// Compile implements Op.
func (op interpolateOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		shape := append(buf[:0], in[0].Shape()...)
		if n, m := shape[op.Axis], in[1].Len(); n == 0 && m > 0 {
			return fmt.Errorf("%w: %v: %d elements of none", ErrShape, op, m)
		}
		shape[op.Axis] = in[1].Len()
		if err := ws.New(out[0], in[0].DType(), shape...); err != nil {
			return err
		}
		return ws.Interpolate(out[0], in[0], in[1], int(op.Axis))
	}, nil
}

// InferShape implements ShapeInferer.
func (op interpolateOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x := a.Inputs()[0]
	dims := s.dims(x)
	dims[op.Axis] = s.Dim(a.Inputs()[1], 0)
	return [][]*fgraph.Variable{dims}
}

// Grad gives both neighbours their share, and places nothing.
func (op interpolateOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x, g, d := a.Inputs()[0], out[0], int(op.Axis)
	last := intMap(array.Sub, sizeOf(x, d), Int(1))
	at := Minimum(Maximum(a.Inputs()[1], Float(0)), Cast(last, array.Float64))
	left := Cast(at, array.Int64)
	share := asDim(Cast(Sub(at, left), TypeOf(x).DType()), d, TypeOf(x).NDim())
	give := func(to *fgraph.Variable, at, part *fgraph.Variable) *fgraph.Variable {
		return NewPart("interpolate", to, alongBy(d, ByTensor(at))...).Inc(Mul(g, part))
	}
	dx := give(ZerosLike(x), left, Sub(Number(1, share), share))
	return gradients(a, give(dx, Minimum(Add(left, Int(1)), last), share))
}

// Cost implements Coster.
func (op interpolateOp) Cost(a *fgraph.Apply) float64 {
	return callCost + float64(writeCost*bytes(a.Outputs())) + float64(poolElementCost*elements(a.Out()))
}
