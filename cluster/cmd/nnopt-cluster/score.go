package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"

	"github.com/nnopt/nnopt/cluster"
	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/networks"
)

func scoreVerb() tool.Verb {
	return tool.Verb{
		Name:     "score",
		Args:     "MODEL FEATS OUT",
		Synopsis: "score a corpus in shards, on one machine or many",
		Detail: `
MODEL is a Kaldi nnet3 model (raw or .mdl), FEATS a script of matrices such as scp:feats.scp, and OUT a directory. What can be read there
afterwards: out.scp has the rows of every utterance, in the order of FEATS; failures.txt has a line for each that could not be scored,
with its shard and the reason; summary.json counts. Rows have the bits that "$0 run" gives, and its flags have the same meaning.

Shards that are complete are not scored again when the job is run again with the same OUT; a changed option, model or utterance makes
other shards. So after an interrupt the same command continues. The exit status is 1 if utterances failed.

Without --runner the pipeline runs in this process (Prism). Beam's own flags select another runner; machines that work must see all files
under the same names.`,
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			f := declareScore(cfg, fs)
			return func(ctx context.Context, c *tool.Console, args []string) error {
				if len(args) != 3 {
					return tool.Usagef("MODEL FEATS OUT expected, not %d arguments", len(args))
				}
				f.job.Model, f.job.Features, f.job.Out = args[0], args[1], args[2]
				return f.run(ctx, c)
			}
		},
	}
}

// scoreFlags are the flags of score.
type scoreFlags struct {
	job           cluster.Job
	passes        func() (string, *optdb.Optimizer, error)
	scoring       func() (*networks.Scoring, error)
	json, verbose bool
}

func declareScore(cfg *tool.Config, fs *flag.FlagSet) *scoreFlags {
	f := &scoreFlags{passes: tool.DeclarePasses(cfg, fs), scoring: networks.DeclareScoring(fs)}
	j := &f.job
	fs.Int64Var(&j.FramesPerShard, "frames-per-shard", cluster.DefaultFramesPerShard, "Most frames of a shard; a longer utterance has a shard of its own")
	fs.Int64Var(&j.MaxFrames, "max-frames", 0, "Most frames of an utterance; longer ones fail. 0 allows all")
	fs.DurationVar(&j.Limit, "utterance-limit", cluster.DefaultLimit, "Most time to read an utterance, and to score it; one that takes longer fails")
	fs.StringVar(&j.FrameCounts, "utt2num-frames", "", "Rspecifier of the frames of each utterance, such as ark:utt2num_frames; without it they are read from the headers of the features")
	fs.BoolVar(&j.RetryFailed, "retry-failed", false, "Score complete shards again if utterances of them have failed")
	fs.DurationVar(&j.ProgressInterval, "progress", 10*time.Second, "Time between two lines that say how far the job has come; 0 prints none")
	fs.BoolVar(&f.json, "json", false, "Print the summary, with Beam's counters, as a JSON object on standard output")
	fs.BoolVar(&f.verbose, "verbose", false, "Print what Beam logs")
	flag.CommandLine.VisitAll(func(b *flag.Flag) { declareBeam(fs, b) })
	return f
}

// declareBeam declares a flag of Beam, except those that a runner gives its workers and those of tests.
func declareBeam(fs *flag.FlagSet, b *flag.Flag) {
	switch b.Name {
	case "worker", "id", "logging_endpoint", "control_endpoint", "semi_persist_dir", "options":
		return
	}
	if strings.HasPrefix(b.Name, "test.") {
		return
	}
	if name := strings.ReplaceAll(b.Name, "_", "-"); fs.Lookup(name) == nil {
		fs.Var(&beamFlag{b}, name, "Beam: "+b.Usage)
	}
}

// A beamFlag is a flag of Beam. It is set where Beam looks for it.
type beamFlag struct{ *flag.Flag }

// String returns the value.
func (f *beamFlag) String() string {
	if f.Flag == nil { // of package flag, for the zero value
		return ""
	}
	return f.Value.String()
}

// Set sets the value.
func (f *beamFlag) Set(text string) error { return flag.CommandLine.Set(f.Name, text) }

// IsBoolFlag reports whether the flag needs no value.
func (f *beamFlag) IsBoolFlag() bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// ownTemp gives the process a folder of its own for temporary files, because Beam does not remove
// those that it makes.
func ownTemp() (leave func(), err error) {
	dir, err := os.MkdirTemp("", "nnopt-cluster-*")
	if err != nil {
		return nil, err
	}
	before, was := os.LookupEnv("TMPDIR")
	os.Setenv("TMPDIR", dir)
	return func() {
		if os.RemoveAll(dir); was {
			os.Setenv("TMPDIR", before)
		} else {
			os.Unsetenv("TMPDIR")
		}
	}, nil
}

// run scores the job.
func (f *scoreFlags) run(ctx context.Context, c *tool.Console) error {
	start := time.Now()
	if err := f.complete(c); err != nil {
		return err
	}
	leave, err := initBeam(f.verbose)
	if err != nil {
		return err
	}
	defer leave()
	sum, err := cluster.Score(ctx, f.job, func(note string) { c.Say("%s", note) })
	switch {
	case errors.Is(err, cluster.ErrSubmitted):
		c.Say("%v", err)
		return nil
	case errors.Is(err, cluster.ErrJob), errors.Is(err, decodable.ErrOptions):
		return tool.Usagef("%w", err)
	case errors.Is(err, kaldiio.ErrCommand):
		return fmt.Errorf("%w (--allow-pipes allows it)", err)
	case err != nil:
		return err
	}
	return f.tell(c, sum, time.Since(start))
}

// runnerNames are the runners that Beam links in. Beam ends the program for any other.
var runnerNames = []string{
	"", "prism", "PrismRunner", "universal", "portable", "PortableRunner", "flink", "FlinkRunner", "spark", "SparkRunner",
	"dataflow", "DataflowRunner", "direct", "DirectRunner",
}

// initBeam prepares Beam, until leave is called.
func initBeam(verbose bool) (leave func(), err error) {
	if !slices.Contains(runnerNames, *runners.Runner) {
		return nil, tool.Usagef("--runner=%s: want one of %s", *runners.Runner, strings.Join(runnerNames[1:], ", "))
	}
	own := *jobopts.Endpoint == "" && slices.Contains([]string{"", "prism", "PrismRunner", "direct", "DirectRunner"}, *runners.Runner)
	if *jobopts.Async && (own || jobopts.IsLoopback()) {
		return nil, tool.Usagef("--async needs a runner and workers outside of this process: see --runner, --endpoint and --environment_type")
	}
	if *jobopts.WorkerBinary == "" && runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		// Beam would look for the source of this program and compile it.
		if self, err := os.Executable(); err == nil {
			*jobopts.WorkerBinary = self
		}
	}
	if !beam.Initialized() {
		if err := flag.CommandLine.Parse(nil); err != nil {
			return nil, err
		}
		beam.Init()
	}
	if !verbose { // what matters is in the error
		slog.SetDefault(slog.New(slog.DiscardHandler))
	}
	return ownTemp()
}

// complete puts into the job what flags say indirectly.
func (f *scoreFlags) complete(c *tool.Console) error {
	query, _, err := f.passes()
	if err != nil {
		return err
	}
	s, err := f.scoring()
	if err != nil {
		return err
	}
	j := &f.job
	j.Query, j.Scoring, j.Looped, j.UsePriors, j.Workers, j.AllowPipes = query, s.Options, s.Looped, s.UsePriors, s.Workers, s.AllowPipes
	j.Ivectors, j.Speakers, j.OnlineIvectors = s.Tables.Ivectors, s.Tables.Speakers, s.Tables.OnlineIvectors
	if j.ProgressInterval < 0 {
		return tool.Usagef("--progress=%v: it can't be negative", j.ProgressInterval)
	}
	if j.ProgressInterval > 0 {
		j.Progress = func(p cluster.Progress) { c.Say("%v", p) }
	}
	return nil
}

// tell prints the summary, and returns an error if utterances failed.
func (f *scoreFlags) tell(c *tool.Console, s *cluster.Summary, took time.Duration) error {
	if f.json {
		if err := json.NewEncoder(c.Stdout).Encode(s); err != nil {
			return err
		}
	}
	for _, line := range s.FirstFailures {
		c.Say("failed: %s", line)
	}
	if more := s.Failed - len(s.FirstFailures); more > 0 {
		c.Say("and %d more failed; %s lists all", more, filepath.Join(f.job.Out, "failures.txt"))
	}
	shards := "shards"
	if s.Shards == 1 {
		shards = "shard"
	}
	text := fmt.Sprintf("%d utterances scored, %d frames in %d %s", s.Utterances, s.Frames, s.Shards, shards)
	part := func(n int64, what string) {
		if n > 0 {
			text += fmt.Sprintf(", %d %s", n, what)
		}
	}
	part(int64(s.SkippedShards), "of them complete before")
	part(int64(s.Failed), "utterances failed")
	part(int64(s.NotFinite), "of features that are not finite")
	part(s.RepeatedReads, "reads repeated")
	c.Say("%s; this run: %d utterances, %d frames in %.2f s (%.0f frames/s)", text, s.RunUtterances, s.RunFrames, took.Seconds(), float64(s.RunFrames)/took.Seconds())
	if s.Failed > 0 && !f.job.RetryFailed && s.SkippedShards > 0 {
		c.Say("--retry-failed tries again what failed")
	}
	switch {
	case s.Utterances == 0:
		return fmt.Errorf("none of %d utterances of %s could be scored", s.Failed, f.job.Features)
	case s.Failed > 0:
		return fmt.Errorf("%d of %d utterances failed", s.Failed, s.Failed+s.Utterances)
	}
	return nil
}
