package kaldiio

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// sized reads the size byte of a binary number, which must be want, and want bytes more. The bytes are valid until the
// next call.
func (r *Reader) sized(want int8, what string) ([]byte, error) {
	if !r.fill(1) {
		return nil, r.truncated(what)
	}
	if got := int8(r.buf[r.pos]); got != want {
		return nil, r.Errorf("reading %s: size byte is %d, want %d", what, got, want)
	}
	n := int(max(want, -want))
	if !r.fill(1 + n) {
		return nil, r.truncated(what)
	}
	b := r.buf[r.pos+1 : r.pos+1+n]
	r.pos += 1 + n
	return b, nil
}

// Int32 reads a signed 32-bit integer.
func (r *Reader) Int32() (int32, error) {
	if !r.binary {
		v, err := r.textInt(32)
		return int32(v), err
	}
	b, err := r.sized(4, "a 32-bit integer")
	if err != nil {
		return 0, err
	}
	return int32(binary.LittleEndian.Uint32(b)), nil
}

// Int reads a signed 32-bit integer.
func (r *Reader) Int() (int, error) {
	v, err := r.Int32()
	return int(v), err
}

// Int64 reads a signed 64-bit integer.
func (r *Reader) Int64() (int64, error) {
	if !r.binary {
		return r.textInt(64)
	}
	b, err := r.sized(8, "a 64-bit integer")
	if err != nil {
		return 0, err
	}
	return int64(binary.LittleEndian.Uint64(b)), nil
}

// Uint64 reads an unsigned 64-bit integer, Kaldi's size_t.
func (r *Reader) Uint64() (uint64, error) {
	if !r.binary {
		at := r.Offset()
		w, err := r.word("an unsigned integer", isDelimiter)
		if err != nil {
			return 0, err
		}
		v, perr := strconv.ParseUint(string(w), 10, 64)
		if perr != nil {
			return 0, r.errorAt(at, ErrCorrupt, fmt.Sprintf("expected an unsigned integer, got %s", quote(w)))
		}
		r.pos += len(w)
		return v, nil
	}
	b, err := r.sized(-8, "an unsigned 64-bit integer")
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// Float32 reads a floating-point number of either precision.
func (r *Reader) Float32() (float32, error) {
	if !r.binary {
		v, err := r.textFloat(32)
		return float32(v), err
	}
	v, err := r.binaryFloat()
	return float32(v), err
}

// Float64 reads a floating-point number of either precision.
func (r *Reader) Float64() (float64, error) {
	if !r.binary {
		return r.textFloat(64)
	}
	return r.binaryFloat()
}

func (r *Reader) binaryFloat() (float64, error) {
	c, err := r.PeekByte()
	if err != nil {
		return 0, r.truncated("a floating-point number")
	}
	if c == 8 {
		b, err := r.sized(8, "a floating-point number")
		if err != nil {
			return 0, err
		}
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
	}
	b, err := r.sized(4, "a floating-point number")
	if err != nil {
		return 0, err
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), nil
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
