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
	// Coordinates says where the elements of the result are in x. The zero value is half_pixel.
	Coordinates CoordinateMode
	// Nearest says which element is the nearest one. The zero value is round_prefer_floor.
	Nearest NearestMode
}

// A CoordinateMode maps element i of m elements to a place among n elements; scale is m/n unless it
// was given.
type CoordinateMode string

// The coordinates.
const (
	HalfPixel        CoordinateMode = "half_pixel"         // (i + ½)/scale - ½
	PytorchHalfPixel CoordinateMode = "pytorch_half_pixel" // the same, but 0 if m is 1
	AlignCorners     CoordinateMode = "align_corners"      // i·(n-1)/(m-1), 0 if m is 1
	Asymmetric       CoordinateMode = "asymmetric"         // i/scale
)

// A NearestMode rounds a place.
type NearestMode string

// The ways to round.
const (
	RoundPreferFloor NearestMode = "round_prefer_floor" // ½ down
	RoundPreferCeil  NearestMode = "round_prefer_ceil"  // ½ up
	NearestFloor     NearestMode = "floor"
	NearestCeil      NearestMode = "ceil"
)

var (
	coordinateModes = []CoordinateMode{HalfPixel, PytorchHalfPixel, AlignCorners, Asymmetric}
	nearestModes    = []NearestMode{RoundPreferFloor, RoundPreferCeil, NearestFloor, NearestCeil}
)

// checked returns the options with modes, for a tensor of n dimensions.
func (o ResizeOptions) checked(name string, x *fgraph.Variable, n int) ResizeOptions {
	if o.Coordinates == "" {
		o.Coordinates = HalfPixel
	}
	if o.Nearest == "" {
		o.Nearest = RoundPreferFloor
	}
	if !slices.Contains(coordinateModes, o.Coordinates) {
		fail(name, "there are no coordinates %q; there are %v", string(o.Coordinates), coordinateModes)
	}
	if !slices.Contains(nearestModes, o.Nearest) {
		fail(name, "there is no way %q to round; there are %v", string(o.Nearest), nearestModes)
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
	case Asymmetric:
		return o.Nearest == NearestFloor
	case HalfPixel: // less than half an element away from the one that is repeated
		return o.Nearest == RoundPreferFloor || o.Nearest == RoundPreferCeil
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
	Coordinates CoordinateMode
	Nearest     NearestMode
}

// String returns for example ResizePlaces{half_pixel}{floor}.
func (op resizePlacesOp) String() string {
	text := "ResizePlaces{" + string(op.Coordinates) + "}"
	if op.Nearest != "" {
		text += "{" + string(op.Nearest) + "}"
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
	case Asymmetric:
		return float64(i) / scale
	case AlignCorners:
		return float64(float64(i)*float64(n-1)) / float64(max(m-1, 1))
	case PytorchHalfPixel:
		if m == 1 {
			return 0
		}
	}
	return (float64(i)+0.5)/scale - 0.5
}

func (op resizePlacesOp) round(at float64) float64 {
	switch op.Nearest {
	case RoundPreferFloor:
		return math.Ceil(at - 0.5)
	case RoundPreferCeil:
		return math.Floor(at + 0.5)
	case NearestFloor:
		return math.Floor(at)
	case NearestCeil:
		return math.Ceil(at)
	}
	return at
}

// InferShape returns m.
func (op resizePlacesOp) InferShape(a *fgraph.Apply, _ *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{{a.Inputs()[1]}}
}
