package networks

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/tool"
)

// A scorer is a decodable.Scorer or, for --looped, a decodable.Streamer.
type scorer interface {
	FramesPerChunk() int
	IvectorDim() int
	RunRows(context.Context, iter.Seq2[decodable.Utterance, error], func(decodable.Utterance, *decodable.Rows) error, decodable.RunOptions) (decodable.Summary, error)
}

// scorer reads the model and prepares it.
func (f *runFlags) scorer(ctx context.Context, c *tool.Console, report *runReport) (scorer, error) {
	query, opt, err := f.passes.BuildFor(f.options.vocabulary())
	if err != nil {
		return nil, err
	}
	report.Query, f.Options.Optimizer = query, opt
	am, err := f.options.model(c, opener(ctx, c, f.AllowPipes), f.model, decodable.Pack)
	if err != nil {
		return nil, err
	}
	if err := f.setPriors(c, am); err != nil {
		return nil, err
	}
	nn, err := am.Nnet.For("output")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.model, err)
	}
	scorer, err := f.scorerOf(ctx, nn)
	if errors.Is(err, decodable.ErrOptions) {
		return nil, tool.Usagef("%w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.model, err)
	}
	report.LackingStats = warnOfStats(c, f.model, nn)
	if f.Looped {
		warnOfFuture(c, f.model, nn, f.Options.FrameSubsampling)
	}
	if n := scorer.FramesPerChunk(); n != f.Options.FramesPerChunk {
		c.Say("a chunk has %d frames instead of %d, a multiple of --frame-subsampling-factor and of the network's modulus", n, f.Options.FramesPerChunk)
	}
	return scorer, f.checkIvectors(c, scorer.IvectorDim())
}

// scorerOf returns the scorer for a network.
func (f *runFlags) scorerOf(ctx context.Context, nn *nnet3.Nnet) (scorer, error) {
	if !f.Looped {
		return decodable.New(nn, f.Options)
	}
	s, err := decodable.NewStreamer(ctx, nn, f.Options)
	if errors.Is(err, compile.ErrUnbounded) {
		err = fmt.Errorf("%w (without --looped it can be scored)", err)
	}
	return s, err
}

// setPriors takes the priors from the model, for --use-priors.
func (f *runFlags) setPriors(c *tool.Console, am *nnet3.AmNnetSimple) error {
	switch {
	case !f.UsePriors:
	case am.Raw:
		return tool.Usagef("--use-priors: %s is a network without priors; use a .mdl", f.model)
	case len(am.Priors) == 0:
		c.Say("--use-priors: %s has no priors, so none are subtracted", f.model)
	default:
		f.Options.Priors = am.Priors
	}
	return nil
}

// checkIvectors returns an error if the network needs i-vectors and there are none. It
// drops i-vectors that the network does not take.
func (f *runFlags) checkIvectors(c *tool.Console, dim int) error {
	given := f.Tables.Ivectors != "" || f.Tables.OnlineIvectors != ""
	switch {
	case dim > 0 && !given:
		return tool.Usagef("the network needs i-vectors of %d elements: --ivectors or --online-ivectors expected", dim)
	case dim == 0 && given:
		c.Say("the network takes no i-vectors; ignoring them")
		f.Tables = decodable.TableNames{Features: f.Tables.Features}
	}
	return nil
}
