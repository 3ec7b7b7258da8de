package networks

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math"
	"runtime"

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

// Scoring says how to score utterances, as the flags of run do.
type Scoring struct {
	Options    decodable.Options // without Optimizer and Priors
	Looped     bool              // utterances are scored as streams
	Tables     decodable.TableNames
	UsePriors  bool // subtract the logarithms of the priors of a .mdl
	Workers    int  // utterances that are scored at a time; 0 is one per processor
	AllowPipes bool // run commands in place of file names
}

// DeclareScoring declares the flags by which run scores utterances, and returns a function that
// reads them once they are parsed. Tables.Features, an argument of run, stays empty. The error is
// one about wrong usage.
func DeclareScoring(fs *flag.FlagSet) func() (*Scoring, error) {
	f := new(scoringFlags)
	f.given = func(name string) (given bool) {
		fs.Visit(func(g *flag.Flag) { given = given || g.Name == name })
		return given
	}
	s, o := &f.scoring, &f.scoring.Options
	fs.BoolVar(&s.Looped, "looped", false, "Score an utterance as a stream, each chunk going on where the one before ended")
	fs.IntVar(&o.FramesPerChunk, "frames-per-chunk", 50, "Frames in a chunk, before subsampling; with --looped 24 unless given")
	fs.IntVar(&o.FrameSubsampling, "frame-subsampling-factor", 1, "Frames per row of output; 3 for chain models")
	fs.IntVar(&o.ExtraLeftContext, "extra-left-context", 0, "Extra frames of left context, for recurrent networks")
	fs.IntVar(&o.ExtraRightContext, "extra-right-context", 0, "Extra frames of right context, for backward recurrences")
	fs.IntVar(&f.initial, "extra-left-context-initial", -1, "Overrides --extra-left-context at the beginning of an utterance, unless negative")
	fs.IntVar(&f.final, "extra-right-context-final", -1, "Overrides --extra-right-context at the end of an utterance, unless negative")
	fs.StringVar(&s.Tables.Ivectors, "ivectors", "", "Rspecifier of i-vectors (vectors) by utterance, or by speaker with --utt2spk")
	fs.StringVar(&s.Tables.Speakers, "utt2spk", "", "Rspecifier of the speaker of each utterance, for --ivectors")
	fs.StringVar(&s.Tables.OnlineIvectors, "online-ivectors", "", "Rspecifier of online i-vectors (matrices)")
	fs.IntVar(&o.OnlineIvectorPeriod, "online-ivector-period", 0, "Frames per row of --online-ivectors, with which it is needed")
	fs.BoolVar(&o.ApplyExp, "apply-exp", false, "Write the exponential of the output")
	fs.BoolVar(&s.UsePriors, "use-priors", false, "Subtract the logarithms of the priors in a .mdl")
	fs.Float64Var(&f.scale, "acoustic-scale", 1, "Scale of the output")
	fs.IntVar(&o.MinibatchSize, "minibatch-size", 0, "Maximum number of chunks of an utterance that are computed together; 0 chooses")
	fs.IntVar(&o.CacheCapacity, "compiler.cache-capacity", 0, "Number of compiled computations to keep; 0 keeps enough for all lengths")
	fs.IntVar(&s.Workers, "workers", 0, "Number of utterances that are scored at a time; 0 is one per processor")
	f.threads = tool.DeclareThreads(fs)
	fs.BoolVar(&s.AllowPipes, "allow-pipes", false, "Run commands in place of file names, such as \"gunzip -c feats.gz |\", in scripts too")
	return f.read
}

// scoringFlags are the flags of DeclareScoring.
type scoringFlags struct {
	scoring        Scoring
	initial, final int
	threads        *tool.Threads
	scale          float64
	given          func(name string) bool // whether a flag is on the command line
}

// read returns what the flags say.
func (f *scoringFlags) read() (*Scoring, error) {
	s := f.scoring
	o := &s.Options
	if s.Tables.OnlineIvectors != "" && o.OnlineIvectorPeriod <= 0 {
		return nil, tool.Usagef("--online-ivectors needs --online-ivector-period")
	}
	if s.Tables.OnlineIvectors == "" && f.given("online-ivector-period") {
		return nil, tool.Usagef("--online-ivector-period has no meaning without --online-ivectors")
	}
	// Defaults differ with --looped, so a flag that was given has to be told from its default.
	if s.Looped {
		if err := f.checkLooped(); err != nil {
			return nil, err
		}
		if !f.given("frames-per-chunk") {
			o.FramesPerChunk = loopedChunk
		}
	}
	if f.initial >= 0 {
		o.ExtraLeftContextInitial = &f.initial
	}
	if f.final >= 0 {
		o.ExtraRightContextFinal = &f.final
	}
	// Without --workers there is one for each processor, and none is left for threads.
	if s.Workers > 0 {
		o.Threads = f.threads.Of(s.Workers)
	} else {
		o.Threads = f.threads.Of(runtime.GOMAXPROCS(0))
	}
	o.AcousticScale = float32(f.scale)
	if x := float64(o.AcousticScale); x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return nil, tool.Usagef("--acoustic-scale=%g: want a number other than 0", f.scale)
	}
	return &s, nil
}

// checkLooped returns an error for flags that have no meaning with --looped.
func (f *scoringFlags) checkLooped() error {
	for _, name := range []string{"extra-left-context", "extra-right-context", "extra-right-context-final", "minibatch-size", "compiler.cache-capacity"} {
		if f.given(name) {
			return tool.Usagef("--%s has no meaning with --looped, which knows --frames-per-chunk and --extra-left-context-initial", name)
		}
	}
	return nil
}

// loopedChunk is the default for chunks with --looped, which is Kaldi's.
const loopedChunk = 24
