//go:build unix

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nnopt/nnopt/cluster/internal/corpustest"
	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// A poisoned component panics where its input has the first of these values, and does not end
// before the test where it has the second.
type poisoned struct {
	component.Component
	end <-chan struct{}
}

const toPanic, toHang = 1e9, 2e9

func (p poisoned) Propagate(w *component.Workspace, pass component.ForwardPass, in, out kernel.Matrix) (component.Memo, error) {
	for i := range in.Rows {
		for _, v := range kernel.Row(in, i) {
			switch v {
			case toPanic:
				panic("poison")
			case toHang:
				<-p.end
			}
		}
	}
	return p.Component.Propagate(w, pass, in, out)
}

// poison writes features that are a value everywhere, and returns the line of a script for them.
func poison(t *testing.T, c *corpustest.Corpus, i int, value float32) string {
	t.Helper()
	m := kaldiio.Matrix{Rows: c.Frames[i], Cols: 12, Stride: 12, Data: make([]float32, c.Frames[i]*12)}
	for i := range m.Data {
		m.Data[i] = value
	}
	name := c.Path(c.Keys[i])
	corpustest.WriteArchive(t, name+".ark", name+".scp", (*kaldiio.Writer).Matrix, func(put func(string, kaldiio.Matrix) error) error {
		return put(c.Keys[i], m)
	})
	return corpustest.Lines(t, name+".scp")[0]
}

// TestPoison: utterances that make the scorer panic, or keep it busy or their reader waiting
// forever, are in the table of failures, and all others are scored.
func TestPoison(t *testing.T) {
	c := corpustest.New(t, 150)
	lines := append([]string{}, c.Lines...)
	fifo := c.Path("never")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Skip(err)
	}
	lines[5], lines[60], lines[110] = poison(t, c, 5, toPanic), poison(t, c, 60, toHang), c.Keys[110]+" "+fifo
	bad := map[string]string{c.Keys[5]: "poison", c.Keys[60]: "out of time", c.Keys[110]: "out of time: to read"}

	j := jobFor(t, c)
	j.Features, j.FrameCounts, j.Query, j.Workers = c.Script(t, "poison.scp", lines), c.FrameCounts, "none", 3
	j.Limit = 5 * time.Second
	w := must(newWork(&j, ""))
	m, release, err := acquire(w)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	end := make(chan struct{})
	defer close(end)
	m.once.Do(func() { // in place of reading the model
		var am *nnet3.AmNnetSimple
		if am, m.sum, m.err = readModel(new(kaldiio.Opener), j.Model); m.err != nil {
			return
		}
		for i, layer := range am.Nnet.Components {
			if layer.Type() == "NaturalGradientAffineComponent" && layer.InputDim() > 24 {
				am.Nnet.Components[i] = poisoned{layer, end}
			}
		}
		m.scorer, m.err = decodable.New(am.Nnet, j.Scoring)
	})
	s := score(t, j)
	if s.Utterances != 147 || s.Failed != 3 {
		t.Errorf("%+v", s)
	}
	checkFailures(t, &j, bad)
	var good []string
	for i, line := range c.Lines {
		if bad[c.Keys[i]] == "" {
			good = append(good, line)
		}
	}
	corpustest.Same(t, j.script(), c.Run(t, 0, c.Script(t, "good.scp", good), "--query=none"))
}

// TestProgress: the job tells how many shards are complete while others are not.
func TestProgress(t *testing.T) {
	c := corpustest.New(t, 150)
	late := c.Path("late.mat")
	if err := syscall.Mkfifo(late, 0o666); err != nil {
		t.Skip(err)
	}
	corpustest.Nnopt(t, 0, "copy", c.Script(t, "one.scp", c.Lines[120:121]), c.Script(t, "to.scp", []string{c.Keys[120] + " " + late + ".whole"}))
	lines := append([]string{}, c.Lines...)
	lines[120] = c.Keys[120] + " " + late
	j := jobFor(t, c)
	j.Features, j.FrameCounts, j.Workers = c.Script(t, "late.scp", lines), c.FrameCounts, 2
	j.ProgressInterval = time.Millisecond
	written := make(chan error, 1)
	var last Progress
	j.Progress = func(p Progress) {
		if p.Shards < last.Shards || p.AllShards != 3 || p.AllFrames != 3*corpustest.FramesPerArchive || p.Frames != int64(p.Shards)*corpustest.FramesPerArchive || p.Elapsed <= 0 {
			t.Errorf("%+v after %+v", p, last)
		}
		if p.Shards == 2 && last.Shards < 2 { // the third one waits for this
			go func() {
				text, err := os.ReadFile(late + ".whole")
				if err == nil {
					err = os.WriteFile(late, text, 0)
				}
				written <- err
			}()
		}
		last = p
	}
	if s := score(t, j); s.Utterances != 150 {
		t.Errorf("%+v", s)
	}
	if err := <-written; err != nil || last.Shards < 2 {
		t.Error(last, err)
	}
	if got, want := (Progress{Shards: 2, AllShards: 3, Frames: 200, AllFrames: 300, RunFrames: 100, Elapsed: 2 * time.Second}).String(), "2 of 3 shards, 200 of 300 frames, 50 frames/s, 2s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if left, _ := filepath.Glob(filepath.Join(j.Out, shardsDir, ".*")); len(left) > 0 || strings.Contains(last.String(), "Inf") {
		t.Errorf("left behind: %v", left)
	}
}
