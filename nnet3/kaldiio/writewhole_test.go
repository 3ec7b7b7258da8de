package kaldiio

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestWriteArchive: an archive and its script are both there, or what was there before, or there is
// no script.
func TestWriteArchive(t *testing.T) {
	dir := t.TempDir()
	archive, script := filepath.Join(dir, "a.ark"), filepath.Join(dir, "a.scp")
	full := errors.New("full")
	write := func(v float32, then error) error {
		return WriteArchive(new(Opener), archive, script, (*Writer).Vector, func(put func(string, []float32) error) error {
			return errors.Join(put("a", []float32{v}), put("b", []float32{v, v}), then)
		})
	}
	read := func() (got []float32) {
		r, err := NewTableReader(new(Opener), "scp:"+script, VectorHolder())
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range r.All() {
			got = append(got, v...)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		return got
	}
	holds := func(v float32) {
		t.Helper()
		if got := read(); len(got) != 3 || got[0] != v || got[2] != v {
			t.Errorf("%v, want %v", got, v)
		}
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 2 {
			t.Errorf("%v, %v", files, err)
		}
	}
	if err := write(1, nil); err != nil {
		t.Fatal(err)
	}
	holds(1)
	if err := write(2, full); !errors.Is(err, full) {
		t.Error(err)
	}
	holds(1)
	if err := write(3, nil); err != nil {
		t.Fatal(err)
	}
	holds(3)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(full)
	fill := func(put func(string, []float32) error) error { return put("a", nil) }
	if err := WriteArchive(&Opener{Context: ctx}, archive, script, (*Writer).Vector, fill); !errors.Is(err, full) {
		t.Error(err)
	}
	for _, bad := range [][2]string{{"-", script}, {archive, ""}, {archive, archive}, {"| cat", script}, {"cat |", script}, {archive, "ark:x"}} {
		if err := WriteArchive(new(Opener), bad[0], bad[1], (*Writer).Vector, fill); !errors.Is(err, ErrSpecifier) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	bad := func(put func(string, []float32) error) error { return put("a b", nil) }
	if err := WriteArchive(new(Opener), archive, script, (*Writer).Vector, bad); !errors.Is(err, ErrSpecifier) {
		t.Error(err)
	}
}
