package tool

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
)

// A scorer is a decodable.Scorer or, for --looped, a decodable.Streamer.
type scorer interface {
	FramesPerChunk() int
	IvectorDim() int
	RunRows(context.Context, iter.Seq2[decodable.Utterance, error], func(decodable.Utterance, *decodable.Rows) error, decodable.RunOptions) (decodable.Summary, error)
}

// scorer reads the model and prepares it.
func (f *runFlags) scorer(ctx context.Context, c *Console, report *runReport) (scorer, error) {
	query, opt, err := f.passes.build()
	if err != nil {
		return nil, err
	}
	report.Query, f.opts.Optimizer = query, opt
	if f.tables.OnlineIvectors != "" && f.opts.OnlineIvectorPeriod <= 0 {
		return nil, Usagef("--online-ivectors needs --online-ivector-period")
	}
	if err := f.checkLooped(); err != nil {
		return nil, err
	}
	if f.initial >= 0 {
		f.opts.ExtraLeftContextInitial = &f.initial
	}
	if f.final >= 0 {
		f.opts.ExtraRightContextFinal = &f.final
	}
	f.opts.AcousticScale = float32(f.scale)
	if s := float64(f.opts.AcousticScale); s == 0 || math.IsNaN(s) || math.IsInf(s, 0) {
		return nil, Usagef("--acoustic-scale=%g: want a number other than 0", f.scale)
	}
	am, err := readModel(c, opener(ctx, c, f.pipes), f.model, decodable.Pack)
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
		return nil, &usageError{err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.model, err)
	}
	if n := scorer.FramesPerChunk(); n != f.opts.FramesPerChunk {
		c.Say("a chunk has %d frames instead of %d, a multiple of --frame-subsampling-factor and of the network's modulus", n, f.opts.FramesPerChunk)
	}
	return scorer, f.checkIvectors(c, scorer.IvectorDim())
}

// checkLooped returns an error for flags that have no meaning with --looped, and sets the default of
// those that have another.
func (f *runFlags) checkLooped() error {
	if !f.looped {
		return nil
	}
	for _, name := range []string{"extra-left-context", "extra-right-context", "extra-right-context-final", "minibatch-size", "compiler.cache-capacity"} {
		if f.given(name) {
			return Usagef("--%s has no meaning with --looped, which knows --frames-per-chunk and --extra-left-context-initial", name)
		}
	}
	if !f.given("frames-per-chunk") {
		f.opts.FramesPerChunk = loopedChunk
	}
	return nil
}

// loopedChunk is the default for chunks with --looped, which is Kaldi's.
const loopedChunk = 24

// scorerOf returns the scorer for a network.
func (f *runFlags) scorerOf(ctx context.Context, nn *nnet3.Nnet) (scorer, error) {
	if !f.looped {
		return decodable.New(nn, f.opts)
	}
	o := &f.opts
	opts := decodable.StreamOptions{
		FramesPerChunk: o.FramesPerChunk, FrameSubsampling: o.FrameSubsampling, OnlineIvectorPeriod: o.OnlineIvectorPeriod,
		Priors: o.Priors, AcousticScale: o.AcousticScale, ApplyExp: o.ApplyExp, Optimizer: o.Optimizer,
	}
	if o.ExtraLeftContextInitial != nil {
		opts.ExtraLeftContextInitial = *o.ExtraLeftContextInitial
	}
	s, err := decodable.NewStreamer(ctx, nn, opts)
	if errors.Is(err, compile.ErrUnbounded) {
		err = fmt.Errorf("%w (without --looped it can be scored)", err)
	}
	return s, err
}

// setPriors takes the priors from the model, for --use-priors.
func (f *runFlags) setPriors(c *Console, am *nnet3.AmNnetSimple) error {
	switch {
	case !f.priors:
	case am.Raw:
		return Usagef("--use-priors: %s is a network without priors; use a .mdl", f.model)
	case len(am.Priors) == 0:
		c.Say("--use-priors: %s has no priors, so none are subtracted", f.model)
	default:
		f.opts.Priors = am.Priors
	}
	return nil
}

// checkIvectors returns an error if the network needs i-vectors and there are none. It
// drops i-vectors that the network does not take.
func (f *runFlags) checkIvectors(c *Console, dim int) error {
	given := f.tables.Ivectors != "" || f.tables.OnlineIvectors != ""
	switch {
	case dim > 0 && !given:
		return Usagef("the network needs i-vectors of %d elements: --ivectors or --online-ivectors expected", dim)
	case dim == 0 && given:
		c.Say("the network takes no i-vectors; ignoring them")
		f.tables = decodable.TableNames{Features: f.tables.Features}
	}
	return nil
}
