package kaldiio

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

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
