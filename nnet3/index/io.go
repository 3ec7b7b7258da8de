package index

import "github.com/nnopt/nnopt/nnet3/kaldiio"

// Vectors of indexes are written as differences, in one byte each if possible. These byte values
// have a meaning of their own:
const (
	nodeChange = '|' // 124: the number of a node follows; vectors of Cindex only
	sameN      = 125 // n as before; vectors of Cindex only
	nextN      = 126 // n one higher than before; vectors of Cindex only
	spelledOut = 127 // n, t and x follow
)

// ReadVector reads a vector of Index. An empty vector is nil.
func ReadVector(r *kaldiio.Reader) ([]Index, error) {
	return readVector(r, func(last Index, _ bool) (Index, error) {
		if r.Binary() {
			return readDelta(r, last, 124, false)
		}
		return read(r)
	})
}

// ReadCindexes reads a vector of Cindex. An empty vector is nil.
func ReadCindexes(r *kaldiio.Reader) ([]Cindex, error) {
	v, err := readVector(r, func(last Cindex, first bool) (Cindex, error) {
		if r.Binary() {
			return readCindexBinary(r, last, first)
		}
		return readCindexText(r, last, first)
	})
	if err == nil && len(v) > 0 && !r.Binary() {
		err = punctuation(r, ']')
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// readVector reads a vector. The function next reads the element after last.
func readVector[T any](r *kaldiio.Reader, next func(last T, first bool) (T, error)) ([]T, error) {
	if err := r.Expect("<I1V>"); err != nil {
		return nil, err
	}
	n, err := r.Int()
	if err == nil && n < 0 {
		err = r.Errorf("a vector of %d indexes", n)
	}
	if err != nil || n == 0 {
		return nil, err
	}
	wire := 11 // "<I1> 0 0 0 "
	if r.Binary() {
		wire = 1
	}
	v := make([]T, 0, r.Capacity(uint64(n), wire))
	var last T
	for i := range n {
		if last, err = next(last, i == 0); err != nil {
			return nil, err
		}
		v = append(v, last)
	}
	return v, nil
}

// read reads an Index with its token.
func read(r *kaldiio.Reader) (Index, error) {
	if err := r.Expect("<I1>"); err != nil {
		return Index{}, err
	}
	return readPlain(r)
}

// readPlain reads n, t and x.
func readPlain(r *kaldiio.Reader) (a Index, err error) {
	for _, p := range [...]*int32{&a.N, &a.T, &a.X} {
		if *p, err = r.Int32(); err != nil {
			return a, err
		}
	}
	return a, nil
}

// readDelta reads the element after last. A byte within ±most is a difference in t. The bytes sameN
// and nextN may only occur if steps is true.
func readDelta(r *kaldiio.Reader, last Index, most int8, steps bool) (Index, error) {
	b, err := r.Byte()
	if err != nil {
		return Index{}, err
	}
	switch c := int8(b); {
	// A byte is a difference in time to the element before, with everything else the same. It wraps
	// around as Kaldi's does.
	case -most <= c && c <= most:
		last.T += int32(c)
	case c == spelledOut:
		return readPlain(r)
	case steps && (c == sameN || c == nextN):
		last.N += int32(c) - sameN
	default:
		return Index{}, r.Errorf("unexpected byte %d in a vector of indexes", c)
	}
	return last, nil
}

func readCindexBinary(r *kaldiio.Reader, last Cindex, first bool) (Cindex, error) {
	c, err := r.PeekByte()
	if err != nil {
		return last, err
	}
	if c == nodeChange {
		if _, err = r.Byte(); err != nil {
			return last, err
		}
		if last.Node, err = r.Int32(); err != nil {
			return last, err
		}
	} else if first {
		return last, r.Errorf("a vector of indexes does not begin with a node")
	}
	last.Index, err = readDelta(r, last.Index, maxDelta(first), true)
	return last, err
}

// maxDelta returns the largest difference in t that one byte of a vector of Cindex may hold.
func maxDelta(first bool) int8 {
	if first {
		return 124 // the node precedes it, so this can't be nodeChange
	}
	return 123
}

func readCindexText(r *kaldiio.Reader, last Cindex, first bool) (Cindex, error) {
	c, err := r.PeekNonSpace()
	if err != nil {
		return last, err
	}
	// A bracket closes the rows of one node, and the next node opens another.
	if first || c == ']' {
		if !first {
			if err = punctuation(r, ']'); err != nil {
				return last, err
			}
		}
		if err = punctuation(r, '['); err != nil {
			return last, err
		}
		if last.Node, err = r.Int32(); err != nil {
			return last, err
		}
		if err = punctuation(r, ':'); err != nil {
			return last, err
		}
	}
	last.Index, err = read(r)
	return last, err
}

// punctuation consumes white space and the given character.
func punctuation(r *kaldiio.Reader, want byte) error {
	c, err := r.PeekNonSpace()
	if err != nil {
		return err
	}
	if c != want {
		return r.Errorf("expected %q in a vector of indexes, got %q", want, c)
	}
	_, err = r.Byte()
	return err
}

// write writes an Index with its token.
func write(w *kaldiio.Writer, a Index) {
	w.Token("<I1>")
	writePlain(w, a)
}

func writePlain(w *kaldiio.Writer, a Index) {
	w.Int32(a.N)
	w.Int32(a.T)
	w.Int32(a.X)
}

// WriteVector writes a vector of Index.
func WriteVector(w *kaldiio.Writer, v []Index) {
	w.Token("<I1V>")
	w.Int(len(v))
	var last Index
	for _, a := range v {
		if !w.Binary() {
			write(w, a)
		} else if !writeDelta(w, last, a, 124) {
			w.Byte(spelledOut)
			writePlain(w, a)
		}
		last = a
	}
}

// writeDelta writes the difference in t as a byte, if that is at most most and the only difference.
func writeDelta(w *kaldiio.Writer, last, a Index, most int8) bool {
	d := int64(a.T) - int64(last.T)
	if a.N != last.N || a.X != last.X || d < -int64(most) || d > int64(most) {
		return false
	}
	w.Byte(byte(int8(d)))
	return true
}

// WriteCindexes writes a vector of Cindex.
func WriteCindexes(w *kaldiio.Writer, v []Cindex) {
	w.Token("<I1V>")
	w.Int(len(v))
	var last Cindex
	for i, c := range v {
		change := i == 0 || c.Node != last.Node
		if w.Binary() {
			writeCindexBinary(w, last.Index, c, change, i == 0)
		} else {
			writeCindexText(w, c, change, i == 0)
		}
		last = c
	}
	if !w.Binary() && len(v) > 0 {
		w.Byte(']')
	}
}

func writeCindexBinary(w *kaldiio.Writer, last Index, c Cindex, change, first bool) {
	if change {
		w.Byte(nodeChange)
		w.Int32(c.Node)
	}
	switch a := c.Index; {
	case writeDelta(w, last, a, maxDelta(first)):
	case a.T == last.T && a.X == last.X && a.N == last.N+1:
		w.Byte(nextN)
	default:
		w.Byte(spelledOut)
		writePlain(w, a)
	}
}

func writeCindexText(w *kaldiio.Writer, c Cindex, change, first bool) {
	if change {
		if !first {
			w.Byte(']')
		}
		w.Byte('[')
		w.Int32(c.Node)
		w.Byte(':')
	}
	write(w, c.Index)
}
