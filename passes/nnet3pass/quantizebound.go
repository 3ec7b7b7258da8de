package nnet3pass

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/passes/nnet3pass/internal/noise"
	"github.com/nnopt/nnopt/rewrite"
)

// An errorLimit is a pass with a limit of an error, its setting error; 0 is no limit.
type errorLimit struct {
	rewrite.Global
	setting rewrite.Setting
	with    func(most float64) errorLimit
}

// newErrorLimit returns a pass with a limit. what says what the limit is of.
func newErrorLimit(most, byDefault float64, name, doc, what string, with func(most float64) errorLimit, fn func(ctx context.Context, h *rewrite.Handle) error) errorLimit {
	text := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	return errorLimit{Global: rewrite.Global{Name: name, Doc: doc, Fn: fn}, with: with, setting: rewrite.Setting{
		Name: "error", Value: text(most), Default: text(byDefault), Doc: what,
	}}
}

// Settings returns error.
func (p errorLimit) Settings() []rewrite.Setting { return []rewrite.Setting{p.setting} }

// Configured returns the pass with another limit.
func (p errorLimit) Configured(_, value string) (rewrite.Configurable, error) {
	most, err := strconv.ParseFloat(value, 64)
	if err != nil || !(most >= 0) || math.IsInf(most, 0) {
		return nil, fmt.Errorf("%q is not a number of at least 0", value)
	}
	return p.with(most), nil
}

// boundQuantizationError raises the precision of products until the error that a noise.Estimate
// gives for the outputs of the network is small enough.
func boundQuantizationError(most float64, known *noise.Known) errorLimit {
	return newErrorLimit(most, defaultBound, "bound_quantization_error",
		"the products in 8 bits that save most error for their time get 16 bits, until the error of the outputs that the parameters alone let expect is at most the setting error",
		"the largest estimate of the error of an output, relative to its norm (without the mean of each row); 0 is no bound",
		func(most float64) errorLimit { return boundQuantizationError(most, known) },
		func(ctx context.Context, h *rewrite.Handle) error { return boundError(ctx, h, most, known) })
}

// defaultBound is the bound unless the setting says otherwise. With it, the best class of
// tdnnf_swbd stays the same in 96.5 to 100 of 100 clear rows, at 0.40 of the time of float32; with
// all products in 8 bits in 95 to 100, at 0.38 (six sets of random parameters, November 2026).
const defaultBound = 0.08

// boundError is the pass.
func boundError(ctx context.Context, h *rewrite.Handle, most float64, known *noise.Known) error {
	program, ok := lower.ProgramOf(h.Graph())
	if most == 0 || !ok {
		return nil
	}
	net, ok := program.Network.(*nnet3.Nnet)
	groups := quantizedGroups(h.Graph())
	if !ok || !slices.ContainsFunc(groups, func(g *quantizedGroup) bool { return g.precision == kernel.Int8 }) {
		return nil
	}
	b, worst := newNoiseBound(net, known.Of(net), groups), 0.0
	for _, port := range program.Outputs {
		// What is carried to the next chunk of a stream is a node of the loop, not of the network.
		if port.Carried == 0 && port.Node >= 0 && net.IsOutputNode(int(port.Node)) {
			worst = max(worst, b.raise(int(port.Node), most*most))
		}
	}
	h.Recorder().Set("estimated_output_error", percent(math.Sqrt(worst)), "%")
	m := measuredGroups{number: map[lower.Component]*quantizedGroup{}}
	for _, g := range groups {
		if n, ok := b.number[g.product.Base()]; ok && g.precision == kernel.Int8 {
			g.precision = b.precision[n]
		}
		m.number[g.of] = g
	}
	return m.change(ctx, h)
}

// A noiseBound chooses the precisions of products.
type noiseBound struct {
	noise.Network
	number    map[component.Component]int // of a product, by its component
	precision []kernel.Precision
}

// newNoiseBound begins with the precisions of the groups.
func newNoiseBound(net *nnet3.Nnet, network noise.Network, groups []*quantizedGroup) *noiseBound {
	b := &noiseBound{Network: network, number: map[component.Component]int{}, precision: make([]kernel.Precision, len(network.Products))}
	for n, p := range b.Products {
		b.number[net.Components[p.Component]] = n
	}
	for _, g := range groups {
		// A component may run in several forms, such as split ones. The coarsest counts.
		if n, ok := b.number[g.product.Base()]; ok && (b.precision[n] == kernel.Float32 || g.precision < b.precision[n]) {
			b.precision[n] = g.precision
		}
	}
	return b
}

// raise gives products 16 bits until the mean square of the noise of an output node is at most
// most, or none is left in 8 bits. It returns what the mean square is then.
func (b *noiseBound) raise(node int, most float64) float64 {
	share := b.Shares[node]
	sum, saved := 0.0, make([]float64, len(share))
	for n, s := range share {
		finer := float64(s * b.Products[n].Finer)
		saved[n] = s - finer
		switch b.precision[n] {
		case kernel.Int8:
			sum += s
		case kernel.Int16:
			sum += finer
		}
	}
	// Greedy by gain for cost, as for a knapsack. The noise of products is independent, so mean
	// squares add up, and raising one leaves the shares of the others as they are.
	for sum > most {
		best, highest := -1, 0.0
		for n, s := range saved {
			if gain := s / b.Products[n].Cost; b.precision[n] == kernel.Int8 && gain > highest {
				best, highest = n, gain
			}
		}
		if best < 0 {
			break
		}
		b.precision[best] = kernel.Int16
		sum -= saved[best]
	}
	return sum
}
