package fileio_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/internal/fileio"
)

// zeros is an endless input.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		in    io.Reader
		limit int64
		ok    bool
	}{
		{strings.NewReader("12345"), 5, true}, {strings.NewReader("12345"), 4, false}, {strings.NewReader(""), 0, true},
		{strings.NewReader("1"), 0, false}, {zeros{}, 1 << 20, false}, {strings.NewReader("12345"), 1 << 20, true},
	} {
		got, err := fileio.ReadAll(c.in, "the name", c.limit)
		if (err == nil) != c.ok || int64(len(got)) > c.limit {
			t.Errorf("limit %d: %d bytes, %v", c.limit, len(got), err)
		}
		if err != nil && (!errors.Is(err, fileio.ErrLimit) || !strings.Contains(err.Error(), "the name has more than")) {
			t.Error(err)
		}
	}
	name := filepath.Join(t.TempDir(), "sparse")
	if err := os.WriteFile(name, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 50<<30); err != nil {
		t.Skip(err)
	}
	if _, err := fileio.ReadFile(name, fileio.MaxText); !errors.Is(err, fileio.ErrLimit) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "67108864") {
		t.Error(err)
	}
}

func TestPlain(t *testing.T) {
	for _, c := range [][2]string{
		{"plain\n\tlines, µs, …", "plain\n\tlines, µs, …"},
		{"\x1b[31mred\r\x00\u009b\x7f", `\x1b[31mred\r\x00\u009b\u007f`},
		{"half a r\xc3ne \ufffd", `half a r\xc3ne ` + "\ufffd"},
		{"a\u202eb\u2066c\u2069\u200e\u200f\u061c\u2028\ufeff", `a\u202eb\u2066c\u2069\u200e\u200f\u061c\u2028\ufeff`},
		{"क\u200dष", "क\u200dष"},
	} {
		if got := fileio.Plain(c[0]); got != c[1] {
			t.Errorf("%q becomes %q, want %q", c[0], got, c[1])
		}
		if again := fileio.Plain(c[1]); again != c[1] {
			t.Errorf("%q becomes %q", c[1], again)
		}
		// The result does not depend on how the text is split.
		for step := 1; step < 4; step++ {
			var b strings.Builder
			w := fileio.NewPlainWriter(&b)
			for rest := c[0]; rest != ""; rest = rest[min(step, len(rest)):] {
				if n, err := w.Write([]byte(rest[:min(step, len(rest))])); err != nil || n != min(step, len(rest)) {
					t.Fatal(n, err)
				}
			}
			if w.Close(); b.String() != c[1] {
				t.Errorf("%q in pieces of %d becomes %q", c[0], step, b.String())
			}
		}
	}
	var b strings.Builder
	w := fileio.NewPlainWriter(&b)
	w.Write([]byte("cut \xe2\x80"))
	if w.Close(); b.String() != `cut \xe2\x80` {
		t.Errorf("%q", b.String())
	}
	if got := fileio.PlainName("a\nb\tc\u202e"); got != `a\nb\tc\u202e` {
		t.Errorf("%q", got)
	}
	var all strings.Builder
	for r := rune(0); r < 0x3000; r++ {
		all.WriteRune(r)
	}
	text, err := json.Marshal(all.String())
	if err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal([]byte(fileio.Plain(string(text))), &back); err != nil || back != all.String() {
		t.Errorf("JSON is not the same: %v", err)
	}
}

// A blocked reader or writer never returns.
type blocked struct{}

func (blocked) Read([]byte) (int, error)  { select {} }
func (blocked) Write([]byte) (int, error) { select {} }

// TestWaiting: nothing waits longer than its context lasts.
func TestWaiting(t *testing.T) {
	var fifo string // a new one for each case
	enough := errors.New("enough")
	for name, wait := range map[string]func(context.Context) error{
		"read": func(ctx context.Context) error { _, err := io.ReadAll(fileio.Reader(ctx, blocked{})); return err },
		"write": func(ctx context.Context) error {
			_, err := fileio.Writer(ctx, blocked{}).Write([]byte("x"))
			return err
		},
		"open":        func(ctx context.Context) error { _, err := fileio.Open(ctx, fifo); return err },
		"create":      func(ctx context.Context) error { _, err := fileio.Create(ctx, fifo); return err },
		"write there": func(ctx context.Context) error { return fileio.Write(ctx, fifo, func(io.Writer) error { return nil }) },
	} {
		fifo = filepath.Join(t.TempDir(), "fifo")
		if err := mkfifo(fifo); err != nil {
			t.Skip(err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(10*time.Millisecond, func() { cancel(enough) })
		done := make(chan error)
		go func() { done <- wait(ctx) }()
		select {
		case err := <-done:
			if !errors.Is(err, enough) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s does not end", name)
		}
	}
	// Streams that do not block pass all data.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	text := strings.Repeat("0123456789", 50_000)
	var b bytes.Buffer
	if n, err := io.WriteString(fileio.Writer(ctx, &b), text); n != len(text) || err != nil || b.String() != text {
		t.Errorf("%d of %d bytes, %v", n, len(text), err)
	}
	if got, err := io.ReadAll(fileio.Reader(ctx, strings.NewReader(text))); err != nil || string(got) != text {
		t.Errorf("%d of %d bytes, %v", len(got), len(text), err)
	}
}

// folder creates a directory and a file with permissions perm.
func folder(t *testing.T, perm os.FileMode) (dir, name string) {
	t.Helper()
	dir = t.TempDir()
	name = filepath.Join(dir, "file")
	if err := os.WriteFile(name, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, perm); err != nil {
		t.Fatal(err)
	}
	return dir, name
}

// holds verifies the names of the files in a directory, and the text and permissions of one.
func holds(t *testing.T, dir, name, text string, perm os.FileMode, names ...string) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil || string(got) != text {
		t.Errorf("%s holds %q, want %q (%v)", name, got, text, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != perm {
		t.Errorf("%v, %v", info, err)
	}
	entries, _ := os.ReadDir(dir)
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	if strings.Join(found, " ") != strings.Join(names, " ") {
		t.Errorf("there is %q, want %q", found, names)
	}
}

func put(text string, err error) func(io.Writer) error {
	return func(w io.Writer) error {
		io.WriteString(w, text)
		return err
	}
}

// TestWrite: a file is replaced completely or not at all.
func TestWrite(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	dir, name := folder(t, 0o640)
	if err := fileio.Write(ctx, name, put("new", nil)); err != nil {
		t.Error(err)
	}
	holds(t, dir, name, "new", 0o640, "file")
	full := errors.New("no room")
	if err := fileio.Write(ctx, name, put("half", full)); !errors.Is(err, full) || !strings.Contains(err.Error(), "writing "+name) {
		t.Error(err)
	}
	holds(t, dir, name, "new", 0o640, "file")
	func() {
		defer func() { recover() }()
		fileio.Write(ctx, name, func(io.Writer) error { panic("x") })
	}()
	holds(t, dir, name, "new", 0o640, "file")

	// A link is preserved, and its target is replaced.
	link := filepath.Join(dir, "link")
	if err := os.Symlink("file", link); err != nil {
		t.Skip(err)
	}
	if err := fileio.Write(ctx, link, put("by link", nil)); err != nil {
		t.Error(err)
	}
	holds(t, dir, name, "by link", 0o640, "file", "link")
	if to, err := os.Readlink(link); err != nil || to != "file" {
		t.Errorf("the link is to %q, %v", to, err)
	}
	// So is a link to a missing file in another directory.
	sub := filepath.Join(dir, "sub")
	os.Remove(link)
	if err := errors.Join(os.Mkdir(sub, 0o777), os.Symlink("sub/none", link), fileio.Write(ctx, link, put("first", nil))); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(sub, "none")); err != nil || string(got) != "first" {
		t.Errorf("%q, %v", got, err)
	}
	// Anything but a regular file is written directly.
	if err := fileio.Write(ctx, os.DevNull, put("gone", nil)); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Fatal(os.DevNull, " is replaced")
	}
	empty := t.TempDir()
	t.Chdir(empty)
	for _, bad := range []string{dir, filepath.Join(name, "x"), filepath.Join(dir, "none", "x"), ""} {
		if err := fileio.Write(ctx, bad, put("x", nil)); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	if os.Geteuid() != 0 {
		os.Chmod(name, 0o440)
		if err := fileio.Write(ctx, name, put("forbidden", nil)); !errors.Is(err, os.ErrPermission) {
			t.Error(err)
		}
		os.Chmod(name, 0o640)
	}

	// Writing ends with the context.
	enough := errors.New("enough")
	err := fileio.Write(ctx, name, func(w io.Writer) error {
		cancel(enough)
		for {
			if _, err := w.Write([]byte("x")); err != nil {
				return err
			}
		}
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
	holds(t, dir, name, "by link", 0o640, "file", "link", "sub")
}

// TestWriteStdout: open files of the process are not replaced.
func TestWriteStdout(t *testing.T) {
	dir, name := folder(t, 0o666)
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	open := fmt.Sprint("/dev/fd/", f.Fd())
	if _, err := os.Stat(open); err != nil {
		t.Skip(err)
	}
	before, _ := f.Stat()
	if err := fileio.Write(context.Background(), open, put("new", nil)); err != nil {
		t.Error(err)
	}
	after, err := os.Stat(name)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the open file is replaced (%v)", err)
	}
	holds(t, dir, name, "new", after.Mode().Perm(), "file")
}

func TestLFS(t *testing.T) {
	for text, want := range map[string]error{"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 2\n": fileio.ErrLFS, "version 1\n": nil, "": nil} {
		if _, err := fileio.ReadAll(strings.NewReader(text), "file", 100); !errors.Is(err, want) || err != nil && !strings.HasPrefix(err.Error(), "file: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
