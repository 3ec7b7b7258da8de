package kaldiio

import (
	"errors"
	"math"
	"strconv"
)

// isDelimiter reports whether a byte that is not white space ends a number in text.
func isDelimiter(c byte) bool { return c == ']' || c == '[' || c == ',' || c == ';' || c == '<' }

// textFloat reads a floating-point number. Infinities and NaN are spelled as in C's streams.
func (r *Reader) textFloat(bits int) (float64, error) {
	w, err := r.word("a number", isDelimiter)
	if err != nil {
		return 0, err
	}
	v, ok := parseFloat(w, bits)
	if !ok {
		return 0, r.Errorf("expected a number, got %s", quote(w))
	}
	r.pos += len(w)
	return v, nil
}

// parseFloat parses a number as Kaldi does: without hexadecimal digits or underscores. A number
// that is too large becomes infinite.
func parseFloat(w []byte, bits int) (float64, bool) {
	for _, c := range w {
		if c == '_' || c == 'x' || c == 'X' {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(string(w), bits)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return v, true
	}
	if s := string(w); s == "-nan" || s == "-NaN" || s == "-NAN" {
		return math.NaN(), true
	}
	return 0, false
}

// open consumes the opening bracket of a vector or matrix in text.
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

// closeLine consumes the newline after a closing bracket, if there is one.
func (r *Reader) closeLine() {
	if r.fill(1) && r.buf[r.pos] == '\r' {
		r.advance()
	}
	if r.fill(1) && r.buf[r.pos] == '\n' {
		r.advance()
	}
}

// textList reads a list in brackets. The function element reads one element.
func textList[T any](r *Reader, what string, element func() (T, error)) ([]T, error) {
	if err := r.open(what); err != nil {
		return nil, err
	}
	v := []T{}
	for {
		if !r.skipSpace() {
			return nil, r.truncated(what)
		}
		if r.buf[r.pos] == ']' {
			r.pos++
			r.closeLine()
			return v, nil
		}
		x, err := element()
		if err != nil {
			return nil, err
		}
		if v = append(v, x); len(v) > maxElements {
			return nil, r.mayHave(len(v))
		}
	}
}

// textMatrix reads "[", rows that end in newlines or semicolons, "]".
func textMatrix[T real](r *Reader) (m dense[T], err error) {
	if err := r.open("a matrix"); err != nil {
		return m, err
	}
	bits := bitsOf[T]()
	m.Data = []T{}
	begin := 0 // of the current row
	for {
		if r.pos >= r.end && !r.fill(1) {
			return m, r.truncated("a matrix")
		}
		c := r.buf[r.pos]
		switch {
		case c == '\n' || c == ';' || c == ']':
			if n := len(m.Data) - begin; n > 0 {
				if m.Rows > 0 && n != m.Cols {
					return m, r.Errorf("row %d of a matrix has %d columns, the rows before it have %d", m.Rows, n, m.Cols)
				}
				m.Rows, m.Cols, m.Stride, begin = m.Rows+1, n, n, len(m.Data)
			}
			r.advance()
			if c == ']' {
				r.closeLine()
				return m, nil
			}
		case isSpace(c):
			r.pos++
		default:
			x, err := r.textFloat(bits)
			if err != nil {
				return m, err
			}
			if m.Data = append(m.Data, T(x)); len(m.Data) > maxElements {
				return m, r.mayHave(len(m.Data))
			}
		}
	}
}
