package kaldiio

import "io"

// Objects reads the objects that lines of scripts name, in any order. It keeps the last file open,
// because lines tend to name one archive.
type Objects[T any] struct {
	files fileCache
	hold  Holder[T]
}

// NewObjects returns an Objects that opens files by o.
func NewObjects[T any](o *Opener, h Holder[T]) *Objects[T] {
	return &Objects[T]{files: fileCache{opener: o}, hold: h}
}

// Of returns the object of a line. The error names the key and the file.
func (s *Objects[T]) Of(line ScriptLine) (T, error) { return readScripted(&s.files, line, s.hold) }

// Close closes the last file. The next call of Of opens its file anew.
func (s *Objects[T]) Close() error { return s.files.close() }

// Shapes tells how large the matrices are that lines of a script name. It reads their headers, and
// their elements only where nothing else tells: in text and from commands.
type Shapes struct{ files fileCache }

// shapeBuffer is the size of a buffer for headers. A token fits into it.
const shapeBuffer = 2 * maxTokenSize

// NewShapes returns a Shapes that opens files by o.
func NewShapes(o *Opener) *Shapes {
	return &Shapes{files: fileCache{opener: o, reader: &Reader{buf: make([]byte, shapeBuffer)}}}
}

// Of returns the rows and columns of the matrix of a line. The error wraps ErrTruncated if its file
// is too short for its elements; otherwise it is that of reading the matrix.
func (s *Shapes) Of(line ScriptLine) (rows, cols int, err error) {
	m, err := readScripted(&s.files, line, Holder[shape]{Read: readShape, Slice: shape.slice})
	return m.rows, m.cols, err
}

// Close closes the last file.
func (s *Shapes) Close() error { return s.files.close() }

// A shape is a matrix without its elements.
type shape struct{ rows, cols int }

func (s shape) slice(r Range) (shape, error) {
	_, rows, _, cols, err := r.in(s.rows, s.cols)
	return shape{rows, cols}, err
}

// readShape reads a matrix and drops its elements, or passes over them.
func readShape(r *Reader) (s shape, err error) {
	if _, ok := r.src.(io.Seeker); !ok || !r.binary || r.size < 0 {
		m, err := r.Matrix()
		return shape{m.Rows, m.Cols}, err
	}
	h, err := r.matrixHeader()
	if err != nil {
		return s, err
	}
	if left := r.remaining(); h.bytes() > left {
		return s, r.shortOf(h.what(), h.bytes(), left)
	}
	return shape{h.rows, h.cols}, nil
}
