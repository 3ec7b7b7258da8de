package kaldiio

import (
	"bytes"
	"fmt"
	"unicode"
)

// NotLookedAt adds to an error how many bytes of an archive nobody looks at because of it, -1 for an unknown number.
func NotLookedAt(err error, passed int64) error {
	switch {
	case err == nil || passed == 0:
		return err
	case passed < 0:
		return fmt.Errorf("%w; what follows was not looked at", err)
	}
	return fmt.Errorf("%w; %d bytes that follow were not looked at", err, passed)
}

// passObject reads a binary vector or matrix, whichever it is, and drops it.
func (r *Reader) passObject() error {
	if r.isNot("vector", 'V', "matrix") != nil {
		_, err := r.Vector()
		return err
	}
	_, err := r.Matrix()
	return err
}

// findObject moves on in text to where an object begins: to a word that is neither a number nor a bracket and has an opening bracket behind it. It reports
// whether there is one.
func (r *Reader) findObject() bool {
	for r.skipSpace() {
		w, err := r.word("a key", nil)
		if err != nil { // longer than any key
			r.skip(r.end - r.pos)
			continue
		}
		if bytes.ContainsFunc(w, unicode.IsControl) {
			return false // this is no text
		}
		n := len(w)
		_, number := parseFloat(w, 64)
		if !number && bytes.IndexByte(w, '[') < 0 && bytes.IndexByte(w, ']') < 0 && r.opensAfter(n) {
			return true
		}
		r.skip(n)
	}
	return false
}

// mostBlanks is how many blanks may stand between a key and a bracket.
const mostBlanks = 16

// opensAfter reports whether n bytes from here, and some blanks, there is an opening bracket.
func (r *Reader) opensAfter(n int) bool {
	for k := n; k < n+mostBlanks && r.fill(k+1); k++ {
		switch r.buf[r.pos+k] {
		case ' ', '\t':
		case '[':
			return k > n
		default:
			return false
		}
	}
	return false
}
