package kaldiio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
)

func passVector(r *Reader) error {
	_, err := r.Vector()
	return err
}

// TestContinueTorn: whatever part of the archive and of the script is there, every whole object is
// kept, and what follows makes both whole.
func TestContinueTorn(t *testing.T) {
	keys := []string{"a", "bb", "c"}
	value := func(key string) []float32 { return []float32{float32(key[0]), 0.5} }
	for _, options := range []string{"ark,scp", "ark,scp,t"} {
		t.Run(options, func(t *testing.T) {
			t.Chdir(t.TempDir())
			spec := options + ":x,y"
			w, err := NewTableWriter(&Opener{hasty: true}, spec, (*Writer).Vector)
			if err != nil {
				t.Fatal(err)
			}
			var ends []int64
			for _, key := range keys {
				w.Write(key, value(key))
				ends = append(ends, w.archive.n)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			archive, script := readAll(t, "x"), readAll(t, "y")
			step := 1
			if !longtest.Enabled() {
				step = 9
			}
			for n := 0; n <= len(archive); n++ {
				for m := n % step; m <= len(script); m += step {
					if err := errors.Join(os.WriteFile("x", []byte(archive[:n]), 0o666), os.WriteFile("y", []byte(script[:m]), 0o666)); err != nil {
						t.Fatal(err)
					}
					w, kept, err := ContinueTable(&Opener{hasty: true}, spec, (*Writer).Vector, passVector)
					if err != nil {
						t.Fatalf("%d bytes with a script of %d: %v", n, m, err)
					}
					whole := 0
					for whole < len(ends) && ends[whole] <= int64(n) {
						whole++
					}
					if !slices.Equal(kept, keys[:whole]) {
						t.Errorf("%d bytes with a script of %d: kept %q of %d", n, m, kept, whole)
					}
					for _, key := range keys[len(kept):] {
						w.Write(key, value(key))
					}
					if err := w.Close(); err != nil {
						t.Fatal(err)
					}
					if readAll(t, "x") != archive || readAll(t, "y") != script {
						t.Errorf("%d bytes with a script of %d become %q and %q", n, m, readAll(t, "x"), readAll(t, "y"))
					}
				}
			}
		})
	}
}

func readAll(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestContinueOthers: files that are not an archive and its script are left alone.
func TestContinueOthers(t *testing.T) {
	t.Chdir(t.TempDir())
	text, good := "nothing that Kaldi knows\n", "a  [ 1 2 ]\n"
	for name, data := range map[string]string{"text": text, "good": good, "good.scp": "a good:2\n", "other.scp": "a other:2\n", "range.scp": "a good:2[0:1]\n", "junk": "\x00\x01\x02", "whole.scp": "a good\n"} {
		if err := os.WriteFile(name, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("folder", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"ark:good", "scp:good.scp", "ark,scp:text,none", "ark,scp:good,text", "ark,scp:good,other.scp", "ark,scp:good,range.scp", "ark,scp:good,whole.scp",
		"ark,scp:text,good.scp", "ark,scp:junk,none", "ark,scp:folder,none", "ark,scp:good,folder", "ark,scp:-,none", "ark,scp:| cat,none", "nonsense"} {
		before := ""
		for _, name := range []string{"text", "good", "good.scp", "other.scp", "junk"} {
			before += readAll(t, name)
		}
		if _, _, err := ContinueTable(new(Opener), spec, (*Writer).Vector, passVector); !errors.Is(err, ErrSpecifier) {
			t.Errorf("%s: %v", spec, err)
		}
		after := ""
		for _, name := range []string{"text", "good", "good.scp", "other.scp", "junk"} {
			after += readAll(t, name)
		}
		if before != after {
			t.Errorf("%s changed a file", spec)
		}
		os.Remove("none")
	}
	if _, _, err := ContinueTable(new(Opener), "ark,scp:no/folder,none", (*Writer).Vector, passVector); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestContinueWrites: a writer that goes on has everything of one that begins: it counts its objects
// and stops with its context.
func TestContinueWrites(t *testing.T) {
	t.Chdir(t.TempDir())
	next := func(ctx context.Context, first, n int) {
		t.Helper()
		w, kept, err := ContinueTable(&Opener{Context: ctx}, "ark,scp:x,y", (*Writer).Vector, passVector)
		if err != nil || len(kept) != first {
			t.Fatalf("%d kept, want %d, %v", len(kept), first, err)
		}
		for i := range n {
			if err := w.Write(fmt.Sprint("key", first+i), make([]float32, 2000)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if whole, lost := w.Count(); whole != n || lost != 0 {
			t.Errorf("%d whole, %d lost", whole, lost)
		}
		if a, s := countObjects(t, "ark:x"), countObjects(t, "scp:y"); a != int64(first+n) || s != a {
			t.Errorf("%d objects, %d lines", a, s)
		}
	}
	next(t.Context(), 0, 30)
	next(t.Context(), 30, 0)
	next(t.Context(), 30, 20)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	w, _, err := ContinueTable(&Opener{Context: ctx}, "ark,scp:x,y", (*Writer).Vector, passVector)
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	for err == nil {
		if err = w.Write("more", make([]float32, 20)); err == nil {
			cancel(enough)
		}
	}
	if closeErr := w.Close(); !errors.Is(err, enough) || !errors.Is(closeErr, enough) {
		t.Error(err, closeErr)
	}
	if a, s := countObjects(t, "ark:x"), countObjects(t, "scp:y"); a != s || a < 51 {
		t.Errorf("%d objects, %d lines", a, s)
	}
	if !strings.HasPrefix(readAll(t, "y"), "key0 x:5\n") {
		t.Errorf("%.30q", readAll(t, "y"))
	}
}

// TestContinueZeroed: what a loss of power zeroed is done again: a page of an object that the script
// does not list, and the head of one that it lists, with all that follows.
func TestContinueZeroed(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func() (ends []int64) {
		w, _, err := ContinueTable(new(Opener), "ark,scp:x,y", (*Writer).Vector, passVector)
		if err != nil {
			t.Fatal(err)
		}
		value := make([]float32, 3000)
		for i := range value {
			value[i] = float32(i + 1)
		}
		for i := range 4 {
			w.Write(fmt.Sprint("key", i), value)
			ends = append(ends, w.archive.n)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return ends
	}
	for _, c := range []struct {
		listed, object int
		at, n          int64 // zeros, from the beginning of the object
		kept           int
	}{
		{4, 1, 0, 0, 4}, {2, 3, 0, 0, 4},
		{4, 1, 0, 100, 1}, {4, 1, 0, 5, 1}, {4, 3, 5, 100, 3}, {4, 0, 0, 12000, 0}, // heads of listed objects
		{2, 2, 100, 11000, 2}, {2, 3, 100, 11000, 3}, {0, 1, 100, 9000, 1}, // pages of others
		{2, 3, 100, 2000, 4}, // no page
	} {
		os.Remove("x")
		os.Remove("y")
		ends := append([]int64{0}, write()...)
		archive := []byte(readAll(t, "x"))
		clear(archive[ends[c.object]+c.at:][:c.n])
		lines := strings.SplitAfter(readAll(t, "y"), "\n")
		if err := errors.Join(os.WriteFile("x", archive, 0o666), os.WriteFile("y", []byte(strings.Join(lines[:c.listed], "")), 0o666)); err != nil {
			t.Fatal(err)
		}
		w, kept, err := ContinueTable(new(Opener), "ark,scp:x,y", (*Writer).Vector, passVector)
		if err == nil {
			err = w.Close()
		}
		if err != nil || len(kept) != c.kept || int64(len(readAll(t, "x"))) != ends[c.kept] || strings.Count(readAll(t, "y"), "\n") != c.kept {
			t.Errorf("%+v: kept %q, %v", c, kept, err)
		}
	}
}

// A syncedFile counts how much of it is synced.
type syncedFile struct {
	*os.File
	written, synced int64
}

func (f *syncedFile) Write(p []byte) (int, error) {
	f.written += int64(len(p))
	return f.File.Write(p)
}

func (f *syncedFile) Sync() error {
	f.synced = f.written
	return nil
}

// A scriptFile checks that the objects of its lines are synced.
type scriptFile struct {
	*os.File
	t       *testing.T
	archive *syncedFile
	lines   int64
}

func (f *scriptFile) Write(p []byte) (int, error) {
	f.lines += int64(strings.Count(string(p), "\n"))
	if least := f.lines * 2000; f.archive.synced < least {
		f.t.Errorf("%d lines, and %d bytes are synced", f.lines, f.archive.synced)
	}
	return f.File.Write(p)
}

// TestScriptLasts: a line of the script is written once its object would survive a loss of power.
func TestScriptLasts(t *testing.T) {
	for _, options := range []string{"ark,scp", "ark,scp,t"} {
		t.Chdir(t.TempDir())
		w, err := NewTableWriter(new(Opener), options+":x,y", (*Writer).Vector)
		if err != nil {
			t.Fatal(err)
		}
		x, err1 := os.OpenFile("x", os.O_RDWR, 0)
		y, err2 := os.OpenFile("y", os.O_RDWR, 0)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		archive := &syncedFile{File: x}
		script := &scriptFile{File: y, t: t, archive: archive}
		w.outputs[0].Close()
		w.outputs[1].Close()
		w.outputs[0], w.outputs[1] = archive, script
		w.archive = NewWriter(archive, !w.spec.text)
		const n = 5000
		for i := range n {
			if err := w.Write(fmt.Sprintf("key%05d", i), make([]float32, 1000)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil || script.lines != n {
			t.Errorf("%d lines, %v", script.lines, err)
		}
	}
}
