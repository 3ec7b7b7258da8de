package computation

import (
	"slices"

	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// A wire carries values to or from a file in Kaldi's format, so that one list of fields both writes
// and reads a record. The first error in a file that is read stays in err, and nothing is read
// after it; a writer keeps its own.
type wire struct {
	r   *kaldiio.Reader // nil when writing
	w   *kaldiio.Writer // nil when reading
	err error
}

// reading reports whether values come from a file, without an error so far.
func (f *wire) reading() bool { return f.r != nil && f.err == nil }

// failf reports a fault of the file, unless it is not the first.
func (f *wire) failf(format string, args ...any) {
	if f.reading() {
		f.err = f.r.Errorf(format, args...)
	}
}

// value carries one value.
func value[T any](f *wire, v *T, read func(*kaldiio.Reader) (T, error), write func(*kaldiio.Writer, T)) {
	if f.w != nil {
		write(f.w, *v)
	} else if f.err == nil {
		*v, f.err = read(f.r)
	}
}

func (f *wire) tokens(tokens ...string) {
	if f.w != nil {
		for _, t := range tokens {
			f.w.Token(t)
		}
	} else if f.err == nil {
		f.err = f.r.Expect(tokens...)
	}
}

// end carries the last token of a record.
func (f *wire) end(token string) {
	f.tokens(token)
	f.newline()
}

func (f *wire) newline() {
	if f.w != nil {
		f.w.Newline()
	}
}

func (f *wire) int32(token string, v *int32) {
	f.tokens(token)
	value(f, v, (*kaldiio.Reader).Int32, (*kaldiio.Writer).Int32)
}

func (f *wire) bool(token string, v *bool) {
	f.tokens(token)
	value(f, v, (*kaldiio.Reader).Bool, (*kaldiio.Writer).Bool)
}

// flag carries a token that is in the file if *v is true, and the end of the record.
func (f *wire) flag(token string, v *bool, end string) {
	if f.reading() {
		var got string
		if got, f.err = f.r.ExpectOneOf(token, end); got == end {
			return
		}
		*v = true
	} else if *v {
		f.tokens(token)
	}
	f.end(end)
}

func (f *wire) indexes(v *[]index.Index) { value(f, v, index.ReadVector, index.WriteVector) }

// list carries a count and that many elements, each of at least size bytes. Memory grows with what
// is in the file, not with the count.
func list[T any](f *wire, count, token string, size int, s *[]T, element func(*wire, *T)) {
	n := uint64(len(*s))
	f.tokens(count)
	value(f, &n, (*kaldiio.Reader).Uint64, (*kaldiio.Writer).Uint64)
	f.tokens(token)
	f.newline()
	if f.w != nil {
		for i := range *s {
			element(f, &(*s)[i])
		}
		return
	}
	if f.err != nil || n == 0 {
		return
	}
	// The count is untrusted. Room is made for as many elements as the rest of the file can hold.
	read := make([]T, 0, f.r.Capacity(n, size))
	for range n {
		var zero T
		read = append(read, zero)
		if element(f, &read[len(read)-1]); f.err != nil {
			return
		}
	}
	*s = slices.Clip(read)
}
