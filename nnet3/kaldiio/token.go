package kaldiio

import (
	"bytes"
	"fmt"
	"io"
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
	e.Offset = start
	return e
}

// skip consumes n bytes of the buffer.
func (r *Reader) skip(n int) {
	r.line += bytes.Count(r.buf[r.pos:r.pos+n], []byte{'\n'})
	r.pos += n
}
