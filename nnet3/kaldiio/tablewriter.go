package kaldiio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nnopt/nnopt/internal/fileio"
)

// TableWriter writes objects with keys to an archive, to a script that points into it, or to the
// files that a script names. A script lists an object once it would survive a loss of power,
// with the option f up to a second earlier. If
// writing fails, on a full disk for example, it truncates its files to complete objects. It does the same, and stops, when the Context of its Opener is done. If an
// object fails ((*Writer).Fail), it is taken back, and the table goes on; only what a pipe got can't
// be taken back.
type TableWriter[T any] struct {
	opener *Opener
	spec   Wspecifier
	write  func(*Writer, T)
	names  map[string]string // with a script alone: wxfilenames by key
	stop   func() bool       // stops waiting for the Context

	mu      sync.Mutex
	archive *Writer
	script  *Writer
	outputs []io.WriteCloser // under archive and script
	synced  time.Time        // when the archive last was
	ends    []end            // of the last object that has reached the files, and of those after it
	objects int              // written so far
	whole   int              // of those, how many are complete once the output is closed
	closed  bool
	err     error
}

// An end is where an object ends in the archive and the script, and the number of objects so far.
type end struct {
	archive, script int64
	objects         int
	line            string // of the script
}

// NewTableWriter opens the table that a wspecifier names. The function write writes an object, like
// (*Writer).Matrix.
func NewTableWriter[T any](o *Opener, wspecifier string, write func(*Writer, T)) (*TableWriter[T], error) {
	spec, err := ParseWspecifier(wspecifier)
	if err != nil {
		return nil, err
	}
	t := &TableWriter[T]{opener: o, spec: spec, write: write, stop: func() bool { return true }, ends: make([]end, 1)}
	// A script alone says where each object goes; each is a file of its own, opened in Write. There
	// is nothing to open yet and nothing to cut back.
	if !spec.HasArchive {
		if err := t.readNames(); err != nil {
			return nil, fmt.Errorf("wspecifier %q: scp: alone needs a script that says where each object goes (ark,scp: makes one): %w", fileio.Excerpt(wspecifier, 0), err)
		}
		return t, nil
	}
	if spec.HasScript && (spec.Archive == "" || spec.Archive == "-" || strings.HasPrefix(spec.Archive, "|")) {
		return nil, fmt.Errorf("wspecifier %q: a script can't point into an archive that is not a file: %w", fileio.Excerpt(wspecifier, 0), ErrSpecifier)
	}
	if t.archive, err = t.open(spec.Archive, !spec.text); err != nil {
		return nil, err
	}
	if spec.HasScript {
		if _, err = t.open(spec.Script, false); err != nil {
			t.Close()
			return nil, err
		}
		t.script = NewWriter(lastingScript[T]{t}, false)
	}
	t.stopWith(o.context())
	return t, nil
}

// stopWith closes the files when ctx is done.
func (t *TableWriter[T]) stopWith(ctx context.Context) {
	t.stop = context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.close()
		if t.err == nil {
			t.err = context.Cause(ctx)
		}
	})
}

// open opens an output that Close closes.
func (t *TableWriter[T]) open(wxfilename string, binary bool) (*Writer, error) {
	f, err := t.opener.openOutput(wxfilename)
	if err != nil {
		return nil, err
	}
	t.outputs = append(t.outputs, f)
	return NewWriter(f, binary), nil
}

// readNames reads the script that names the file of each object.
func (t *TableWriter[T]) readNames() error {
	f, err := t.opener.OpenInput(t.spec.Script)
	if err != nil {
		return err
	}
	defer f.Close()
	t.names = make(map[string]string)
	return newReader(f, t.spec.Script).eachScriptLine(func(line ScriptLine) error {
		t.names[line.Key] = line.Name
		return nil
	})
}

// Write writes one object.
func (t *TableWriter[T]) Write(key string, v T) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	if err := checkKey(key); err != nil {
		return err
	}
	t.objects++
	if t.archive == nil {
		return t.writeFile(key, v)
	}
	w := t.archive
	begin := w.n
	w.Token(key)
	// The line points to the object behind its key, so it must be made before the object's header
	// is written.
	line := fmt.Sprintf("%s %s:%d\n", key, t.spec.Archive, w.n)
	w.Header()
	t.write(w, v)
	// The object could not be written, although the disk would have taken it: its key and perhaps
	// half of it are in the archive. If they can be removed, only this object is lost. In a pipe
	// they can't, and the table ends here.
	if err := w.failed; err != nil && t.takeBack(begin) {
		t.objects--
		return err
	}
	if t.err = w.Err(); t.spec.flush {
		t.err = w.Flush()
	}
	if t.script == nil {
		line = ""
	} else if t.err == nil {
		t.script.Raw(line)
		if t.err = t.script.Err(); t.spec.flush {
			t.err = t.script.Flush()
		}
	}
	// The order matters: the end is noted only after the object and its line are in the buffers,
	// and it counts as safe only once both buffers have been written up to there.
	if w.Err() == nil {
		t.noteEnd(line)
	}
	return t.err
}

func checkKey(key string) error {
	if key == "" || strings.ContainsAny(key, " \t\r\n\v\f") {
		return fmt.Errorf("%q can't be a key: it is empty or has white space in it: %w", fileio.Excerpt(key, 0), ErrSpecifier)
	}
	return nil
}

// takeBack removes an object that failed from the archive, which ends where the object began. It
// reports false if that can't be.
func (t *TableWriter[T]) takeBack(begin int64) bool {
	f, _ := t.outputs[0].(cutter)
	if _, isFile := sizeToCut(f); !isFile || t.archive.w.Flush() != nil || f.Truncate(begin) != nil {
		return false
	}
	if _, err := f.Seek(begin, io.SeekStart); err != nil {
		return false
	}
	t.archive.n, t.archive.err, t.archive.failed = begin, nil, nil
	return true
}

// A lastingScript writes lines of the script once the objects that they list would survive a loss of
// power, so that a reader, and ContinueTable, may trust them. An interrupted writer does not take the
// time. With the option f, of which each line is written by itself, it does so once a second.
type lastingScript[T any] struct{ t *TableWriter[T] }

func (s lastingScript[T]) Write(p []byte) (int, error) {
	t := s.t
	// This runs when the buffer of the script is full or flushed. First the archive reaches the
	// disk and then the lines, never the other way round: a line without its object would make a
	// reader fail, and an object without its line is found again by ContinueTable.
	if err := t.archive.Flush(); err != nil {
		return 0, err
	}
	if f, ok := t.outputs[0].(interface{ Sync() error }); ok && t.opener.context().Err() == nil && !t.opener.hasty {
		if now := time.Now(); !t.spec.flush || now.Sub(t.synced) > time.Second {
			if err := fileio.Sync(f); err != nil {
				return 0, err
			}
			t.synced = now
		}
	}
	return t.outputs[1].Write(p)
}

// noteEnd records that an object ends here, and drops ends before one that has reached the files.
func (t *TableWriter[T]) noteEnd(line string) {
	e := end{archive: t.archive.n, objects: t.objects, line: line}
	e.script = t.ends[len(t.ends)-1].script + int64(len(line))
	t.ends = append(t.ends, e)
	// Keep the last end that has reached both files, as the place to cut back to, and all after it.
	// Their number is bounded by what the two buffers hold.
	buffered := slices.IndexFunc(t.ends[1:], func(e end) bool {
		return e.archive > t.archive.written() || t.script != nil && e.script > t.script.written()
	})
	if buffered < 0 {
		buffered = len(t.ends) - 1
	}
	t.ends = slices.Delete(t.ends, 0, buffered)
}

// A cutter is a file that can be truncated.
type cutter interface {
	io.Writer
	Stat() (fs.FileInfo, error)
	Truncate(int64) error
	Seek(int64, int) (int64, error)
}

// cutBack truncates the archive to the last complete object after a failed write, and has the
// script list the objects up to there, fewer if there is no room for the list. It returns how many
// objects are left. An output that is not a regular file, such as a pipe, keeps what it got.
func (t *TableWriter[T]) cutBack() (left int) {
	archive, _ := t.outputs[0].(cutter)
	size, isFile := sizeToCut(archive)
	if !isFile {
		size = t.archive.written()
	}
	// Find the last object that is whole in the file. The write that failed may have written a part
	// of its data, so the size of the file decides, not what was handed to it.
	kept := len(t.ends)
	for kept > 1 && t.ends[kept-1].archive > size {
		kept--
	}
	for ; ; kept-- {
		// Archive first, then script, as when writing. If the disk is so full that even the list of
		// what is there does not fit, give up one more object, which makes the list shorter, until
		// it does.
		last := t.ends[kept-1]
		if isFile {
			archive.Truncate(last.archive) // the error of the write is reported, not this one
		}
		if t.script == nil || t.rewriteScript(t.ends[:kept]) || kept == 1 {
			return last.objects
		}
	}
}

// sizeToCut returns the size of a regular file; ok is false for anything else.
func sizeToCut(f cutter) (size int64, ok bool) {
	if f == nil {
		return 0, false
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Size(), true
}

// rewriteScript has the script list the objects in ends, and reports whether there was room for it.
func (t *TableWriter[T]) rewriteScript(ends []end) bool {
	var lines strings.Builder
	for _, e := range ends[1:] {
		lines.WriteString(e.line)
	}
	text := lines.String()
	if f, _ := t.outputs[1].(cutter); f != nil {
		if _, isFile := sizeToCut(f); isFile {
			f.Truncate(ends[0].script)
			if _, err := f.Seek(ends[0].script, io.SeekStart); err != nil {
				return false
			}
			_, err := io.WriteString(f, text)
			return err == nil
		}
	}
	// A pipe can't be rewritten. It gets the lines that it lacks, unless it is what failed.
	if there := t.script.written() - ends[0].script; t.script.Err() == nil && there < int64(len(text)) {
		io.WriteString(t.outputs[1], text[there:])
	}
	return true
}

// writeFile writes an object to the file that the script names.
func (t *TableWriter[T]) writeFile(key string, v T) error {
	name, ok := t.names[key]
	if !ok {
		if t.spec.permissive {
			t.whole++
			return nil
		}
		t.err = fmt.Errorf("%s does not say where key %s goes: %w", t.spec.Script, key, ErrSpecifier)
		return t.err
	}
	var failed error
	err := t.opener.WriteOutput(name, func(f io.Writer) error {
		w := NewWriter(f, !t.spec.text)
		w.Header()
		t.write(w, v)
		failed = w.failed
		return w.Flush()
	})
	switch {
	case err == nil:
		t.whole++
	case failed != nil:
		t.objects--
		return failed
	default:
		t.err = err
	}
	return err
}

// Close flushes and closes everything and returns the first error.
func (t *TableWriter[T]) Close() error {
	t.stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.close()
	return t.err
}

// Count returns how many of the objects written are complete in the output and how many are lost,
// once the writer is closed. If a command fails, all objects written to it count as lost.
func (t *TableWriter[T]) Count() (whole, lost int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.whole, t.objects - t.whole
}

func (t *TableWriter[T]) close() {
	if t.closed {
		return
	}
	t.closed = true
	if t.archive == nil {
		return
	}
	// The archive is flushed before the script, see lastingScript. After an error the rest of the
	// script is not: cutBack writes the lines that are true.
	if err := t.archive.Flush(); t.err == nil {
		t.err = err
	}
	if t.script != nil && t.err == nil {
		t.err = t.script.Flush()
	}
	t.whole = t.objects
	if t.err != nil {
		t.whole = t.cutBack()
	}
	for _, c := range t.outputs {
		if err := c.Close(); t.err == nil {
			t.err = err
		}
	}
	// What a failed command did with its input is unknown.
	if errors.Is(t.err, errFailed) {
		t.whole = 0
	}
}
