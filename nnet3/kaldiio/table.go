package kaldiio

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"github.com/nnopt/nnopt/internal/fileio"
)

// Holder says how to read the objects of a table.
type Holder[T any] struct {
	Read func(*Reader) (T, error)
	// Slice returns a rectangle of an object; nil if objects have none.
	Slice func(T, Range) (T, error)
}

// MatrixHolder is the holder of matrices of either precision, compressed or not.
func MatrixHolder() Holder[Matrix] {
	return Holder[Matrix]{Read: (*Reader).Matrix, Slice: Matrix.Slice}
}

// VectorHolder is the holder of vectors of either precision.
func VectorHolder() Holder[[]float32] { return Holder[[]float32]{Read: (*Reader).Vector} }

// TableReader reads the objects of an archive or a script one after the other:
//
//	for t.Next() {
//		use(t.Key(), t.Value())
//	}
//	err := t.Close()
type TableReader[T any] struct {
	opener *Opener
	spec   Rspecifier
	holder Holder[T]
	list   *Reader // the archive, or the script
	closer io.Closer
	files  fileCache
	key    string
	at     int64 // where the object begins, in an archive
	value  T
	err    error
	broken bool // the script itself is malformed
	except func(key string) bool
	inText bool // all objects so far were text
}

// NewTableReader opens the table that an rspecifier names.
func NewTableReader[T any](o *Opener, rspecifier string, h Holder[T]) (*TableReader[T], error) {
	spec, err := ParseRspecifier(rspecifier)
	if err != nil {
		return nil, err
	}
	f, err := o.OpenInput(spec.Name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rspecifier, err)
	}
	t := &TableReader[T]{opener: o, spec: spec, holder: h, closer: f, list: newReader(f, spec.Name), inText: true}
	t.files.opener = o
	if spec.Script {
		if err := t.list.refuseOther(); err != nil {
			f.Close()
			return nil, err
		}
		if err := t.list.detectBinary(); err == nil && t.list.binary {
			err = t.list.Errorf("a script is text, but this is binary: is it an archive?")
			f.Close()
			return nil, err
		}
	}
	return t, nil
}

// Except has Next pass over the objects whose keys do not concern the caller. It does not open the
// files of those in a script.
func (t *TableReader[T]) Except(unwanted func(key string) bool) { t.except = unwanted }

// unwanted reports whether the object of the last key is passed over.
func (t *TableReader[T]) unwanted() bool { return t.except != nil && t.except(t.key) }

// Next reads the next object. It returns false at the end and after an error; see Err.
func (t *TableReader[T]) Next() bool {
	for t.err == nil {
		var more bool
		if t.spec.Script {
			more = t.nextOfScript()
		} else {
			more = t.nextOfArchive()
		}
		if more || t.err == nil || !t.spec.Permissive {
			return more
		}
		// A permissive reader skips unreadable objects of a script, but ends an archive early.
		t.err = nil
		if !t.spec.Script {
			// The end of a broken object in an archive is unknown, so the next key is, too. A
			// script has a line for each, and the next line is as good as if nothing had happened.
			t.list.pos, t.list.end, t.list.srcErr = 0, 0, io.EOF
		}
	}
	return false
}

// nextOfArchive reads a key and the object after it.
func (t *TableReader[T]) nextOfArchive() bool {
	for t.objectOfArchive() {
		if !t.unwanted() {
			return true
		}
	}
	return false
}

func (t *TableReader[T]) objectOfArchive() bool {
	if t.err = t.list.refuseOther(); t.err != nil {
		return false
	}
	var more bool
	if t.key, more, t.err = t.list.archiveKey(); !more || t.err != nil {
		return false
	}
	t.at = t.list.Offset()
	// Each object says for itself whether it is binary. Archives that were made by concatenation
	// may have both.
	if t.err = t.list.detectBinary(); t.err == nil {
		t.inText = t.inText && !t.list.binary
		t.value, t.err = t.holder.Read(t.list)
	}
	if t.err != nil {
		t.err = fmt.Errorf("key %s: %w", fileio.Excerpt(t.key, 0), t.err)
	} else {
		t.list.binary = false
	}
	return t.err == nil
}

// archiveKey reads the key of the next object of an archive; more is false at its end.
func (r *Reader) archiveKey() (key string, more bool, err error) {
	r.binary = false
	r.lastLen = 0
	if !r.skipSpace() {
		if r.srcErr != io.EOF {
			return "", false, r.truncated("an archive")
		}
		return "", false, nil
	}
	w, err := r.token("the key of an object")
	if err == nil {
		for _, c := range w {
			// Control characters mean that the last object ended elsewhere than where its reader
			// thought, or that this is no archive. Reading on would find keys in the middle of
			// numbers.
			if c < ' ' || c == 0x7f {
				return "", false, r.Errorf("%s can't be a key: is this an archive?", quote(w))
			}
		}
	}
	return string(w), err == nil, err
}

// nextOfScript reads a line and its object.
func (t *TableReader[T]) nextOfScript() bool {
	for {
		line, more, err := t.list.scriptLine()
		if !more || err != nil {
			t.err = err
			// A malformed line means that this is no script, or a damaged one. What follows can't
			// be trusted, so it ends even a permissive reader.
			if err != nil { // permissive or not
				t.spec.Permissive, t.broken = false, true
			}
			return false
		}
		if t.key = line.Key; !t.unwanted() {
			t.value, t.err = readScripted(&t.files, line, t.holder)
			return t.err == nil
		}
	}
}

// Key returns the key of the last object that Next read.
func (t *TableReader[T]) Key() string { return t.key }

// Value returns the last object that Next read.
func (t *TableReader[T]) Value() T { return t.value }

// Err returns the error that made Next return false, if any.
func (t *TableReader[T]) Err() error { return t.err }

// Spare gives the table the elements of a matrix that is no longer used, for one of the next.
func (t *TableReader[T]) Spare(v []float32) {
	if !t.spec.Script {
		t.list.Spare(v)
	} else if r := t.files.reader; r != nil {
		r.Spare(v)
	}
}

// Skip clears the error that ended reading if Next can continue, and reports whether it can: with
// the next line of a script, or with the next object of an archive, if it can be found. In text
// that takes a key and an opening bracket; in binary, an intact object of another kind. The error
// that it returns is Err's, with the number of bytes of the archive that are passed over: if there
// is no way on, all that are left.
func (t *TableReader[T]) Skip() (more bool, err error) {
	err = t.err
	passed, more := t.skip()
	switch {
	case err == nil || passed == 0:
		return more, err
	case passed < 0:
		return more, fmt.Errorf("%w; what follows was not looked at", err)
	}
	return more, fmt.Errorf("%w; %d bytes that follow were not looked at", err, passed)
}

// skip is Skip with the bytes passed over, -1 if their number is unknown.
func (t *TableReader[T]) skip() (passed int64, more bool) {
	if t.spec.Script {
		if t.err != nil && !t.broken {
			t.err = nil
			return 0, true
		}
		return 0, false
	}
	r := t.list
	left := r.remaining()
	if t.err == nil || r.srcErr != nil && r.srcErr != io.EOF {
		return left, false
	}
	switch from := r.Offset(); {
	// The object is intact but of another kind, such as a vector among matrices. It can be read as
	// what it is, and the next key follows at once.
	case errors.Is(t.err, errOtherKind):
		more = r.passObject() == nil
	// In text, the beginning of an object can be recognized. In binary any bytes may look like one,
	// so there is no search there: it could find "objects" inside of the data of another.
	case t.inText && errors.Is(t.err, ErrCorrupt):
		more = r.findObject()
		passed = r.Offset() - from
		left = passed
	}
	if !more {
		return left, false
	}
	r.binary = false
	t.err = nil
	return passed, true
}

// Position returns how many bytes of the archive or script were read, and its size, -1 if unknown.
func (t *TableReader[T]) Position() (read, size int64) { return t.list.Offset(), t.list.size }

// Close closes the table and returns the first error.
func (t *TableReader[T]) Close() error {
	t.files.close()
	if err := t.closer.Close(); t.err == nil {
		t.err = err
	}
	return t.err
}

// All yields keys and objects until Next returns false. Afterwards, Err tells why it did.
func (t *TableReader[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for t.Next() {
			if !yield(t.key, t.value) {
				return
			}
		}
	}
}

// readScripted reads the object of a line of a script.
func readScripted[T any](files *fileCache, line ScriptLine, h Holder[T]) (v T, err error) {
	r, err := files.open(line.Name)
	if err == nil {
		v, err = h.Read(r)
		// Wait for a command before the object is used: what it has written may be whole and still
		// be wrong, and only its exit status tells.
		if closeErr := files.closeOther(); err == nil {
			err = closeErr // a command may fail after an intact object
		}
	}
	if err == nil && line.HasRange {
		if h.Slice == nil {
			err = fmt.Errorf("a range of such an object can't be taken: %w", ErrSpecifier)
		} else {
			v, err = h.Slice(v, line.Range)
		}
	}
	if err != nil {
		err = fmt.Errorf("key %s (%s): %w", fileio.Excerpt(line.Key, 0), line.Name, err)
	}
	return v, err
}

// fileCache keeps the last input open if it is a file, because lines of a script tend to name one
// archive.
type fileCache struct {
	opener *Opener
	name   string // of the file, without an offset
	in     io.ReadCloser
	reader *Reader
}

// open returns a reader at the object of an rxfilename.
func (c *fileCache) open(rxfilename string) (*Reader, error) {
	name, offset := splitOffset(rxfilename)
	f, ok := c.in.(io.Seeker)
	if ok && name == c.name {
		// Scripts made with an archive name it on every line. Without this, each line would open
		// the file anew and read a whole buffer for it.
		if _, err := f.Seek(offset, io.SeekStart); err == nil {
			return c.restart(rxfilename, offset)
		}
	}
	c.close()
	in, err := c.opener.OpenInput(rxfilename)
	if err != nil {
		return nil, err
	}
	c.in, c.name = in, name
	if _, ok := in.(io.Seeker); !ok {
		offset = 0
	}
	return c.restart(rxfilename, offset)
}

// restart returns a reader of the input, which is at an offset, with the buffer of the last reader.
func (c *fileCache) restart(name string, offset int64) (*Reader, error) {
	if c.reader == nil {
		c.reader = newReader(c.in, name)
	} else {
		old := c.reader
		c.reader = reuseBuffer(old.buf, c.in, name)
		c.reader.spare, c.reader.scratch = old.spare, old.scratch
	}
	c.reader.base = offset
	// size was computed from what is left of the file at this offset, and errors and limits count
	// from its beginning.
	if c.reader.size >= 0 {
		c.reader.size += offset
	}
	if err := c.refuseLFS(offset); err != nil {
		return nil, err
	}
	return c.reader, c.reader.detectBinary()
}

// refuseLFS returns an error if a file that is read from an offset on is a pointer of Git LFS.
func (c *fileCache) refuseLFS(offset int64) error {
	f, ok := c.in.(interface {
		io.ReadSeeker
		Stat() (fs.FileInfo, error)
	})
	if !ok || offset == 0 {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Size() > maxLFS {
		return nil // or it could not be read
	}
	head := make([]byte, lfsHead)
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	n, _ := io.ReadFull(f, head) // a file may be shorter
	if err := c.reader.refuseLFS(head[:n]); err != nil {
		return err
	}
	_, err := f.Seek(offset, io.SeekStart)
	return err
}

func (c *fileCache) close() error {
	if c.in == nil {
		return nil
	}
	err := c.in.Close()
	c.in = nil
	return err
}

// closeOther closes an input that is not a file. It holds a single object.
func (c *fileCache) closeOther() error {
	if _, ok := c.in.(io.Seeker); ok {
		return nil
	}
	return c.close()
}
