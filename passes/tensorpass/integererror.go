package tensorpass

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// defaultError is what products of integers may change unless the setting says otherwise: as much as
// bound_quantization_error lets them change networks.
const defaultError = 0.08

// limitIntegerError returns the pass limit_integer_error: products of integers that change the outputs
// most get more bits, until the error is small enough. The graph is computed on random inputs: with
// float32s, with all products of integers and, if that changes too much, with one of them at a time.
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
		Doc: "the largest error of an output, relative to its norm (without the mean of each row); 0 is no limit",
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
			list = append(list, &noisyProduct{weighted: p, to: p.precision(), cost: tensor.Cost(a)})
		}
	}
	if len(list) == 0 {
		return nil
	}
	l := &limiting{t: newTrial(h.Graph(), list), most: most, list: list}
	total, err := l.lower(ctx)
	if err != nil || l.t.failed {
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
	to     kernel.Precision // wanted
	cost   float64
	errors []float64 // by output, in the wanted precision
}

// limiting chooses precisions.
type limiting struct {
	t    *trial
	most float64
	list []*noisyProduct
}

// lower gives products more bits until the error is at most what it may be, and returns it.
func (l *limiting) lower(ctx context.Context) (total float64, err error) {
	everything := func(p *noisyProduct) kernel.Precision { return p.to }
	errors, err := l.t.errors(ctx, everything)
	if err != nil || largest(errors) <= l.most {
		return largest(errors), err
	}
	for _, p := range l.list {
		if p.errors, err = l.t.errors(ctx, func(q *noisyProduct) kernel.Precision {
			if q == p {
				return p.to
			}
			return kernel.Float32
		}); err != nil {
			return 0, err
		}
	}
	// Estimate and measure in turns. Errors of products add up as squares, if not exactly: so what the
	// estimate is off is made up for.
	for total = largest(errors); total > l.most; total = largest(errors) {
		excess := max(total/l.sum(), 1)
		if !l.raise() {
			break
		}
		for float64(l.sum()*excess) > l.most && l.raise() {
		}
		if errors, err = l.t.errors(ctx, everything); err != nil {
			return 0, err
		}
	}
	return total, nil
}

// worst returns the output with the largest sum of squares, and the sum.
func (l *limiting) worst() (output int, squares float64) {
	for i := range l.list[0].errors {
		sum := 0.0
		for _, p := range l.list {
			sum += float64(p.errors[i] * p.errors[i])
		}
		if sum > squares {
			output, squares = i, sum
		}
	}
	return output, squares
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
	if _, _, ok := kernel.QuantizationSteps(kernel.Int16, best.matrix()); best.to == kernel.Int8 && ok {
		best.to = kernel.Int16
	} else {
		best.to, less = kernel.Float32, 0
	}
	for i := range best.errors {
		best.errors[i] *= less
	}
	return true
}

func largest(list []float64) float64 {
	most := 0.0
	for _, v := range list {
		most = max(most, v)
	}
	return most
}

// differences returns the norm of the difference of each output of floats, relative to that of want, where
// the mean of a row, along the last dimension, counts in neither: what matters is how its elements
// differ. Sums are those of several draws. What is infinite or NaN does not count.
type differences struct{ diff, norm []float64 }

func (d *differences) add(got, want []*array.Array) {
	if d.diff == nil {
		d.diff, d.norm = make([]float64, len(want)), make([]float64, len(want))
	}
	for i, w := range want {
		if !w.DType().IsFloat() || !array.SameShape(got[i], w) || w.IsCSR() {
			continue
		}
		cols := 1
		if n := w.NDim(); n > 0 {
			cols = max(w.Dim(n-1), 1)
		}
		for at := 0; at < w.Len(); at += cols {
			diff := spread(cols, func(j int) float64 { return got[i].Float(at+j) - w.Float(at+j) })
			norm := spread(cols, func(j int) float64 { return w.Float(at + j) })
			if finite := float64(diff*0) + float64(norm*0); finite == 0 {
				d.diff[i] += diff
				d.norm[i] += norm
			}
		}
	}
}

// spread returns the sum of the squares of what numbers differ from their mean, or of the one that there
// is.
func spread(n int, v func(int) float64) float64 {
	mean, sum := 0.0, 0.0
	if n > 1 {
		for j := range n {
			mean += v(j)
		}
		mean /= float64(n)
	}
	for j := range n {
		x := v(j) - mean
		sum += float64(x * x)
	}
	return sum
}

func (d *differences) relative() []float64 {
	list := make([]float64, len(d.diff))
	for i := range list {
		if d.norm[i] > 0 {
			list[i] = math.Sqrt(d.diff[i] / d.norm[i])
		}
	}
	return list
}
