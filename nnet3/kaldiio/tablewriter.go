package kaldiio

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// TableWriter writes objects with keys to an archive, to a script that points into it, or to the files that a script
// names. When writing fails, because the disk is full for example, files are cut back to what is whole.
type TableWriter[T any] struct {
	opener *Opener
	spec   Wspecifier
	write  func(*Writer, T)

	archive *Writer
	script  *Writer
	closers []io.Closer
	names   map[string]string // with a script alone: wxfilenames by key
	ends    []ends            // of objects that may not have reached the files yet, and of the one before them
	err     error
}

// ends are the sizes of the archive and of the script where an object ends.
type ends struct{ archive, script int64 }

// NewTableWriter opens what a wspecifier names. write writes one object, as (*Writer).Matrix does.
func NewTableWriter[T any](o *Opener, wspecifier string, write func(*Writer, T)) (*TableWriter[T], error) {
	spec, err := ParseWspecifier(wspecifier)
	if err != nil {
		return nil, err
	}
	t := &TableWriter[T]{opener: o, spec: spec, write: write}
	if !spec.HasArchive {
		if err := t.readNames(); err != nil {
			return nil, fmt.Errorf("wspecifier %q: scp: alone wants a script that says where each object goes (ark,scp: makes one): %w", wspecifier, err)
		}
		return t, nil
	}
	if spec.HasScript && (spec.Archive == "" || spec.Archive == "-" || strings.HasPrefix(spec.Archive, "|")) {
		return nil, fmt.Errorf("wspecifier %q: a script can't point into an archive that is not a file: %w", wspecifier, ErrSpecifier)
	}
	if t.archive, err = t.open(spec.Archive, !spec.Text); err != nil {
		return nil, err
	}
	if spec.HasScript {
		if t.script, err = t.open(spec.Script, false); err != nil {
			t.Close()
			return nil, err
		}
	}
	return t, nil
}

// open opens an output that Close closes.
func (t *TableWriter[T]) open(wxfilename string, binary bool) (*Writer, error) {
	f, err := t.opener.OpenOutput(wxfilename)
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, f)
	return NewWriter(f, binary), nil
}

// readNames reads the script that says where each object goes.
func (t *TableWriter[T]) readNames() error {
	f, err := t.opener.OpenInput(t.spec.Script)
	if err != nil {
		return err
	}
	defer f.Close()
	t.names = make(map[string]string)
	for r := newReader(f, t.spec.Script); ; {
		line, more, err := r.scriptLine()
		if err != nil || !more {
			return err
		}
		t.names[line.Key] = line.Name
	}
}

// Write writes one object.
func (t *TableWriter[T]) Write(key string, v T) error {
	if t.err != nil {
		return t.err
	}
	if key == "" || strings.ContainsAny(key, " \t\r\n\v\f") {
		return fmt.Errorf("%q can't be a key: it is empty or has space in it: %w", key, ErrSpecifier)
	}
	if t.archive == nil {
		t.err = t.writeFile(key, v)
		return t.err
	}
	w := t.archive
	w.Token(key)
	if t.script != nil {
		t.script.Raw(fmt.Sprintf("%s %s:%d\n", key, t.spec.Archive, w.Offset()))
	}
	w.Header()
	t.write(w, v)
	t.err = w.Err()
	if t.spec.Flush {
		t.err = w.Flush()
	}
	if t.script != nil && t.err == nil {
		if t.err = t.script.Err(); t.spec.Flush {
			t.err = t.script.Flush()
		}
	}
	if t.err == nil {
		t.noteEnd()
	}
	return t.err
}

// noteEnd notes that an object ends here, and forgets the ends before one that is in the files for certain.
func (t *TableWriter[T]) noteEnd() {
	end := ends{archive: t.archive.Offset()}
	if t.script != nil {
		end.script = t.script.Offset()
	}
	t.ends = append(t.ends, end)
	written := 0
	for written+1 < len(t.ends) {
		e := t.ends[written+1]
		if e.archive > t.archive.Written() || t.script != nil && e.script > t.script.Written() {
			break
		}
		written++
	}
	t.ends = slices.Delete(t.ends, 0, written)
}

// cutBack cuts the files back to the last object that is whole in all of them, after writing has failed. What is no file, a pipe or
// a device, stays as it is.
func (t *TableWriter[T]) cutBack() {
	var files []*os.File
	var whole ends
	sizes := [2]int64{math.MaxInt64, math.MaxInt64}
	for i, c := range t.closers {
		f, ok := c.(*os.File)
		if !ok {
			return
		}
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() {
			return
		}
		files, sizes[i] = append(files, f), info.Size()
	}
	for _, e := range t.ends {
		if e.archive <= sizes[0] && e.script <= sizes[1] {
			whole = e
		}
	}
	for i, f := range files {
		f.Truncate([2]int64{whole.archive, whole.script}[i]) // that writing failed is what is told
	}
}

// writeFile writes an object into the file that the script names.
func (t *TableWriter[T]) writeFile(key string, v T) error {
	name, ok := t.names[key]
	if !ok {
		if t.spec.Permissive {
			return nil
		}
		return fmt.Errorf("%s does not say where key %s goes: %w", t.spec.Script, key, ErrSpecifier)
	}
	f, err := t.opener.OpenOutput(name)
	if err != nil {
		return err
	}
	w := NewWriter(f, !t.spec.Text)
	w.Header()
	t.write(w, v)
	err = w.Flush()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// Close flushes and closes everything and returns the first error.
func (t *TableWriter[T]) Close() error {
	for _, w := range []*Writer{t.archive, t.script} {
		if w != nil {
			if err := w.Flush(); t.err == nil {
				t.err = err
			}
		}
	}
	if t.err != nil {
		t.cutBack()
	}
	for _, c := range t.closers {
		if err := c.Close(); t.err == nil {
			t.err = err
		}
	}
	t.closers = nil
	return t.err
}
