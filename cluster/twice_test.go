package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"

	"github.com/nnopt/nnopt/cluster/internal/corpustest"
)

// plannedWork plans a job, as Score does before it starts the pipeline.
func plannedWork(t *testing.T, j *Job) *work {
	t.Helper()
	w, release, err := prepare(j, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	leave, err := claim(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	if err := makePlan(t.Context(), j, w); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestTwice: shards that are scored several times, also at the same time, are there once.
func TestTwice(t *testing.T) {
	c := corpustest.New(t, 300)
	j := jobFor(t, c)
	w := plannedWork(t, &j)
	_, shards, err := readPlan(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { // a bundle with all shards
			f := &scoreFn{Work: *w}
			if err := f.Setup(); err != nil {
				t.Error(err)
				return
			}
			defer f.Teardown()
			scorer, err := f.model.load(w)
			if err != nil {
				t.Error(err)
				return
			}
			for _, s := range shards {
				// Unlike ProcessElement this does not look whether the shard is complete.
				if _, err := scoreShard(t.Context(), w, scorer, s.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	merged(t, w, len(shards), 300)
	corpustest.Same(t, j.script(), c.Run(t, 0, c.Features))
	files := snapshot(t, j.Out)

	// A runner that gives every shard to two bundles, after and while others score it.
	p := beam.NewPipeline()
	s := p.Root()
	ids := beam.ParDo(s, &planFn{Work: *w}, beam.Impulse(s))
	done := beam.ParDo(s, &scoreFn{Work: *w}, beam.Reshuffle(s, beam.Flatten(s, ids, ids)))
	beam.ParDo0(s, &mergeFn{Work: *w}, beam.GroupByKey(s, beam.AddFixedKey(s, done)))
	if err := beamx.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if again := snapshot(t, j.Out); again != files {
		t.Errorf("files before:\n%s\nand after:\n%s", files, again)
	}
}

// merged merges and checks that there is an archive, a script, a list and a manifest for each
// shard, and nothing else.
func merged(t *testing.T, w *work, shards, utterances int) {
	t.Helper()
	sum, err := merge(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Utterances != utterances || sum.Shards != shards {
		t.Errorf("%+v, want %d utterances in %d shards", sum, utterances, shards)
	}
	files, err := os.ReadDir(w.path(shardsDir))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 4*shards {
		t.Errorf("%d files for %d shards: %v", len(files), shards, files)
	}
}

// TestUnequalTwins: of two executions of a shard the one that lost less counts, regardless of their
// order, and never a mixture.
func TestUnequalTwins(t *testing.T) {
	c := corpustest.New(t, 50)
	j := jobFor(t, c)
	w := plannedWork(t, &j)
	_, shards, err := readPlan(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	m, release, err := acquire(w)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	scorer, err := m.load(w)
	if err != nil {
		t.Fatal(err)
	}
	archive := c.Path("feats.0.ark")
	run := func(away bool) *manifest {
		if away {
			defer os.Rename(archive+".away", archive)
			os.Rename(archive, archive+".away")
		}
		got, err := scoreShard(t.Context(), w, scorer, shards[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := run(true); len(got.Failures) != 50 {
		t.Errorf("%d failures without the features", len(got.Failures))
	}
	for _, away := range []bool{false, true} {
		if got := run(away); len(got.Failures) != 0 || got.Utterances != 50 {
			t.Errorf("features away: %v: %d failures, %d utterances", away, len(got.Failures), got.Utterances)
		}
	}
	merged(t, w, 1, 50)
	corpustest.Same(t, j.script(), c.Run(t, 0, c.Features))
}

// TestDamage: a shard whose files are damaged is scored again.
func TestDamage(t *testing.T) {
	c := corpustest.New(t, 150)
	j := jobFor(t, c)
	score(t, j)
	want := strings.Join(corpustest.Lines(t, j.script()), "\n")
	for name, damage := range map[string]func(id string, m *manifest) error{
		"no archive":    func(_ string, m *manifest) error { return os.Remove(filepath.Join(j.Out, shardsDir, m.Archive)) },
		"short archive": func(_ string, m *manifest) error { return os.Truncate(filepath.Join(j.Out, shardsDir, m.Archive), 100) },
		"short script":  func(_ string, m *manifest) error { return os.Truncate(filepath.Join(j.Out, shardsDir, m.Script), 10) },
		"short manifest": func(id string, _ *manifest) error {
			return os.Truncate(filepath.Join(j.Out, shardsDir, id+".json"), 50)
		},
		"no list": func(id string, _ *manifest) error { return os.Remove(filepath.Join(j.Out, shardsDir, id+".list")) },
		"litter": func(id string, _ *manifest) error {
			return os.WriteFile(filepath.Join(j.Out, shardsDir, "."+id+".X.tmp"), nil, 0o666)
		},
	} {
		w, release, err := prepare(&j, nil)
		if err != nil {
			t.Fatal(err)
		}
		release()
		id := strings.TrimSuffix(filepath.Base(must(filepath.Glob(filepath.Join(j.Out, shardsDir, "*.list")))[1]), ".list")
		if err := damage(id, readManifest(t.Context(), w, id)); err != nil {
			t.Fatal(err)
		}
		skipped := 2
		if name == "no list" || name == "litter" {
			skipped = 3
		}
		if s := score(t, j); s.SkippedShards != skipped || s.Utterances != 150 {
			t.Errorf("%s: %+v, want %d skipped shards", name, s, skipped)
		}
		if got := strings.Join(corpustest.Lines(t, j.script()), "\n"); got != want {
			t.Errorf("%s: another result", name)
		}
		if files := must(os.ReadDir(filepath.Join(j.Out, shardsDir))); len(files) != 12 {
			t.Errorf("%s: %d files: %v", name, len(files), files)
		}
	}
}

// TestMoved: a directory can get another name between runs.
func TestMoved(t *testing.T) {
	c := corpustest.New(t, 100)
	j := jobFor(t, c)
	score(t, j)
	if err := os.Rename(j.Out, j.Out+"2"); err != nil {
		t.Fatal(err)
	}
	j.Out += "2"
	if s := score(t, j); s.SkippedShards != 2 {
		t.Errorf("%+v", s)
	}
	corpustest.Same(t, j.script(), c.Run(t, 0, c.Features))
}

// TestOrder: the result has the order of the features, also with utterances that have shards of
// their own, that occur twice, and that fail.
func TestOrder(t *testing.T) {
	c := corpustest.New(t, 200)
	lines := append([]string{}, c.Lines...)
	lines[7], lines[180] = lines[160], "nobody "+c.Path("none")
	lines = append(lines, lines[:60]...) // the same shard again, and a part of one
	j := jobFor(t, c)
	j.Features = c.Script(t, "twice.scp", lines)
	j.FramesPerShard = 60 // longer utterances are alone
	s := score(t, j)
	if s.Utterances != 259 || s.Failed != 1 {
		t.Errorf("%+v", s)
	}
	good := append(append([]string{}, lines[:180]...), lines[181:]...)
	corpustest.Same(t, j.script(), c.Run(t, 0, c.Script(t, "good.scp", good)))
}

// TestCanceled: a job that is canceled leaves no temporary files, and the next one goes on.
func TestCanceled(t *testing.T) {
	c := corpustest.New(t, 100)
	j := jobFor(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Score(ctx, j, nil); err == nil {
		t.Error("no error")
	}
	w := plannedWork(t, &j)
	m, release, err := acquire(w)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	scorer, err := m.load(w)
	if err != nil {
		t.Fatal(err)
	}
	_, shards, err := readPlan(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scoreShard(ctx, w, scorer, shards[0].ID); err == nil {
		t.Error("no error")
	}
	for _, f := range must(os.ReadDir(w.path(shardsDir))) {
		if !strings.HasSuffix(f.Name(), ".list") {
			t.Errorf("there is %s", f.Name())
		}
	}
	if s := score(t, j); s.Utterances != 100 || s.SkippedShards != 0 {
		t.Errorf("%+v", s)
	}
}
