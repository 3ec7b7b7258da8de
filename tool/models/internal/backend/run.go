package backend

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Result says how a case went.
type Result struct {
	Case  string `json:"case"`
	Query string `json:"query"`
	OK    bool   `json:"ok"`
	// MaxRelDiff is the largest difference of an output, as part of its norm. It is missing if an
	// output has no such difference: it was not computed, has another shape, or infinite elements in
	// other places.
	MaxRelDiff *float64 `json:"max_rel_diff,omitempty"`
	Error      string   `json:"error,omitempty"`

	Sets    int `json:"sets"`    // data sets
	Applies int `json:"applies"` // of the graph of tensors that ran last
	// Integers is how many products there multiply integers in place of floats, see tensor.IntegersOp, or floats and codes.
	Integers int `json:"integers,omitempty"`

	LowerSeconds float64 `json:"lower_seconds"` // to make and optimize the graphs
	RunSeconds   float64 `json:"run_seconds"`   // to run them once

	// Err is what Error says.
	Err error `json:"-"`
}

// Run computes all data sets of a case and compares the outputs. The query is that of the optimizer in o,
// for the result.
func (c *Case) Run(ctx context.Context, query string, o session.Options) *Result {
	r := &Result{Case: c.Name, Query: query, Sets: len(c.Sets)}
	worst := 0.0
	known := true
	o.Dir, o.LeaveOut = c.Dir, true
	runs := session.New(c.Model, o)
	var made []*session.Function
	for _, s := range c.Sets {
		start := time.Now()
		f, got, err := runs.Run(ctx, s.Inputs)
		if err != nil {
			return r.fail(fmt.Errorf("%s: %w", s.Name, err))
		}
		took := time.Since(start)
		// A run makes a function where there is none for its shapes. That time is not one of computing.
		if !slices.Contains(made, f) {
			made = append(made, f)
			took -= f.LowerTime()
			r.LowerSeconds += f.LowerTime().Seconds()
		}
		r.RunSeconds += took.Seconds()
		r.Applies, r.Integers = f.Graph().NumApplies(), integersIn(f)
		if err := c.tooMany(f, s.Outputs); err != nil && r.Err == nil {
			_ = r.fail(fmt.Errorf("%s: %w", s.Name, err))
		}
		for _, want := range s.Outputs {
			d := compare(got[want.Name], elemOf(f, want.Name), want)
			worst, known = max(worst, d.relative), known && d.known
			if d.err != nil && r.Err == nil {
				_ = r.fail(fmt.Errorf("%s: output %s: %w", s.Name, want.Name, d.err))
			}
		}
	}
	if known {
		r.MaxRelDiff = &worst
	}
	r.OK = r.Err == nil
	return r
}

// Failed returns the result of a case that can't be read.
func Failed(dir, query string, err error) *Result {
	r := &Result{Case: nameOf(dir), Query: query}
	return r.fail(err)
}

func (r *Result) fail(err error) *Result {
	r.Err, r.Error = err, err.Error()
	return r
}

// integersIn returns how many products of a function multiply integers in place of floats, or floats and codes.
func integersIn(f *session.Function) (n int) {
	for a := range f.Graph().Applies() {
		op := a.Op()
		if e, ok := op.(*tensor.EpilogueOp); ok {
			op = e.Base()
		}
		switch op.(type) {
		case tensor.IntegersOp, tensor.BlockMatmulOp:
			n++
		}
	}
	return n
}

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
