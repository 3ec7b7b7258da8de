package ir

import "math"

// halfBits returns the bits of the float16 that is nearest to f, of two the one with an even last bit.
func halfBits(f float32) uint16 {
	sign, v := uint16(math.Float32bits(f)>>16&0x8000), math.Abs(float64(f))
	switch {
	case v == 0:
		return sign
	case v != v:
		return sign | 0x7e00
	case v >= 65520: // half a step beyond the largest one
		return sign | 0x7c00
	}
	// A step is 2^-10 of the power of two below v, and at least 2^-24. The count of steps has the 1 in front of
	// the fraction, which counts for one of the exponent.
	_, e := math.Frexp(v)
	e = max(e-1, -14)
	return sign | uint16((e+14)<<10+int(math.RoundToEven(math.Ldexp(v, 10-e))))
}

// halfFloat returns the number that the bits of a float16 are.
func halfFloat(bits uint16) float64 {
	e, fraction := int(bits>>10&31), float64(bits&0x3ff)
	v := math.Ldexp(fraction, -24)
	switch {
	case e == 31 && fraction == 0:
		v = math.Inf(1)
	case e == 31:
		v = math.NaN()
	case e > 0:
		v = math.Ldexp(1024+fraction, e-25)
	}
	if bits&0x8000 != 0 {
		return -v
	}
	return v
}
