// Package half converts float16s of IEEE 754: a sign, 5 bits of an exponent and 10 bits of a fraction.
// The largest one is 65504.
package half

import "math"

// Bits returns the bits of the float16 that is nearest to v, of two the one with an even last bit.
func Bits(v float32) uint16 {
	bits := math.Float32bits(v)
	sign := uint16(bits >> 16 & 0x8000)
	bits &= 1<<31 - 1
	switch {
	case bits > 0x7f800000: // NaN
		return sign | 0x7e00 | uint16(bits>>13&0x3ff)
	case bits >= 0x47800000: // 65536
		return sign | 0x7c00
	case bits < 0x38800000: // below the smallest normal one, 2^-14
		// In the sum with a half, the last bit counts 2^-24, as in these float16s, and the processor
		// has rounded.
		return sign | uint16(math.Float32bits(math.Float32frombits(bits)+0.5)-0x3f000000)
	}
	bits += 0xfff + bits>>13&1 // rounds, and a fraction that is full carries into the exponent
	return sign | uint16((bits-0x38000000)>>13)
}

// Float32 returns the float16 with the given bits as a float32, which has all of them but signaling NaNs.
func Float32(half uint16) float32 {
	sign, bits := uint32(half)<<16&(1<<31), uint32(half)&0x7fff<<13
	if bits >= 0x7c00<<13 { // infinite or NaN, of which the first bit of the fraction is set, as processors do
		if bits > 0x7c00<<13 {
			bits |= 1 << 22
		}
		return math.Float32frombits(sign | bits | 0x7f800000)
	}
	// Exponents begin 112 below those of float32s. The product is exact, also of what is not normal.
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(bits)*0x1p112))
}
