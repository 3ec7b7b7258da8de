package fileio_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/fileio"
)

func TestMap(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	mapOf := func() (*fileio.Mapping, error) {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return fileio.Map(f)
	}
	for _, want := range []string{"", "some text", strings.Repeat("x", 1<<20)} {
		if err := os.WriteFile(name, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		m, err := mapOf()
		if err != nil || string(m.Bytes()) != want {
			t.Fatal(len(want), err)
		}
		// A file that gets the name is another one.
		if err := fileio.Replace(t.Context(), name, func(w io.Writer) error { return nil }); err == nil && string(m.Bytes()) != want {
			t.Error("other bytes")
		}
		// What is forgotten is there again, and other memory is left alone.
		for _, part := range [][]byte{nil, m.Bytes(), m.Bytes()[len(want)/3:], m.Bytes()[:len(want)/2]} {
			if err := m.Forget(part); err != nil || string(m.Bytes()) != want {
				t.Error(len(want), err)
			}
		}
		if other := []byte(strings.Repeat("y", 1<<16)); m.Forget(other) != nil || strings.Trim(string(other), "y") != "" {
			t.Error("memory that is not mapped was given back")
		}
		for range 2 {
			if err := m.Close(); err != nil || m.Bytes() != nil {
				t.Error(err)
			}
		}
	}
	name = t.TempDir()
	if m, err := mapOf(); err == nil {
		t.Errorf("a folder has %d bytes", len(m.Bytes()))
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		io.WriteString(w, "from a pipe")
		w.Close()
	}()
	if m, err := fileio.Map(r); err != nil || string(m.Bytes()) != "from a pipe" || m.Close() != nil {
		t.Error(err)
	}
}

// TestOpenWithin: names lead to regular files in the folder, and nobody is waited for.
func TestOpenWithin(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	for name, text := range map[string]string{"outside": "secret", "folder/in": "text", "folder/sub/deep": "deep"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	links := os.Symlink("in", filepath.Join(folder, "link")) == nil && os.Symlink("../outside", filepath.Join(folder, "out")) == nil && os.Symlink("loop", filepath.Join(folder, "loop")) == nil
	fifo := mkfifo(filepath.Join(folder, "fifo")) == nil
	for name, want := range map[string]string{
		"in": "text", "sub/deep": "deep", "sub/../in": "text", "link": "text", "out": "!escapes", "../outside": "!escapes", "loop": "!",
		"gone": "!no such file", "sub": "!sub is not a regular file", ".": "!not a regular file", "fifo": "!fifo is not a regular file", "": "!",
	} {
		if !links && strings.Contains("link out loop", name) || !fifo && name == "fifo" {
			continue
		}
		f, err := fileio.OpenWithin(folder, name)
		if fault, ok := strings.CutPrefix(want, "!"); ok {
			if err == nil || !strings.Contains(err.Error(), fault) {
				t.Errorf("%q: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if got, err := io.ReadAll(f); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", name, got, err)
		}
		f.Close()
	}
}

// TestReplace: nothing is written to a file that is there.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	write := func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }
	name := filepath.Join(dir, "f")
	for range 2 {
		if err := fileio.Replace(t.Context(), name, write); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "new" {
		t.Error(got, err)
	}
	if err := fileio.Replace(t.Context(), os.DevNull, write); !errors.Is(err, fileio.ErrReplace) || !strings.Contains(err.Error(), os.DevNull) {
		t.Error(err)
	}
	// Nor where Write would do so, in a folder that is closed.
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o777)
	if f, err := os.Create(filepath.Join(dir, "other")); err == nil {
		f.Close()
		t.Skip("this user may write to any folder")
	}
	if err := fileio.Replace(t.Context(), name, func(w io.Writer) error { t.Error("written"); return nil }); !errors.Is(err, fileio.ErrReplace) {
		t.Error(err)
	}
}
