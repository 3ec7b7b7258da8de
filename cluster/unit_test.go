package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// TestCut: shards have at most the given number of frames, longer utterances are alone and divide
// nothing.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		frames []int64
		most   int64
		want   string
	}{
		{nil, 10, "[]"},
		{[]int64{3, 3, 3, 3}, 6, "[6:[[0 2]] 6:[[2 2]]]"},
		{[]int64{3, 3, 3, 3}, 7, "[6:[[0 2]] 6:[[2 2]]]"},
		{[]int64{3, 3, 3, 3}, 1, "[3:[[0 1]] 3:[[1 1]] 3:[[2 1]] 3:[[3 1]]]"},
		{[]int64{2, 99, 2, 2, 2}, 6, "[99:[[1 1]] 6:[[0 1] [2 2]] 2:[[4 1]]]"},
		{[]int64{0, 0, 0}, 2, "[2:[[0 2]] 1:[[2 1]]]"},
		{[]int64{99, 99}, 6, "[99:[[0 1]] 99:[[1 1]]]"},
	} {
		var got []string
		for _, s := range cut(c.frames, c.most) {
			got = append(got, fmt.Sprintf("%d:%v", s.Frames, s.Lines))
		}
		if text := fmt.Sprint(got); text != c.want {
			t.Errorf("%v by %d: %s, want %s", c.frames, c.most, text, c.want)
		}
	}
	if n := len(cut(make([]int64, 2*maxUtterances+1), 1<<40)); n != 3 {
		t.Errorf("%d shards of empty utterances", n)
	}
}

// TestOrderOfWork: the longest shard is first, and each comes once.
func TestOrderOfWork(t *testing.T) {
	got := inOrderOfWork([]planned{{ID: "a", Frames: 1}, {ID: "b", Frames: 3}, {ID: "a", Frames: 1}, {ID: "c", Frames: 3}})
	if want := []string{"b", "c", "a"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestRetrier: 10,000 reads that fail one time in five all succeed in the end, hopeless ones are
// not repeated, and those of a file that is gone only at first.
func TestRetrier(t *testing.T) {
	defer func(short time.Duration) { firstDelay = short }(firstDelay)
	firstDelay = 50 * time.Millisecond
	rnd := rand.New(rand.NewPCG(5, 6))
	var slept time.Duration
	r := newRetrier()
	r.sleep = func(_ context.Context, d time.Duration) error { slept += d; return nil }
	failed := int64(0)
	for i := range 10_000 {
		in := 0
		err := r.do(t.Context(), "file", func() error {
			if in++; in <= 5 && rnd.IntN(5) == 0 {
				failed++
				return io.ErrUnexpectedEOF
			}
			return nil
		})
		if err != nil {
			t.Fatalf("read %d: %v", i, err)
		}
	}
	if failed < 2000 || r.repeated != failed || slept < time.Duration(failed)*firstDelay {
		t.Errorf("%d reads failed, %d were repeated after %v", failed, r.repeated, slept)
	}
	tries := func(file string, err error) (n int) {
		got := r.do(t.Context(), file, func() error { n++; return err })
		if !errors.Is(got, err) {
			t.Errorf("error %v, want %v", got, err)
		}
		return n
	}
	if n := tries("corrupt", kaldiio.ErrCorrupt); n != 1 {
		t.Errorf("corrupt data were read %d times", n)
	}
	if n, again := tries("gone", fs.ErrNotExist), tries("gone", fs.ErrNotExist); n != maxTries || again != 1 {
		t.Errorf("a missing file was looked for %d and %d times", n, again)
	}
	for i := range 100 {
		tries(fmt.Sprint("gone", i), fs.ErrNotExist)
	}
	if n := tries("one more", fs.ErrNotExist); n != 2 {
		t.Errorf("after many missing files, another was looked for %d times", n)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	r = newRetrier()
	if err := r.do(ctx, "file", func() error { cancel(stop); return io.ErrUnexpectedEOF }); !errors.Is(err, stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
}

// TestObject: what a line of a script names is written as it is read.
func TestObject(t *testing.T) {
	for _, object1 := range []string{"/a.ark:5", "/a.ark:5[1:2,:]", "/a.ark[:,3:4]", "/a b[1:2,3:4]", "gunzip -c x.gz |"} {
		line, err := kaldiio.ParseScriptLine("key " + object1)
		if err != nil {
			t.Fatal(err)
		}
		if got := object(line); got != object1 {
			t.Errorf("%s became %s", object1, got)
		}
		if got := absolute(line.Name); got != line.Name {
			t.Errorf("%s became %s", line.Name, got)
		}
	}
	if got := absolute("a.ark:5"); !strings.HasPrefix(got, "/") || !strings.HasSuffix(got, "/a.ark:5") {
		t.Errorf("a.ark:5 became %s", got)
	}
}

// TestOfWorker: of the error of a DoFn, what its worker said is left.
func TestOfWorker(t *testing.T) {
	err := ofWorker(errors.New("job failed:\nplan\n\tcaused by:\nDoFn[UID:6, Name: x] failed:\ndisk full"))
	if !strings.HasPrefix(err.Error(), "disk full (") {
		t.Error(err)
	}
	other := errors.New("no runner")
	if err := ofWorker(other); err != other {
		t.Error(err)
	}
}

// TestWarnings: what makes scores of a model doubtful is said once it is read.
func TestWarnings(t *testing.T) {
	nn, err := nnet3.ParseConfig(strings.NewReader(`input-node name=input dim=2
component name=bn type=BatchNormComponent dim=2
component-node name=bn component=bn input=input
output-node name=output input=Sum(bn, IfDefined(Offset(bn, 3)))
`), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	if err := pipeline.Save(&raw, nn, true); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "model.raw")
	if err := os.WriteFile(file, raw.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, looped := range []bool{false, true} {
		m := &model{}
		if err := m.read(&work{Model: file, Looped: looped}); err != nil {
			t.Fatal(err)
		}
		said := strings.Join(m.notes, "\n")
		if !strings.Contains(said, "batch normalization without statistics") || looped != strings.Contains(said, "up to 3 frames of the future") {
			t.Errorf("looped %v: it says %q", looped, said)
		}
	}
}
