package kaldiio

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/nnopt/nnopt/internal/fileio"
)

// word returns the next bytes up to white space, or to a byte for which stop returns true, without
// consuming them. They are valid until the next call.
func (r *Reader) word(what string, stop func(byte) bool) ([]byte, error) {
	if !r.skipSpace() {
		return nil, r.truncated(what)
	}
	for n := 0; ; n++ {
		if n > maxTokenSize {
			return nil, r.Errorf("reading %s: no end after %d bytes", what, maxTokenSize)
		}
		if r.pos+n >= r.end && !r.fill(n+1) {
			if r.srcErr != io.EOF {
				return nil, r.truncated(what)
			}
			return r.buf[r.pos : r.pos+n], nil
		}
		if c := r.buf[r.pos+n]; isSpace(c) || stop != nil && stop(c) {
			return r.buf[r.pos : r.pos+n], nil
		}
	}
}

// PeekIs reports whether the next token is the given one, without consuming it.
func (r *Reader) PeekIs(token string) bool {
	w, err := r.word("a token", nil)
	return err == nil && string(w) == token
}

// Token reads a token and the one white-space character that ends it.
func (r *Reader) Token() (string, error) {
	w, err := r.token("a token")
	return string(w), err
}

func (r *Reader) token(what string) ([]byte, error) {
	w, err := r.word(what, nil)
	if err != nil {
		return nil, err
	}
	r.lastLen = copy(r.last[:], w)
	n := len(w)
	if !r.fill(n + 1) { // a character must follow the token
		r.pos += n
		return nil, r.truncated(what)
	}
	w = r.buf[r.pos : r.pos+n]
	r.pos += n
	r.advance()
	return w, nil
}

// Expect reads the given tokens in order.
func (r *Reader) Expect(tokens ...string) error {
	for _, want := range tokens {
		at := r.Offset()
		w, err := r.word(want, nil)
		if err != nil {
			return err
		}
		if string(w) != want {
			return r.errorAt(at, ErrCorrupt, fmt.Sprintf("expected token %s, got %s", want, quote(w)))
		}
		if _, err := r.token(want); err != nil {
			return err
		}
	}
	return nil
}

// ExpectOneOf reads one of the given tokens and returns it.
func (r *Reader) ExpectOneOf(tokens ...string) (string, error) {
	at := r.Offset()
	w, err := r.word(tokens[0], nil)
	if err != nil {
		return "", err
	}
	for _, t := range tokens {
		if string(w) == t {
			_, err := r.token(t)
			return t, err
		}
	}
	return "", r.errorAt(at, ErrCorrupt, fmt.Sprintf("expected one of the tokens %q, got %s", tokens, quote(w)))
}

// quote makes arbitrary bytes printable.
func quote(w []byte) string {
	return strconv.Quote(fileio.Excerpt(string(w), 0))
}

// SkipPast consumes everything up to the given token, the token, and the white space after it. It
// is for parts of a file that the caller can't read.
func (r *Reader) SkipPast(token string) error {
	start := r.Offset()
	for r.fill(len(token) + 1) {
		i := bytes.IndexByte(r.buf[r.pos:r.end-len(token)], token[0])
		if i < 0 {
			r.skip(r.end - len(token) - r.pos)
			continue
		}
		r.skip(i)
		if string(r.buf[r.pos:r.pos+len(token)]) == token && isSpace(r.buf[r.pos+len(token)]) {
			r.lastLen = copy(r.last[:], token)
			r.skip(len(token) + 1)
			return nil
		}
		r.skip(1)
	}
	e := r.truncated(token)
	e.offset = start
	return e
}

// skip consumes n bytes of the buffer.
func (r *Reader) skip(n int) {
	r.line += bytes.Count(r.buf[r.pos:r.pos+n], []byte{'\n'})
	r.pos += n
}

// sized reads a binary number: a size byte, which must be want, then |want| bytes.
func (r *Reader) sized(want int8, what string) (uint64, error) {
	if !r.fill(1) {
		return 0, r.truncated(what)
	}
	if got := int8(r.buf[r.pos]); got != want {
		return 0, r.Errorf("reading %s: size byte is %d, want %d", what, got, want)
	}
	n := int(max(want, -want))
	if !r.fill(1 + n) {
		return 0, r.truncated(what)
	}
	b := r.buf[r.pos+1:]
	r.pos += 1 + n
	if n == 4 {
		return uint64(binary.LittleEndian.Uint32(b)), nil
	}
	return binary.LittleEndian.Uint64(b), nil
}

// Int32 reads a signed 32-bit integer.
func (r *Reader) Int32() (int32, error) {
	if r.binary {
		v, err := r.sized(4, "a 32-bit integer")
		return int32(v), err
	}
	w, err := r.word("an integer", isDelimiter)
	if err != nil {
		return 0, err
	}
	v, parseErr := strconv.ParseInt(string(w), 10, 32)
	if parseErr != nil {
		return 0, r.Errorf("expected an integer, got %s", quote(w))
	}
	r.pos += len(w)
	return int32(v), nil
}

// Int reads a signed 32-bit integer.
func (r *Reader) Int() (int, error) {
	v, err := r.Int32()
	return int(v), err
}

// Uint64 reads an unsigned 64-bit integer, Kaldi's size_t.
func (r *Reader) Uint64() (uint64, error) {
	if r.binary {
		return r.sized(-8, "an unsigned 64-bit integer")
	}
	at := r.Offset()
	w, err := r.word("an unsigned integer", isDelimiter)
	if err != nil {
		return 0, err
	}
	v, parseErr := strconv.ParseUint(string(w), 10, 64)
	if parseErr != nil {
		return 0, r.errorAt(at, ErrCorrupt, fmt.Sprintf("expected an unsigned integer, got %s", quote(w)))
	}
	r.pos += len(w)
	return v, nil
}

// Float32 reads a floating-point number of either precision.
func (r *Reader) Float32() (float32, error) {
	v, err := r.float(32)
	return float32(v), err
}

// Float64 reads a floating-point number of either precision.
func (r *Reader) Float64() (float64, error) { return r.float(64) }

// float reads a floating-point number. In text it parses it with a precision of bits.
func (r *Reader) float(bits int) (float64, error) {
	if !r.binary {
		return r.textFloat(bits)
	}
	const what = "a floating-point number"
	if r.fill(1) && r.buf[r.pos] == 8 {
		v, err := r.sized(8, what)
		return math.Float64frombits(v), err
	}
	v, err := r.sized(4, what)
	return float64(math.Float32frombits(uint32(v))), err
}

// Bool reads T or F.
func (r *Reader) Bool() (bool, error) {
	if !r.binary {
		r.skipSpace()
	}
	c, err := r.PeekByte()
	if err != nil {
		return false, r.truncated("a boolean")
	}
	if c != 'T' && c != 'F' {
		return false, r.Errorf("expected T or F, got %s", quote([]byte{c}))
	}
	r.pos++
	return c == 'T', nil
}
