package kaldiio

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
