package backend

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// ErrDiffers means that an output is another one than it should be.
var ErrDiffers = errors.New("differs")

// The tolerances of ONNX's own runner, and the part of the norm by which the elements of a large
// tensor may be off together, where tiny ones are differences of large ones.
const (
	relative = 1e-3
	absolute = 1e-7
	ofNorm   = 1e-4
)

// A difference is how far an output is from what it should be.
type difference struct {
	relative float64 // norm of the difference by norm of what it should be
	known    bool    // whether there is such a number
	err      error   // an ErrDiffers
}

// elemOf returns the type of the elements of an output.
func elemOf(f *lower.Function, name string) onnx.DataType {
	for _, o := range f.Outputs() {
		if o.Name == name {
			return o.Elem
		}
	}
	return onnx.Undefined
}

// compare compares an output, whose elements are of a type in the model, with what it should be.
func compare(got *array.Array, elem onnx.DataType, want Output) difference {
	switch {
	case got == nil:
		return difference{err: fmt.Errorf("%w: the model has no such output", ErrDiffers)}
	case elem != want.Elem || !slices.Equal(got.Shape(), want.Value.Shape()):
		return difference{err: fmt.Errorf("%w: %v %v, and should be %v %v", ErrDiffers, elem, got.Shape(), want.Elem, want.Value.Shape())}
	}
	d := distance(got, want.Value)
	// Only floats are rounded.
	if got.DType().IsFloat() && d.known && d.relative <= ofNorm {
		return d
	}
	for i := range got.Len() {
		x, y := got.Float(i), want.Value.Float(i)
		if !near(x, y) {
			d.err = fmt.Errorf("%w: element %d is %g, and should be %g", ErrDiffers, i, x, y)
			break
		}
	}
	return d
}

func near(x, y float64) bool {
	return x == y || x != x && y != y || math.Abs(x-y) <= absolute+relative*math.Abs(y)
}

// distance returns the difference in norm. Elements that are NaN or infinite in both have none.
func distance(got, want *array.Array) difference {
	off, norm := 0.0, 0.0
	for i := range got.Len() {
		x, y := got.Float(i), want.Float(i)
		if x == y && math.IsInf(x, 0) || x != x && y != y {
			continue
		}
		off, norm = off+float64((x-y)*(x-y)), norm+float64(y*y)
	}
	switch r := math.Sqrt(off / norm); {
	case off == 0:
		return difference{known: true}
	case norm == 0 || math.IsNaN(r) || math.IsInf(r, 0):
		return difference{}
	default:
		return difference{relative: r, known: true}
	}
}
