package backend

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/tensor"
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
