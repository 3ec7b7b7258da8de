package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/memfs"

	"github.com/nnopt/nnopt/cluster/internal/corpustest"
	"github.com/nnopt/nnopt/cluster/internal/objecttest"
)

// The buckets of the tests, which run one after the other.
var (
	plain  = objecttest.New("plain")
	ranged = objecttest.NewRanged("ranged")
)

// inStore puts a corpus into a store, and returns the job for it there, with its results at out.
func inStore(t *testing.T, c *corpustest.Corpus, root string, put func(name string, data []byte)) Job {
	t.Helper()
	files, err := os.ReadDir(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(c.Path(f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Name(), ".scp") {
			data = bytes.ReplaceAll(data, []byte(c.Dir+"/"), []byte(root))
		}
		put(root+f.Name(), data)
	}
	j := jobFor(t, c)
	for _, name := range []*string{&j.Model, &j.Features, &j.Ivectors, &j.Speakers} {
		*name = strings.Replace(*name, c.Dir+"/", root, 1)
	}
	j.FrameCounts, j.Out = "ark:"+root+"utt2num_frames", root+"out"
	return j
}

// fetched copies the results of a job from its store, and returns the script of the copy.
func fetched(t *testing.T, j *Job) string {
	t.Helper()
	dir := t.TempDir()
	var script string
	for _, pattern := range []string{j.Out + "/shards/*.ark", j.script()} {
		system, err := systemOf(pattern)
		if err != nil {
			t.Fatal(err)
		}
		names, err := system.List(t.Context(), pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %v", pattern, names, err)
		}
		for _, name := range names {
			data, err := filesystem.Read(t.Context(), system, name)
			if err != nil {
				t.Fatal(err)
			}
			script = filepath.Join(dir, filepath.Base(name))
			corpustest.Write(t, script, strings.ReplaceAll(string(data), j.Out+"/shards/", dir+"/"))
		}
	}
	return script
}

// TestObjectStore: a job whose files are all in a store in which every operation on a file fails
// before it succeeds, lists are late and nothing can be renamed gives what nnopt run gives, and
// goes on where an earlier one ended.
func TestObjectStore(t *testing.T) {
	c := corpustest.New(t, 200)
	want := c.Run(t, 0, c.Features)
	for name, b := range map[string]*objecttest.Bucket{"plain": plain, "ranged": ranged.Bucket} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(b.Clear)
			j := inStore(t, c, name+"://bucket/corpus/", b.Put)
			b.Faults, b.Late = 1, 3
			if s := score(t, j); s.Utterances != 200 || s.Shards != 4 || s.Failed != 0 {
				t.Errorf("%+v", s)
			}
			if n := b.Failed(); n < 80 {
				t.Errorf("only %d operations failed", n)
			}
			b.Faults, b.Late = 0, 0
			corpustest.Same(t, fetched(t, &j), want)
			if names := b.Names(j.Out + "/shards/"); len(names) != 4*4 {
				t.Errorf("%d files for 4 shards: %v", len(names), names)
			}
			// What a killed job leaves is a shard without a manifest.
			manifests := must(b.List(t.Context(), j.Out+"/shards/*.json"))
			if err := b.Remove(t.Context(), manifests[2]); err != nil {
				t.Fatal(err)
			}
			if s := score(t, j); s.SkippedShards != 3 || s.RunUtterances != 50 || s.Utterances != 200 {
				t.Errorf("second run: %+v", s)
			}
			corpustest.Same(t, fetched(t, &j), want)
			if s := score(t, j); s.SkippedShards != 4 {
				t.Errorf("third run: %+v", s)
			}
			j.Scoring.AcousticScale = 0.5
			if _, err := Score(t.Context(), j, nil); !errors.Is(err, ErrJob) || !strings.Contains(err.Error(), j.Out) {
				t.Errorf("another option in the same directory: %v", err)
			}
		})
	}
}

// TestMemory: the same in Beam's file system in memory, whose results may be scored by looped.
func TestMemory(t *testing.T) {
	c := corpustest.New(t, 100)
	j := inStore(t, c, "memfs://looped/", memfs.Write)
	j.Looped = true
	if s := score(t, j); s.Utterances != 100 {
		t.Errorf("%+v", s)
	}
	corpustest.Same(t, fetched(t, &j), c.Run(t, 0, c.Features, "--looped", "--frames-per-chunk=50"))
}

// TestFullStore: when a store takes no more, the error names the file, nothing is half valid, and
// the job goes on when there is room again.
func TestFullStore(t *testing.T) {
	t.Cleanup(plain.Clear)
	c := corpustest.New(t, 100)
	for _, kind := range []string{".ark", ".scp", ".json", outFile, jobFile} {
		plain.Clear()
		j := inStore(t, c, "plain://full/", plain.Put)
		j.Workers = 1
		plain.Full = func(name string) error {
			if strings.HasPrefix(name, j.Out) && strings.HasSuffix(name, kind) {
				return syscall.ENOSPC
			}
			return nil
		}
		w := must(newWork(&j, ""))
		_, err := Score(t.Context(), j, nil)
		if err == nil || !strings.Contains(err.Error(), syscall.ENOSPC.Error()) || !strings.Contains(err.Error(), j.Out+"/") {
			t.Errorf("%s: %v", kind, err)
		}
		if plain.Get(w.path(summaryFile)) != nil || kind == ".ark" && len(plain.Names(j.Out+"/shards/")) != 2 {
			t.Errorf("%s: there are %v", kind, plain.Names(j.Out))
		}
		plain.Full = nil
		if s := score(t, j); s.Utterances != 100 || s.Failed != 0 {
			t.Errorf("%s: %+v", kind, s)
		}
	}
}

// TestRemoteFile: reading here and there gives the bytes of the file, whether the store can seek,
// open at an offset, or neither, and reads no more than it must.
func TestRemoteFile(t *testing.T) {
	const size = 8 << 20
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	for name, most := range map[string]int64{"plain": 3 * size, "seeks": 4 << 10, "ranged": 2 << 20} {
		t.Run(name, func(t *testing.T) {
			b := plain
			if name == "ranged" {
				b = ranged.Bucket
			}
			t.Cleanup(b.Clear)
			b.Seeks = name == "seeks"
			file := strings.Replace(name, "seeks", "plain", 1) + "://b/file"
			b.Put(file, data)
			f, err := openObject(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, at := range []int64{0, 100, 50, size - 10, 5 << 20, 6<<20 - 100, size} {
				if _, err := f.Seek(at, io.SeekStart); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, 20)
				n, err := io.ReadFull(f, got)
				if want := data[at:min(at+20, size)]; !bytes.Equal(got[:n], want) || (err == nil) != (len(want) == 20) {
					t.Errorf("at %d: %v, %v, want %v", at, got[:n], err, want)
				}
				if left := f.(interface{ Len() int }).Len(); left != size-int(at)-n {
					t.Errorf("at %d: %d bytes follow", at, left)
				}
			}
			if _, err := f.Seek(-1, io.SeekStart); err == nil {
				t.Error("a negative offset")
			}
			if b.Read() > most {
				t.Errorf("%d bytes were read; at most %d should be", b.Read(), most)
			}
		})
	}
	if _, err := openObject(t.Context(), "plain://b/none"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "plain://b/none") {
		t.Errorf("a missing file: %v", err)
	}
}

// TestHopelessStore: an operation that fails forever ends, and its error names the object.
func TestHopelessStore(t *testing.T) {
	t.Cleanup(plain.Clear)
	plain.Put("plain://b/file", []byte("text"))
	plain.Faults = 1 << 20
	w := &work{Dir: "plain://b"}
	for what, do := range map[string]func() error{
		"read":   func() error { _, err := w.readFile(t.Context(), "file"); return err },
		"write":  func() error { return w.writeFile(t.Context(), []byte("other"), "file") },
		"size":   func() error { _, err := w.store().size(t.Context(), "plain://b/file"); return err },
		"remove": func() error { return w.store().remove(t.Context(), "plain://b/file") },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if err := do(); !errors.Is(err, objecttest.ErrFault) || !strings.Contains(err.Error(), "plain://b/file") {
				t.Error(err)
			}
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := w.readFile(ctx, "file"); fmt.Sprint(err) != "enough" {
		t.Errorf("a canceled read: %v", err)
	}
}
