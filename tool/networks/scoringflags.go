package networks

import (
	"flag"
	"math"
	"runtime"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/tool"
)

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
