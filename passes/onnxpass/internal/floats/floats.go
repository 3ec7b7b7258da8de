// Package floats works on the bytes of float32s as models have them, in little-endian order: weights are many, and most
// lie in mapped files.
package floats

import (
	"encoding/binary"
	"math"
)

// infinity is the exponent of infinity and NaN.
const infinity = 0x7f800000

// Finite reports whether all floats are. It looks at exponents, some at a time.
func Finite(raw []byte) bool {
	for ; len(raw) >= 16; raw = raw[16:] {
		// The highest bit is set where an exponent has no zero, see Scale.
		a, b := binary.LittleEndian.Uint64(raw)&(infinity<<32|infinity), binary.LittleEndian.Uint64(raw[8:])&(infinity<<32|infinity)
		if ((a+(1<<55|1<<23))|(b+(1<<55|1<<23)))&(1<<63|1<<31) != 0 {
			return false
		}
	}
	for ; len(raw) >= 4; raw = raw[4:] {
		if binary.LittleEndian.Uint32(raw)&infinity == infinity {
			return false
		}
	}
	return true
}

// Scale sets floats to others, as many of them, times a factor, and reports whether all of these are finite.
func Scale(to, from []byte, f float32) (finite bool) {
	to = to[:len(from)]
	// The highest bit tells whether any is infinite or NaN: then its exponent has no zero, and one more carries to the
	// sign.
	exponents := uint32(0)
	le, i := binary.LittleEndian, 0
	for ; i <= len(from)-8; i += 8 {
		x := le.Uint64(from[i : i+8])
		y := math.Float32bits(math.Float32frombits(uint32(x)) * f)
		z := math.Float32bits(math.Float32frombits(uint32(x>>32)) * f)
		le.PutUint64(to[i:i+8], uint64(y)|uint64(z)<<32)
		exponents |= (y&infinity + 1<<23) | (z&infinity + 1<<23)
	}
	if i <= len(from)-4 {
		y := math.Float32bits(math.Float32frombits(le.Uint32(from[i:])) * f)
		le.PutUint32(to[i:], y)
		exponents |= y&infinity + 1<<23
	}
	return exponents>>31 == 0
}
