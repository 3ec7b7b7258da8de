package backend

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

// ErrDiffers means that an output is another one than it should be.
var ErrDiffers = errors.New("differs")

// The tolerances of ONNX's own runner for an element, and the part of the norm by which a tensor of
// floats may be off instead: tiny elements of a large tensor are differences of large numbers.
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
func elemOf(f *session.Function, name string) onnx.DataType {
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
	return distance(got, want.Value)
}

// distance compares arrays of one shape. Elements that are NaN or infinite in both don't differ.
func distance(got, want *array.Array) difference {
	if got.DType() == array.String {
		if !array.Equal(got, want) {
			return difference{err: fmt.Errorf("%w: it is %v, and should be %v", ErrDiffers, got, want)}
		}
		return difference{known: true}
	}
	off, norm := 0.0, 0.0
	first := -1
	for i := range got.Len() {
		x, y := got.Float(i), want.Float(i)
		if x == y && math.IsInf(x, 0) || x != x && y != y {
			continue
		}
		d := math.Abs(x - y)
		off, norm = off+float64(d*d), norm+float64(y*y)
		// Negated, so that NaN on one side only is a difference.
		if rest := d - (absolute + float64(relative*math.Abs(y))); first < 0 && !(rest <= 0) {
			first = i
		}
	}
	var r difference
	switch {
	case off == 0:
		r.known = true
	case norm > 0:
		r.relative = math.Sqrt(off / norm)
		r.known = !math.IsNaN(r.relative) && !math.IsInf(r.relative, 0)
	}
	if !r.known {
		r.relative = 0
	}
	// Only floats are rounded.
	if first >= 0 && !(got.DType().IsFloat() && r.known && r.relative <= ofNorm) {
		r.err = fmt.Errorf("%w: element %d is %g, and should be %g", ErrDiffers, first, got.Float(first), want.Float(first))
	}
	return r
}
