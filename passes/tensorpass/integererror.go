package tensorpass

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// defaultError is what products of integers may change unless the setting says otherwise: as much as
// bound_quantization_error lets them change networks.
const defaultError = 0.08

// limitIntegerError returns the pass limit_integer_error: products of integers that change the outputs
// most get more bits, until the error is small enough. The graph is computed on random inputs: with
// float32s, with integers and, if that changes too much, with both side by side, to learn what each product
// adds.
func limitIntegerError(most float64) errorLimit {
	return errorLimit{most: most, Global: rewrite.Global{
		Name: "limit_integer_error",
		Doc: "the products of integers that save most error for their time get 16 bits, or float32s again, until the error of the outputs is at most the setting error, as measured on random inputs; " +
			"a graph that can't be computed on those stays as it is",
		Fn: func(ctx context.Context, h *rewrite.Handle) error { return limitErrorOf(ctx, h, most) },
	}}
}

// An errorLimit is limit_integer_error with a limit.
type errorLimit struct {
	rewrite.Global
	most float64
}

// Settings returns error.
func (p errorLimit) Settings() []rewrite.Setting {
	text := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	return []rewrite.Setting{{
		Name: "error", Value: text(p.most), Default: text(defaultError),
		Doc: "the largest error of an output, relative to its norm, with and without the mean of each row; 0 is no limit",
	}}
}

// Configured returns the pass with another limit.
func (p errorLimit) Configured(_, value string) (rewrite.Configurable, error) {
	most, err := strconv.ParseFloat(value, 64)
	if err != nil || !(most >= 0) || math.IsInf(most, 0) {
		return nil, fmt.Errorf("%q is not a number of at least 0", value)
	}
	return limitIntegerError(most), nil
}

// limitErrorOf is the pass.
func limitErrorOf(ctx context.Context, h *rewrite.Handle, most float64) error {
	if most == 0 {
		return nil
	}
	var list []*noisyProduct
	for a := range h.Graph().Ordered() {
		if p := weightedOf(a); p != nil && p.precision() != kernel.Float32 {
			list = append(list, &noisyProduct{weighted: p, to: p.precision(), cost: tensor.Cost(a), number: len(list)})
		}
	}
	if len(list) == 0 {
		return nil
	}
	total, err := 0.0, error(nil)
	l := &limiting{most: most, list: list}
	if l.t, err = newTrial(h.Graph(), list); err == nil {
		total, err = l.lower(ctx)
	}
	if err != nil {
		// The trial is no part of the computation: if its inputs are not what the graph is for, that is no
		// fault of the graph.
		return context.Cause(ctx)
	}
	h.Recorder().Set("output_error", math.Round(1e5*total)/1e3, "%")
	for _, p := range list {
		if p.to != p.precision() {
			if err := p.change(h, p.to); err != nil {
				return err
			}
		}
	}
	return nil
}

// A noisyProduct is a product of integers, with what it adds to the outputs.
type noisyProduct struct {
	*weighted
	number int              // in the list
	to     kernel.Precision // wanted
	cost   float64
	errors []float64 // by compared variable, in the wanted precision
}

// limiting chooses precisions.
type limiting struct {
	t    *trial
	most float64
	list []*noisyProduct
}

// lower gives products more bits until the error is at most l.most, and returns the error.
func (l *limiting) lower(ctx context.Context) (total float64, err error) {
	if err := l.t.prepare(ctx); err != nil {
		return 0, err
	}
	e := newEstimate(l.t)
	var before *world
	for draw := range l.t.draws {
		w, err := l.t.call(ctx, before, draw)
		if err != nil {
			return 0, err
		}
		// More bits make no error larger, so those of the draws before stay small enough.
		for e.error(draw, w) > l.most {
			raised, err := l.lessen(ctx, e, draw, e.error(draw, w))
			if err != nil {
				return 0, err
			}
			if !raised {
				break
			}
			if w, err = l.t.again(ctx, draw); err != nil {
				return 0, err
			}
		}
		total, before = max(total, e.error(draw, w)), w
	}
	return total, nil
}

// lessen gives products more bits that make the error of a draw, which is at, smaller. It reports false if
// none does. Errors of products add up as squares, if not exactly: so what the sum is off is made up for.
// As long as they are large they don't add up at all, and are lessened in steps.
func (l *limiting) lessen(ctx context.Context, e *estimate, draw int, at float64) (raised bool, err error) {
	if err := l.share(ctx, e, draw); err != nil {
		return false, err
	}
	excess, target := max(at/l.sum(), 1), max(l.most, at/mostStep)
	for float64(l.sum()*excess) > target && l.raise() {
		raised = true
	}
	return raised, nil
}

// mostStep is how many times smaller an error is made before it is shared out again.
const mostStep = 4

// share finds what each product adds to the error of a draw.
func (l *limiting) share(ctx context.Context, e *estimate, draw int) error {
	squares, err := l.t.shares(ctx, len(l.list), draw)
	if err != nil {
		return err
	}
	for k, p := range l.list {
		p.errors = make([]float64, len(squares))
		for i, s := range squares {
			if s != nil {
				p.errors[i] = e.relative(draw, i, s[k])
			}
		}
	}
	return nil
}

// worst returns the compared variable with the largest sum of squares, and the sum.
func (l *limiting) worst() (seen int, squares float64) {
	for i := range l.list[0].errors {
		sum := 0.0
		for _, p := range l.list {
			sum += float64(p.errors[i] * p.errors[i])
		}
		if sum > squares {
			seen, squares = i, sum
		}
	}
	return seen, squares
}

// sum returns the estimate of the largest error of an output.
func (l *limiting) sum() float64 {
	_, squares := l.worst()
	return math.Sqrt(squares)
}

// finer is the error of a product in 16 bits, relative to that in 8: both factors have about 32 and 128
// times as many levels.
const finer = 1.0 / 32

// raise gives more bits to the product that adds most to the worst output for its time. It reports false
// if no product adds anything.
func (l *limiting) raise() bool {
	output, squares := l.worst()
	if squares == 0 {
		return false
	}
	var best *noisyProduct
	highest := 0.0
	for _, p := range l.list {
		if gain := float64(p.errors[output]*p.errors[output]) / p.cost; gain > highest || math.IsInf(gain, 1) {
			best, highest = p, gain
		}
	}
	if best == nil {
		return false
	}
	less := finer
	if best.to == kernel.Int8 && best.fits(kernel.Int16) {
		best.to = kernel.Int16
	} else {
		best.to, less = kernel.Float32, 0
	}
	for i := range best.errors {
		best.errors[i] *= less
	}
	return true
}
