package kaldiio

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A remoteFile is a file of a test that is not on this machine.
type remoteFile struct {
	*bytes.Reader
	open *int // files
}

func (f remoteFile) Close() error { *f.open--; return nil }

// TestRemote: names with a scheme are opened by the Opener, once for lines of one archive, and errors
// and sizes are those of a file.
func TestRemote(t *testing.T) {
	dir := t.TempDir()
	objects := make(map[string]Matrix)
	for i, key := range []string{"a", "b", "c"} {
		objects[key] = Matrix{Rows: 2 + i, Cols: 1, Stride: 1, Data: make([]float32, 2+i)}
	}
	writeTable(t, filepath.Join(dir, "x.ark"), filepath.Join(dir, "x.scp"), (*Writer).Matrix, objects)
	archive, err := os.ReadFile(filepath.Join(dir, "x.ark"))
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join(dir, "x.scp"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		"mem://dir/x.ark": archive, "mem://dir/short.ark": archive[:len(archive)-1],
		"mem://dir/x.scp": bytes.ReplaceAll(script, []byte(dir+"/"), []byte("mem://dir/")),
	}
	opened, open := 0, 0
	o := &Opener{Remote: func(_ context.Context, name string) (io.ReadSeekCloser, error) {
		data, ok := files[name]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		opened++
		open++
		return remoteFile{bytes.NewReader(data), &open}, nil
	}}
	table, err := NewTableReader(o, "scp:mem://dir/x.scp", MatrixHolder())
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, m := range table.All() {
		rows += m.Rows
	}
	if err := table.Close(); err != nil || rows != 9 || opened != 2 || open != 0 {
		t.Errorf("%d rows of %d files, %d still open: %v", rows, opened, open, err)
	}
	lines, err := ReadScript(o, "mem://dir/x.scp")
	if err != nil {
		t.Fatal(err)
	}
	shapes := NewShapes(o)
	for i, line := range lines {
		if n, _, err := shapes.Of(line); err != nil || n != 2+i {
			t.Errorf("key %s: %d rows, %v", line.Key, n, err)
		}
	}
	lines[2].Name = strings.Replace(lines[2].Name, "x.ark", "short.ark", 1)
	if _, _, err := shapes.Of(lines[2]); !errors.Is(err, ErrTruncated) {
		t.Errorf("a short archive: %v", err)
	}
	lines[2].Name = "mem://dir/none.ark:5"
	if _, _, err := shapes.Of(lines[2]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing archive: %v", err)
	}
	shapes.Close()
	if open != 0 {
		t.Errorf("%d files are still open", open)
	}
}

func TestHasScheme(t *testing.T) {
	for name, want := range map[string]bool{
		"gs://bucket/x": true, "s3://b": true, "a+b.c-d://": true,
		"": false, "://x": false, "1s://x": false, "/dir/a://x": false, "x.ark:5": false, "a b://x": false, "C:\\x": false,
	} {
		if got := HasScheme(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
