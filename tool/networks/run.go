package networks

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/networks/internal/display"
)

func (o *Options) runVerb() tool.Verb {
	return tool.Verb{
		Name:     "run",
		Before:   "profile",
		Args:     "MODEL FEATS OUT",
		Synopsis: "score the utterances of an archive, as nnet3-compute does",
		Detail: `
MODEL is a Kaldi nnet3 model (raw or .mdl, binary or text). FEATS is an rspecifier of matrices, such as ark:feats.ark or
scp:feats.scp; OUT is a wspecifier, such as ark:out.ark or ark,t:-. Flags have the names and meanings of those of nnet3-compute. Batch
normalization and dropout are in test mode.

With --looped an utterance is scored as a stream, as nnet3-latgen-faster-looped does: each chunk continues where the one before ended, so
recurrent networks see all that is before it, and nothing is computed twice. A network that looks at all of the future can't be looped.

With --skip-done=out.scp and ark,scp:out.ark,out.scp as OUT, a run continues where an earlier one ended, even one that was killed. What
it left torn is cut off, and all else stays. Utterances that failed are tried again, and come last.

Utterances that can't be scored are reported and the others are scored; the exit status is then 1. The output is valid even after an
interrupt or on a full disk, and the summary says what is missing. Features that are NaN or infinite are scored with a warning. The
output does not depend on the number of workers.`,
		Examples: `
$0 run --ivectors=ark:ivectors.ark final.mdl scp:feats.scp ark:out.ark
$0 run --looped --frames-per-chunk=21 --frame-subsampling-factor=3 --ivectors=ark:ivectors.ark final.mdl scp:feats.scp ark,t:-
$0 run --skip-done=out.scp --query='+fast_run +int8' --ivectors=ark:ivectors.ark final.mdl scp:feats.scp ark,scp:out.ark,out.scp`,
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			f := o.declareRun(cfg, fs)
			return tool.Taking(3, 3, "MODEL FEATS OUT", func(ctx context.Context, c *tool.Console, args []string) error {
				s, err := f.scoring()
				if err != nil {
					return err
				}
				f.Scoring = *s
				f.model, f.Tables.Features, f.out = args[0], args[1], args[2]
				return pipesHint(f.run(ctx, c))
			})
		},
	}
}

// runFlags are the flags and arguments of run.
type runFlags struct {
	Scoring
	options *Options

	passes     *tool.Selection
	scoring    func() (*Scoring, error)
	model, out string
	json       bool
	memory     runMemory
	skipDone   string
	skipped    atomic.Int64 // the reader counts
	reproduced bool         // the first failure of the optimizer is in a file
}

func (o *Options) declareRun(cfg *tool.Config, fs *flag.FlagSet) *runFlags {
	f := &runFlags{options: o, passes: tool.DeclareSelection(cfg, fs), scoring: DeclareScoring(fs)}
	fs.StringVar(&f.skipDone, "skip-done", "", "Skip the utterances that this script lists. If it is the script of OUT, ark,scp:…, continue where an earlier run ended, even one that was killed")
	fs.BoolVar(&f.json, "json", false, "Print the report as a JSON object on standard output")
	fs.Func("use-gpu", "Accepted for nnet3-compute; \"yes\" is an error", func(value string) error {
		switch value {
		case "no", "optional":
			return nil
		case "yes", "wait":
			return errors.New("there is no GPU support; use no or optional")
		}
		return errors.New("want no or optional")
	})
	return f
}

// run scores the utterances.
func (f *runFlags) run(ctx context.Context, c *tool.Console) error {
	start := time.Now()
	if err := f.checkSpecifiers(); err != nil {
		return err
	}
	f.memory.load()
	defer f.memory.end()
	report := &runReport{Model: f.model}
	scorer, err := f.scorer(ctx, c, report)
	if err != nil {
		return err
	}
	f.memory.build()
	report.LoadSeconds = time.Since(start).Seconds()
	o := opener(ctx, c, f.AllowPipes)
	tables, err := decodable.OpenTables(o, f.Tables)
	if err != nil {
		return specifierUsage(err)
	}
	out, err := f.output(o, tables)
	if err != nil {
		tables.Close()
		return specifierUsage(err)
	}
	before := time.Since(start)
	sum, err := f.score(ctx, c, scorer, tables, out)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	report.add(sum, before)
	report.Skipped = int(f.skipped.Load())
	report.Utterances, report.Lost = out.Count()
	if err != nil {
		report.UnreadLines, report.UnreadBytes = tables.Unread()
	}
	return f.tell(c, report, err)
}

// checkSpecifiers checks the arguments before anything is read.
func (f *runFlags) checkSpecifiers() error {
	// All names are checked before the model is read, which may take seconds, and before an output
	// is opened, which may destroy an input.
	inputs := []string{f.Tables.Features, f.Tables.Ivectors, f.Tables.Speakers, f.Tables.OnlineIvectors}
	for i, in := range inputs {
		if _, err := kaldiio.ParseRspecifier(in); err != nil && (i == 0 || in != "") {
			return tool.Usagef("%w", err)
		}
	}
	standard := 0
	for _, in := range append(inputs, "ark:"+f.model) {
		if r, err := kaldiio.ParseRspecifier(in); err == nil && (r.Name == "-" || r.Name == "") {
			standard++
		}
	}
	if standard > 1 {
		return tool.Usagef("%d of the inputs are standard input, which can be read only once", standard)
	}
	inputs = append(inputs, f.model)
	if f.skipDone != "" && !f.continues() {
		inputs = append(inputs, "scp:"+f.skipDone)
	}
	if err := keepInput(f.out, inputs...); err != nil {
		return err
	}
	if w, _ := kaldiio.ParseWspecifier(f.out); f.json && w.HasArchive && (w.Archive == "-" || w.Archive == "") {
		return tool.Usagef("--json needs standard output, but %s goes there", f.out)
	}
	return nil
}

// score scores all utterances.
func (f *runFlags) score(ctx context.Context, c *tool.Console, scorer scorer, tables *decodable.Tables, out *kaldiio.TableWriter[*decodable.Rows]) (decodable.Summary, error) {
	bar := display.NewProgress(c, tables.Position)
	defer bar.End()
	sum, err := scorer.RunRows(ctx, tables.Utterances(), func(u decodable.Utterance, r *decodable.Rows) error {
		// With the first rows, what only the beginning needed can be returned.
		f.memory.settle()
		bar.Add(u.Features.Rows)
		return out.Write(u.Key, r)
	}, decodable.RunOptions{Workers: f.Workers, Failed: func(key string, err error) {
		bar.Clear()
		if key != "" {
			err = fmt.Errorf("utterance %s: %w", key, err)
		}
		c.Say("%v", pipesHint(f.failed(ctx, c, err)))
	}, Warned: func(key string, err error) {
		bar.Clear()
		c.Say("utterance %s: warning: %v", key, err)
	}})
	if err != nil {
		return sum, err // the tables may still be in use
	}
	return sum, tables.Close()
}

// failed adds a reproducer to the first error of the optimizer.
func (f *runFlags) failed(ctx context.Context, c *tool.Console, err error) error {
	var failed *pipeline.FailedError
	if f.reproduced || !errors.As(err, &failed) {
		return err
	}
	f.reproduced = true
	return f.options.failed(ctx, c, err, f.model, -1, f.passes.Added())
}

// tell reports on the run, and returns an error if anything failed.
func (f *runFlags) tell(c *tool.Console, r *runReport, err error) error {
	if f.json {
		if err := tool.WriteJSON(c.Stdout, r); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("%s utterances scored, %s frames in %s", display.Thousands(r.Utterances), display.Thousands(r.Frames), display.Duration(time.Duration(r.RunSeconds*1e9)))
	if r.RunSeconds > 0 {
		text += fmt.Sprintf(" (%s frames/s)", display.Thousands(int64(float64(r.Frames)/r.RunSeconds)))
	}
	part := func(n int, what string) {
		if n > 0 {
			text += fmt.Sprintf(", %s %s", display.Thousands(n), what)
		}
	}
	part(r.Skipped, "skipped as done before")
	part(r.Failed, "failed")
	part(r.NotFinite, "of features that are not finite")
	part(r.Lost, "could not be written")
	part(r.Dropped, "read and not scored")
	switch {
	case r.UnreadLines > 0:
		part(r.UnreadLines, "not reached")
	case r.UnreadLines < 0 && r.UnreadBytes > 0:
		text += fmt.Sprintf(", and those in %s bytes not reached", display.Thousands(r.UnreadBytes))
	case r.UnreadBytes < 0:
		text += ", and an unknown number not reached"
	}
	c.Say("%s", text)
	switch {
	case err != nil:
		return err
	case r.Failed > 0:
		return tool.ErrSilent
	case r.Utterances == 0 && r.Skipped == 0:
		return fmt.Errorf("no utterances in %s", f.Tables.Features)
	}
	return nil
}

// specifierUsage turns an error about a malformed specifier into a usageError.
func specifierUsage(err error) error {
	if errors.Is(err, kaldiio.ErrSpecifier) || errors.Is(err, decodable.ErrOptions) {
		return tool.Usagef("%w", err)
	}
	return err
}

// continues reports whether --skip-done names the script that goes with the output.
func (f *runFlags) continues() bool {
	w, err := kaldiio.ParseWspecifier(f.out)
	if err != nil || !w.HasArchive || !w.HasScript || f.skipDone == "" {
		return false
	}
	return filepath.Clean(w.Script) == filepath.Clean(f.skipDone) || tool.SameFile(w.Script, f.skipDone)
}

// output opens the output, and has tables leave out what is done.
func (f *runFlags) output(o *kaldiio.Opener, tables *decodable.Tables) (*kaldiio.TableWriter[*decodable.Rows], error) {
	write := func(w *kaldiio.Writer, r *decodable.Rows) { r.Write(w) }
	if f.skipDone == "" {
		return kaldiio.NewTableWriter(o, f.out, write)
	}
	var out *kaldiio.TableWriter[*decodable.Rows]
	var keys []string
	var err error
	if f.continues() {
		out, keys, err = kaldiio.ContinueTable(o, f.out, write, func(r *kaldiio.Reader) error {
			_, err := r.Matrix()
			return err
		})
	} else if keys, err = doneKeys(o, f.skipDone); err == nil {
		out, err = kaldiio.NewTableWriter(o, f.out, write)
	}
	if err != nil {
		return nil, fmt.Errorf("--skip-done: %w", err)
	}
	// The keys of a table that is continued are those of whole objects, since ContinueTable cuts
	// off what a killed run left torn. Another script only lists keys, so doneKeys leaves out those
	// whose matrices can't be read.
	done := make(map[string]bool, len(keys))
	for _, key := range keys {
		done[key] = true
	}
	tables.Except(func(key string) bool {
		if done[key] {
			f.skipped.Add(1)
		}
		return done[key]
	})
	return out, nil
}

// doneKeys returns the keys of a script whose matrices are whole.
func doneKeys(o *kaldiio.Opener, script string) (keys []string, err error) {
	lines, err := kaldiio.ReadScript(o, script)
	if err != nil {
		return nil, err
	}
	shapes := kaldiio.NewShapes(o)
	for _, line := range lines {
		if _, _, err := shapes.Of(line); err == nil {
			keys = append(keys, line.Key)
		}
	}
	return keys, shapes.Close()
}
