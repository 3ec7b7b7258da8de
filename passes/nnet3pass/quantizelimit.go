package nnet3pass

import (
	"context"
	"math"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// limitQuantizationError raises the precision of quantized products until the error that they make
// at the outputs is small enough. It computes the outputs on random inputs: in float32, with the
// products of one component quantized, for each of them, and with all. The errors of components add
// up as squares.
func limitQuantizationError(most float64) errorLimit {
	return newErrorLimit(most, 0, "limit_quantization_error",
		"the quantized products that add most to the error of the outputs get 16 bits, or stay in float32, until the error is at most the setting error, as measured for the rows of the request, so requests may differ in what is chosen",
		"the largest error of an output, relative to its norm (without the mean of each row); 0 is no limit",
		limitQuantizationError, func(ctx context.Context, h *rewrite.Handle) error { return limitError(ctx, h, most) })
}

// A quantizedGroup is the quantized products of one component.
type quantizedGroup struct {
	of        lower.Component
	product   *component.Product // in the present precision
	float     *component.Product
	precision kernel.Precision // wanted
	errors    []float64        // by output, in the wanted precision
}

// limitError is the pass.
func limitError(ctx context.Context, h *rewrite.Handle, most float64) error {
	if most == 0 {
		return nil
	}
	groups := quantizedGroups(h.Graph())
	if len(groups) == 0 {
		return nil
	}
	m, err := measureGroups(ctx, h.Graph(), groups)
	if err != nil {
		return err
	}
	total, err := m.all(ctx)
	// Estimate and measure in turns. To measure takes a run of the network, so between two runs
	// raise as many as the estimate says, corrected by how far it was off the last time.
	for err == nil && total > most {
		// The errors of components may not add up as squares exactly.
		excess := max(total/m.sum(), 1)
		if !m.raiseWorst() {
			break
		}
		for m.sum()*excess > most && m.raiseWorst() {
		}
		total, err = m.all(ctx)
	}
	if err != nil {
		return err
	}
	h.Recorder().Set("output_error", percent(total), "%")
	return m.change(ctx, h)
}

// quantizedGroups returns the quantized products of a graph by component, in order of the applies.
func quantizedGroups(g *fgraph.FunctionGraph) []*quantizedGroup {
	var groups []*quantizedGroup
	seen := map[lower.Component]bool{}
	for _, a := range productsOf(g) {
		op := a.Op().(lower.Propagate)
		p, ok := op.C.(*component.Product)
		if !ok || p.Precision() == kernel.Float32 || seen[op.Component] {
			continue
		}
		seen[op.Component] = true
		float, _ := p.Quantized(kernel.Float32)
		groups = append(groups, &quantizedGroup{of: op.Component, product: p, float: float, precision: p.Precision()})
	}
	return groups
}

// measuredGroups are groups with their errors.
type measuredGroups struct {
	groups []*quantizedGroup
	number map[lower.Component]*quantizedGroup
	e      *evaluator
	exact  []kernel.Matrix // the outputs in float32
}

// measureGroups computes the error that each group makes by itself.
func measureGroups(ctx context.Context, g *fgraph.FunctionGraph, groups []*quantizedGroup) (*measuredGroups, error) {
	e, err := newEvaluator(g)
	if err != nil {
		return nil, err
	}
	m := &measuredGroups{groups: groups, e: e, number: map[lower.Component]*quantizedGroup{}}
	for _, q := range groups {
		m.number[q.of] = q
		// Packed once, since every group runs in every measurement.
		q.float.Prepare()
		q.product.Prepare()
	}
	if m.exact, err = m.outputs(ctx, func(*quantizedGroup) bool { return false }); err != nil {
		return nil, err
	}
	for _, q := range groups {
		outs, err := m.outputs(ctx, func(other *quantizedGroup) bool { return other == q })
		if err != nil {
			return nil, err
		}
		q.errors = relativeErrors(outs, m.exact)
	}
	return m, nil
}

// outputs computes the outputs with some groups quantized.
func (m *measuredGroups) outputs(ctx context.Context, quantized func(*quantizedGroup) bool) ([]kernel.Matrix, error) {
	return m.e.outputs(ctx, func(c lower.Component) component.Component {
		q := m.number[c]
		switch {
		case q == nil:
			return nil
		case quantized(q):
			return q.product
		}
		return q.float
	})
}

// all returns the largest error of an output with all groups in the wanted precision.
func (m *measuredGroups) all(ctx context.Context) (float64, error) {
	outs, err := m.outputs(ctx, func(q *quantizedGroup) bool { return q.precision != kernel.Float32 })
	if err != nil {
		return 0, err
	}
	worst := 0.0
	for _, e := range relativeErrors(outs, m.exact) {
		worst = max(worst, e)
	}
	return worst, nil
}

// worstOutput returns the output with the largest sum of squares, and the sum.
func (m *measuredGroups) worstOutput() (output int, squares float64) {
	for i := range m.exact {
		sum := 0.0
		for _, q := range m.groups {
			sum += float64(q.errors[i] * q.errors[i])
		}
		if sum > squares {
			output, squares = i, sum
		}
	}
	return output, squares
}

// sum returns the estimate of the largest error of an output.
func (m *measuredGroups) sum() float64 {
	_, squares := m.worstOutput()
	return math.Sqrt(squares)
}

// raiseWorst raises the group that adds most to the worst output. It reports false if no group adds
// anything.
func (m *measuredGroups) raiseWorst() bool {
	output, squares := m.worstOutput()
	if squares == 0 {
		return false
	}
	worst := m.groups[0]
	for _, q := range m.groups {
		if q.errors[output] > worst.errors[output] {
			worst = q
		}
	}
	less := 0.0
	// One step at a time: 8 bits, 16 bits, float32. The error after a step is not measured but
	// scaled as the expected errors are.
	if finer, ok := worst.product.Quantized(kernel.Int16); ok && worst.precision == kernel.Int8 {
		less = finer.ExpectedError() / worst.product.ExpectedError()
		worst.precision, worst.product = kernel.Int16, finer
		finer.Prepare()
	} else {
		worst.precision, worst.product = kernel.Float32, worst.float
	}
	for i := range worst.errors {
		worst.errors[i] *= less
	}
	return true
}

// change changes the products to the wanted precisions.
func (m *measuredGroups) change(ctx context.Context, h *rewrite.Handle) error {
	q := quantizer{h: h, made: map[lower.Component]lower.Component{}}
	for _, a := range productsOf(h.Graph()) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		op := a.Op().(lower.Propagate)
		g := m.number[op.Component]
		if g == nil || op.C.(*component.Product).Precision() == g.precision {
			continue
		}
		if err := q.change(a, op.C.(*component.Product), g.precision); err != nil {
			return err
		}
	}
	return nil
}
