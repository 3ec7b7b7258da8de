package kaldiio

import (
	"bytes"
	"unicode"
)

// passObject reads and drops a binary vector or matrix.
func (r *Reader) passObject() error {
	if r.isNot("vector", 'V', "matrix") != nil {
		_, err := r.Vector()
		return err
	}
	_, err := r.Matrix()
	return err
}

// findObject moves on in text to the next key, a word before an opening bracket that is neither a
// number nor a bracket itself. It reports whether there is one.
func (r *Reader) findObject() bool {
	for r.skipSpace() {
		w, err := r.word("a key", nil)
		if err != nil { // longer than any key
			r.skip(r.end - r.pos)
			continue
		}
		if bytes.ContainsFunc(w, unicode.IsControl) {
			return false // this is not text
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

// maxBlanks bounds the blanks between a key and a bracket.
const maxBlanks = 16

// opensAfter reports whether an opening bracket follows after n bytes and some blanks.
func (r *Reader) opensAfter(n int) bool {
	for k := n; k < n+maxBlanks && r.fill(k+1); k++ {
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
