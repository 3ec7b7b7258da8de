package index

import (
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// Vectors of indexes are written as differences, a byte each where that will do. The byte values with a meaning of
// their own:
const (
	nodeChange = '|' // 124: the number of a node follows; vectors of Cindex only
	sameN      = 125 // as the index before; vectors of Cindex only
	nextN      = 126 // as the index before, n one higher; vectors of Cindex only
	spelledOut = 127 // n, t and x follow
)

// Read reads one Index.
func Read(r *kaldiio.Reader) (Index, error) {
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

// Write writes one Index.
func Write(w *kaldiio.Writer, a Index) {
	w.Token("<I1>")
	writePlain(w, a)
}

func writePlain(w *kaldiio.Writer, a Index) {
	w.Int32(a.N)
	w.Int32(a.T)
	w.Int32(a.X)
}

// readCount reads what comes before the elements of a vector.
func readCount(r *kaldiio.Reader) (int, error) {
	if err := r.Expect("<I1V>"); err != nil {
		return 0, err
	}
	n, err := r.Int()
	if err == nil && n < 0 {
		return 0, r.Errorf("a vector of %d indexes", n)
	}
	return n, err
}

// wireSize returns how many bytes an index takes at least: one in binary, and "<I1> 0 0 0 " in text.
func wireSize(r *kaldiio.Reader) int {
	if r.Binary() {
		return 1
	}
	return 11
}

// ReadVector reads a vector of Index. An empty vector is nil.
func ReadVector(r *kaldiio.Reader) ([]Index, error) {
	n, err := readCount(r)
	if err != nil || n == 0 {
		return nil, err
	}
	v := make([]Index, 0, r.Capacity(uint64(n), wireSize(r)))
	var last Index
	for range n {
		if r.Binary() {
			last, err = readDelta(r, last, 124, false)
		} else {
			last, err = Read(r)
		}
		if err != nil {
			return nil, err
		}
		v = append(v, last)
	}
	return v, nil
}

// readDelta reads an element of a vector that comes after last. A byte within ±most is a difference in t; steps says
// whether the bytes sameN and nextN may occur.
func readDelta(r *kaldiio.Reader, last Index, most int8, steps bool) (Index, error) {
	b, err := r.Byte()
	if err != nil {
		return Index{}, err
	}
	switch c := int8(b); {
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

// WriteVector writes a vector of Index.
func WriteVector(w *kaldiio.Writer, v []Index) {
	w.Token("<I1V>")
	w.Int(len(v))
	var last Index
	for _, a := range v {
		if !w.Binary() {
			Write(w, a)
			continue
		}
		if d, ok := deltaT(last, a); ok && -125 < d && d < 125 {
			w.Byte(byte(int8(d)))
		} else {
			w.Byte(spelledOut)
			writePlain(w, a)
		}
		last = a
	}
}

// deltaT returns the difference in t of two indexes that differ in nothing else.
func deltaT(a, b Index) (int64, bool) {
	return int64(b.T) - int64(a.T), a.N == b.N && a.X == b.X
}

// ReadCindexes reads a vector of Cindex. An empty vector is nil.
func ReadCindexes(r *kaldiio.Reader) ([]Cindex, error) {
	n, err := readCount(r)
	if err != nil || n == 0 {
		return nil, err
	}
	v := make([]Cindex, 0, r.Capacity(uint64(n), wireSize(r)))
	var last Cindex
	for i := range n {
		if r.Binary() {
			last, err = readCindexBinary(r, last, i == 0)
		} else {
			last, err = readCindexText(r, last, i == 0)
		}
		if err != nil {
			return nil, err
		}
		v = append(v, last)
	}
	if !r.Binary() {
		if err := punctuation(r, ']'); err != nil {
			return nil, err
		}
	}
	return v, nil
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
	most := int8(123)
	if first {
		most = 124 // no node can follow here
	}
	last.Index, err = readDelta(r, last.Index, most, true)
	return last, err
}

func readCindexText(r *kaldiio.Reader, last Cindex, first bool) (Cindex, error) {
	c, err := r.PeekNonSpace()
	if err != nil {
		return last, err
	}
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
	last.Index, err = Read(r)
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
	most := int64(123)
	if first {
		most = 124
	}
	a := c.Index
	d, ok := deltaT(last, a)
	switch {
	case ok && -most <= d && d <= most:
		w.Byte(byte(int8(d)))
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
	Write(w, c.Index)
}
