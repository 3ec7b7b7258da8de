package nnet3pass

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/passes/nnet3pass/internal/noise"
)

// errNotEvaluated is the error for a graph whose values depend on more than its inputs.
var errNotEvaluated = errors.New("nnet3pass: the error of a computation that draws random numbers or keeps memos is not known")

// rowsMeasured is the number of rows that an output has at least, over all draws. A single
// row says little about others.
const rowsMeasured = 32

// An evaluator computes the outputs of a graph without a backward pass, on inputs drawn from the
// standard normal distribution, as often as it takes for rowsMeasured rows of each output.
type evaluator struct {
	g      *fgraph.FunctionGraph
	inputs [][]kernel.Matrix // by draw
	order  []*fgraph.Apply
	uses   []int32 // by number of a variable
	ws     component.Workspace
}

func newEvaluator(g *fgraph.FunctionGraph) (*evaluator, error) {
	e := &evaluator{g: g, uses: make([]int32, g.NumVariableIDs())}
	for a := range g.Ordered() {
		if op, ok := a.Op().(lower.Propagate); ok && (op.StoreStats || op.UsesMemo || op.InPlace || noise.Draws(op.C) || len(a.Outputs()) != 1) {
			return nil, errNotEvaluated
		}
		e.order = append(e.order, a)
		for _, v := range a.Inputs() {
			e.uses[v.ID()]++
		}
	}
	for _, v := range g.Inputs() {
		e.uses[v.ID()]++ // it stays
	}
	draws := 1
	for _, v := range g.Outputs() {
		e.uses[v.ID()]++
		if rows := int(lower.TypeOf(v).Rows); rows > 0 {
			draws = max(draws, (rowsMeasured+rows-1)/rows)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range draws {
		e.inputs = append(e.inputs, normalInputs(r, g))
	}
	return e, nil
}

// normalInputs returns random inputs.
func normalInputs(r *rand.Rand, g *fgraph.FunctionGraph) []kernel.Matrix {
	var inputs []kernel.Matrix
	for _, v := range g.Inputs() {
		t := lower.TypeOf(v)
		m := kernel.New(int(t.Rows), int(t.Cols))
		for i := range m.Data {
			m.Data[i] = float32(r.NormFloat64())
		}
		inputs = append(inputs, m)
	}
	return inputs
}

// outputs computes the outputs, those of all draws one below the other. precision returns the
// component that runs in place of another, and nil for that itself.
func (e *evaluator) outputs(ctx context.Context, precision func(lower.Component) component.Component) ([]kernel.Matrix, error) {
	if len(e.inputs) == 1 {
		return e.drawn(ctx, 0, precision)
	}
	outs := make([]kernel.Matrix, len(e.g.Outputs()))
	for n := range e.inputs {
		one, err := e.drawn(ctx, n, precision)
		if err != nil {
			return nil, err
		}
		for i, m := range one {
			if n == 0 {
				outs[i] = kernel.New(len(e.inputs)*m.Rows, m.Cols)
			}
			kernel.Copy(kernel.Rows(outs[i], n*m.Rows, m.Rows), m)
		}
	}
	return outs, nil
}

// drawn computes the outputs for the inputs of a draw.
func (e *evaluator) drawn(ctx context.Context, draw int, precision func(lower.Component) component.Component) ([]kernel.Matrix, error) {
	values := make([]kernel.Matrix, e.g.NumVariableIDs())
	left := append([]int32(nil), e.uses...)
	for i, v := range e.g.Inputs() {
		values[v.ID()] = e.inputs[draw][i]
	}
	for _, a := range e.order {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		in := lists.Map(a.Inputs(), func(v *fgraph.Variable) kernel.Matrix { return values[v.ID()] })
		out, err := e.apply(a, in, precision)
		if err != nil {
			return nil, err
		}
		values[a.Out().ID()] = out
		for _, v := range a.Inputs() {
			// A value is dropped after its last use. With all of them kept, a large chunk would
			// need the memory of every layer at once.
			if left[v.ID()]--; left[v.ID()] == 0 {
				values[v.ID()] = kernel.Matrix{}
			}
		}
	}
	return lists.Map(e.g.Outputs(), func(v *fgraph.Variable) kernel.Matrix { return values[v.ID()] }), nil
}

// apply computes the output of an apply.
func (e *evaluator) apply(a *fgraph.Apply, in []kernel.Matrix, precision func(lower.Component) component.Component) (kernel.Matrix, error) {
	t := lower.TypeOf(a.Out())
	if op, ok := a.Op().(lower.Block); ok {
		r := op.Rect
		return kernel.View(in[0], int(r.R0), int(r.Rows()), int(r.C0), int(r.Cols())), nil
	}
	out := kernel.New(int(t.Rows), int(t.Cols))
	switch op := a.Op().(type) {
	case lower.Fill:
		kernel.Fill(out, op.Value)
	case *lower.Assemble:
		assembleTerms(op, in, out)
	case *lower.RowRanges:
		kernel.AddRowRanges(out, 1, in[0], op.Ranges)
	case lower.Propagate:
		if n := op.InputAdded(); n >= 0 {
			kernel.Copy(out, in[n])
			in = in[:n]
		}
		var x kernel.Matrix
		if len(in) > 0 {
			x = in[0]
		}
		var pre component.Precomputed
		if op.Precomputed != nil {
			pre = op.Precomputed.Data
		}
		// The graph stays as it is. Which precision runs is decided per component here, so that one
		// graph serves all measurements.
		c := op.C
		if other := precision(op.Component); other != nil {
			c = other
		}
		_, err := component.Propagate(c, &e.ws, component.ForwardPass{Pre: pre, DropMemo: true}, x, out)
		return out, err
	default:
		return out, fmt.Errorf("%w (%v)", errNotEvaluated, a.Op())
	}
	return out, nil
}

// assembleTerms adds the terms of an assemble to zeros.
func assembleTerms(op *lower.Assemble, in []kernel.Matrix, out kernel.Matrix) {
	for i := range op.Terms {
		t := &op.Terms[i]
		src, dst := in[t.Input], kernel.Cols(out, int(t.DstCol), int(t.NumCols))
		src = kernel.Cols(src, int(t.SrcCol), int(t.NumCols))
		for k := range t.NumRows {
			p := t.Pair(k)
			kernel.AddVec(kernel.Row(dst, int(p.Dst)), t.Scale, kernel.Row(src, int(p.Src)))
		}
	}
}

// relativeErrors returns, for each output, the norm of the difference relative to the norm of want,
// where the mean of a row counts in neither: what matters is how the elements of a row differ. An
// output without such differences has an error of zero.
func relativeErrors(got, want []kernel.Matrix) []float64 {
	errs := make([]float64, len(want))
	for i := range want {
		diff, norm := 0.0, 0.0
		d := make([]float64, want[i].Cols)
		for r := range want[i].Rows {
			w, v := kernel.Row(want[i], r), kernel.Row(got[i], r)
			for j := range w {
				d[j] = float64(v[j]) - float64(w[j])
			}
			diff += noise.Spread(d)
			for j := range w {
				d[j] = float64(w[j])
			}
			norm += noise.Spread(d)
		}
		if norm > 0 {
			errs[i] = math.Sqrt(diff / norm)
		}
	}
	return errs
}
