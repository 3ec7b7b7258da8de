package kaldiio

import (
	"fmt"
	"math"
	"strconv"
)

// isDelimiter says which bytes end a number in text, besides white space.
func isDelimiter(c byte) bool { return c == ']' || c == '[' || c == ',' || c == ';' || c == '<' }

// textInt reads an integer of the given number of bits.
func (r *Reader) textInt(bits int) (int64, error) {
	w, err := r.word("an integer", isDelimiter)
	if err != nil {
		return 0, err
	}
	v, perr := strconv.ParseInt(string(w), 10, bits)
	if perr != nil {
		return 0, r.errorAt(r.Offset(), ErrCorrupt, fmt.Sprintf("expected an integer, got %s", quote(w)))
	}
	r.pos += len(w)
	return v, nil
}

// textFloat reads a floating-point number. Infinities and NaN are spelled as C's streams do.
func (r *Reader) textFloat(bits int) (float64, error) {
	w, err := r.word("a number", isDelimiter)
	if err != nil {
		return 0, err
	}
	v, ok := parseFloat(w, bits)
	if !ok {
		return 0, r.errorAt(r.Offset(), ErrCorrupt, fmt.Sprintf("expected a number, got %s", quote(w)))
	}
	r.pos += len(w)
	return v, nil
}

// parseFloat parses what Kaldi takes for a number; hexadecimal numbers and underscores are none. A number that is too
// large becomes infinite, as in Kaldi.
func parseFloat(w []byte, bits int) (float64, bool) {
	for _, c := range w {
		if c == '_' || c == 'x' || c == 'X' {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(string(w), bits)
	if err == nil {
		return v, true
	}
	if e, ok := err.(*strconv.NumError); ok && e.Err == strconv.ErrRange {
		return v, true
	}
	if s := string(w); s == "-nan" || s == "-NaN" || s == "-NAN" {
		return math.NaN(), true
	}
	return 0, false
}

// open consumes the bracket before a vector or matrix in text.
func (r *Reader) open(what string) error {
	if !r.skipSpace() {
		return r.truncated(what)
	}
	if r.buf[r.pos] != '[' {
		w, _ := r.word(what, nil)
		return r.Errorf("reading %s: expected [, got %s", what, quote(w))
	}
	r.pos++
	return nil
}

// closeLine consumes the newline that follows a closing bracket, if there is one.
func (r *Reader) closeLine() {
	if r.fill(1) && r.buf[r.pos] == '\r' {
		r.advance()
	}
	if r.fill(1) && r.buf[r.pos] == '\n' {
		r.advance()
	}
}

// textVector reads "[ 1 2 3 ]".
func textVector[T real](r *Reader) ([]T, error) {
	if err := r.open("a vector"); err != nil {
		return nil, err
	}
	v := []T{}
	for {
		if !r.skipSpace() {
			return nil, r.truncated("a vector")
		}
		if r.buf[r.pos] == ']' {
			r.pos++
			r.closeLine()
			return v, nil
		}
		x, err := r.textFloat(bitsOf[T]())
		if err != nil {
			return nil, err
		}
		if v = append(v, T(x)); len(v) > maxElements {
			return nil, r.mayHave(len(v))
		}
	}
}

// textMatrix reads "[", rows that end in newlines or semicolons, "]".
func textMatrix[T real](r *Reader) (rows, cols int, data []T, err error) {
	if err := r.open("a matrix"); err != nil {
		return 0, 0, nil, err
	}
	data = []T{}
	begin := 0 // of the current row
	for {
		if r.pos >= r.end && !r.fill(1) {
			return 0, 0, nil, r.truncated("a matrix")
		}
		c := r.buf[r.pos]
		switch {
		case c == '\n' || c == ';' || c == ']':
			if n := len(data) - begin; n > 0 {
				if rows > 0 && n != cols {
					return 0, 0, nil, r.Errorf("row %d of a matrix has %d columns, the rows before it have %d", rows, n, cols)
				}
				cols = n
				rows++
				begin = len(data)
			}
			r.advance()
			if c == ']' {
				r.closeLine()
				return rows, cols, data, nil
			}
		case isSpace(c):
			r.pos++
		default:
			x, err := r.textFloat(bitsOf[T]())
			if err != nil {
				return 0, 0, nil, err
			}
			if data = append(data, T(x)); len(data) > maxElements {
				return 0, 0, nil, r.mayHave(len(data))
			}
		}
	}
}
