//go:build unix

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nnopt/nnopt/cluster/internal/corpustest"
)

// TestLong: a long utterance does not hold up others. It is so long here that it does not end
// before they do: its features come from a FIFO.
func TestLong(t *testing.T) {
	for _, looped := range []bool{false, true} {
		t.Run(fmt.Sprint("looped=", looped), func(t *testing.T) { longOne(t, looped) })
	}
}

func longOne(t *testing.T, looped bool) {
	c := corpustest.New(t, 200)
	long := c.Path("long.mat")
	if err := syscall.Mkfifo(long, 0o666); err != nil {
		t.Skip(err)
	}
	corpustest.Nnopt(t, 0, "copy", c.Script(t, "one.scp", c.Lines[20:21]), c.Script(t, "to.scp", []string{c.Keys[20] + " " + long + ".text"}))
	lines := append([]string{}, c.Lines...)
	lines[20] = c.Keys[20] + " " + long
	j := jobFor(t, c)
	j.Features, j.Workers = c.Script(t, "long.scp", lines), 2
	j.Looped = looped
	counts := corpustest.Lines(t, c.Path("utt2num_frames"))
	counts[20] = c.Keys[20] + " 1000000" // the first shard to be scored
	j.FrameCounts = "ark:" + c.Path("counts")
	c.Script(t, "counts", counts)
	written := make(chan error, 1)
	go func() {
		for {
			done, err := filepath.Glob(filepath.Join(j.Out, shardsDir, "*.json"))
			if err != nil || len(done) == 4 || t.Context().Err() != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		text, err := os.ReadFile(long + ".text")
		if err == nil {
			err = os.WriteFile(long, text, 0) // waits for the reader
		}
		written <- err
	}()
	s := score(t, j)
	if err := <-written; err != nil {
		t.Error(err)
	}
	if s.Shards != 5 || s.Utterances != 200 {
		t.Errorf("%+v", s)
	}
	var flags []string
	if looped {
		flags = []string{"--looped", "--frames-per-chunk=50"}
	}
	corpustest.Same(t, j.script(), c.Run(t, 0, c.Features, flags...))
}

// TestWorkersPerShard: a process scores as many utterances at once as it has workers.
func TestWorkersPerShard(t *testing.T) {
	for _, c := range []struct{ workers, shards, want int }{{8, 1, 8}, {8, 3, 3}, {8, 8, 1}, {8, 100, 1}, {1, 5, 1}, {4, 0, 4}} {
		w := &work{Workers: c.workers, Shards: c.shards}
		if got := w.workersPerShard(); got != c.want {
			t.Errorf("%d workers, %d shards: %d per shard, want %d", c.workers, c.shards, got, c.want)
		}
	}
}
