package kaldiio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
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
			w, err := NewTableWriter(new(Opener), spec, (*Writer).Vector)
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
			if testing.Short() {
				step = 4
			}
			for n := 0; n <= len(archive); n++ {
				for m := n % step; m <= len(script); m += step {
					if err := errors.Join(os.WriteFile("x", []byte(archive[:n]), 0o666), os.WriteFile("y", []byte(script[:m]), 0o666)); err != nil {
						t.Fatal(err)
					}
					w, kept, err := ContinueTable(new(Opener), spec, (*Writer).Vector, passVector)
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
