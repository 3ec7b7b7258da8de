package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/cluster/internal/corpustest"
)

// TestClaim: a directory that another job uses, or that has the results of another model or of
// other options, is refused and stays as it is.
func TestClaim(t *testing.T) {
	c := corpustest.New(t, 100)
	j := jobFor(t, c)
	w := plannedWork(t, &j)
	leave, err := claim(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Score(t.Context(), j, nil); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), j.Out) {
		t.Errorf("a directory in use: %v", err)
	}
	leave()
	score(t, j)
	before := snapshot(t, j.Out)
	config := strings.Join(corpustest.Lines(t, c.Path("net.config")), "\n")
	corpustest.Write(t, c.Path("other.config"), strings.ReplaceAll(config, "=24", "=20"))
	corpustest.Nnopt(t, 0, "init", c.Path("other.config"), c.Path("other.raw"))
	for want, change := range map[string]func(*Job){
		"model_sha256 is":                          func(j *Job) { j.Model = c.Path("other.raw") },
		`query is "none", and was "+fast_run"`:     func(j *Job) { j.Query = "none" },
		"options.FramesPerChunk is 30, and was 50": func(j *Job) { j.Scoring.FramesPerChunk = 30 },
		"looped is true, and was not set":          func(j *Job) { j.Looped = true },
	} {
		other := j
		change(&other)
		if _, err := Score(t.Context(), other, nil); !errors.Is(err, ErrJob) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), j.Out) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if after := snapshot(t, j.Out); after != before {
		t.Errorf("files before:\n%s\nand after:\n%s", before, after)
	}
	corpustest.Write(t, filepath.Join(j.Out, jobFile), "{")
	if _, err := Score(t.Context(), j, nil); err == nil || !strings.Contains(err.Error(), jobFile) {
		t.Errorf("a damaged %s: %v", jobFile, err)
	}
}

// TestTwoJobs: of two jobs that use a directory in an object store, where nothing can be locked,
// the one that was started first ends with an error.
func TestTwoJobs(t *testing.T) {
	t.Cleanup(plain.Clear)
	c := corpustest.New(t, 100)
	j := inStore(t, c, "plain://two/", plain.Put)
	first := plannedWork(t, &j)
	score(t, j)
	if _, err := merge(t.Context(), first); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("error %v", err)
	}
	corpustest.Same(t, fetched(t, &j), c.Run(t, 0, c.Features))
}

// TestModelChanges: a model that is another one, or no longer whole, when a worker loads it ends
// the job.
func TestModelChanges(t *testing.T) {
	c := corpustest.New(t, 50)
	model := must(os.ReadFile(c.Model))
	for want, now := range map[string]string{
		"has changed since": string(model) + " ",
		"ends too early":    string(model[:len(model)/2]),
		"not a model":       "none",
		"no such file":      "",
	} {
		corpustest.Write(t, c.Model, string(model))
		j := jobFor(t, c)
		w, release, err := prepare(&j, nil)
		if err != nil {
			t.Fatal(err)
		}
		leave, err := claim(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if err := makePlan(t.Context(), &j, w); err != nil {
			t.Fatal(err)
		}
		leave()
		release() // the worker is another process
		if corpustest.Write(t, c.Model, now); now == "" {
			os.Remove(c.Model)
		}
		f := &scoreFn{Work: *w}
		if err := f.Setup(); err != nil {
			t.Fatal(err)
		}
		f.StartBundle(t.Context(), nil)
		_, shards, err := readPlan(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		err = f.ProcessElement(t.Context(), shards[0].ID, func(string) { t.Error("the shard counts as complete") })
		if err == nil {
			err = f.FinishBundle(t.Context(), func(string) { t.Error("the shard counts as complete") })
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), c.Model) {
			t.Errorf("error %v, want one with %q and %s", err, want, c.Model)
		}
		f.Teardown()
		if names := must(filepath.Glob(filepath.Join(j.Out, shardsDir, "*"))); len(names) != 1 {
			t.Errorf("%s: there are %v", want, names)
		}
	}
}

// TestMaxFrames: utterances that are too long are in the table of failures, whether their length is
// known before or not.
func TestMaxFrames(t *testing.T) {
	c := corpustest.New(t, 100)
	counts := corpustest.Lines(t, c.Path("utt2num_frames"))
	bad := make(map[string]string)
	var good []string
	for i, n := range c.Frames {
		if n > 50 {
			bad[c.Keys[i]] = "max-frames allows 50"
			counts[i] = c.Keys[i] + " 1" // found out when it is read
		} else {
			good = append(good, c.Lines[i])
		}
	}
	for _, table := range []string{"", "ark:" + c.Path("wrong")} {
		c.Script(t, "wrong", counts)
		j := jobFor(t, c)
		j.MaxFrames, j.FrameCounts = 50, table
		if s := score(t, j); s.Failed != len(bad) || s.Utterances != len(good) || len(bad) < 10 {
			t.Errorf("%+v, want %d failures", s, len(bad))
		}
		checkFailures(t, &j, bad)
		corpustest.Same(t, j.script(), c.Run(t, 0, c.Script(t, "good.scp", good)))
	}
}
