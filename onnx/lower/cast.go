package lower

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// cast converts elements. Floats become integers by cutting off their fraction, integers wrap around, and
// bools are made by comparing with zero.
func (c *call) cast(to onnx.DataType) []*value {
	x, from := c.x(0), c.elem(0)
	if from == onnx.String && to != from {
		x = c.parsed(x, to)
	}
	switch to {
	case from:
		return []*value{c.in[0]}
	case onnx.String:
		return c.out(c.formatted(x), to)
	case onnx.Bool:
		return c.out(truth(x), to)
	case onnx.Int4, onnx.Uint4, onnx.Int2, onnx.Uint2:
		return c.out(wrapped(tensor.Cast(x, array.Int64), to), to)
	}
	if isSmall(to) {
		return c.out(c.toSmall(x, to), to)
	}
	return c.out(x, to)
}

// wrapped gives int64s the range of a smaller type of integers, which arrays hold in a larger one.
func wrapped(x variable, to onnx.DataType) variable {
	least, most, _ := to.Limits()
	low := number(float64(least), x)
	// The remainder has the sign of the divisor, so numbers wrap around at both ends.
	return tensor.Add(tensor.Map(array.Mod, tensor.Sub(x, low), number(float64(most-least+1), x)), low)
}

// toSmall rounds x to a small type of floats, as the attributes of the node say.
func (c *call) toSmall(x variable, t onnx.DataType) variable {
	p := toSmall{t, c.bool("saturate", true), c.oneOf("round_mode", "up", "up", "down", "nearest")}
	return routine(c, "RoundSmall", roundedToSmall, p, []variable{tensor.Cast(x, array.Float64)}, tensor.NewType(array.Float32, c.shape(x)...))[0]
}

type bitCast struct{ From, To onnx.DataType }

// bitCast takes the bits of elements for those of another type.
func (c *call) bitCast() []*value {
	from, to := c.elem(0), onnx.DataType(c.int("to", 0))
	d, err := dtypeOf(to)
	c.failIf(err != nil, "%w", err)
	c.failIf(from.Bits() != to.Bits() || from.Bits() < 8, "elements of type %v have not as many bits as %v", from, to)
	return c.out(routine(c, "BitCast", bitsCast, bitCast{from, to}, []variable{c.x(0)}, tensor.NewType(d, c.shape(c.x(0))...))[0], to)
}

func bitsCast(p bitCast, in []*array.Array) ([]*array.Array, error) {
	t, err := TensorOf("", in[0], p.From)
	if err != nil {
		return nil, err
	}
	t.DataType = p.To
	a, err := ArrayOf(t, "")
	return []*array.Array{a}, err
}

// Types of at most eight bits that arrays don't have are stored only: casts and quantization make and
// read them, and what else ONNX allows moves them. Arrays hold such floats as float32s, which have all
// their values, and such integers as those of eight bits.

// A smallFloat is a format of floats of at most eight bits, as "FP8 Formats for Deep Learning"
// (Micikevicius et al., 2022), "8-bit Numerical Formats for Deep Neural Networks" (Noune et al., 2022) and
// "OCP Microscaling Formats" (2023) have them.
type smallFloat struct {
	mantissa, bias int // bits, and what is added to an exponent
	largest        byte
	infinite       bool // the code behind the largest number is infinite
	// nan is a code that is no number. Without one the largest number takes the place of all that is
	// infinite, and 0 that of what is no number.
	nan    byte
	hasNaN bool
	// unsigned zero: there is no -0, whose code is nan.
	unsignedZero bool
}

var smallFloats = map[onnx.DataType]smallFloat{
	onnx.Float8E4M3FN:   {mantissa: 3, bias: 7, largest: 0x7e, nan: 0x7f, hasNaN: true},
	onnx.Float8E4M3FNUZ: {mantissa: 3, bias: 8, largest: 0x7f, nan: 0x80, hasNaN: true, unsignedZero: true},
	onnx.Float8E5M2:     {mantissa: 2, bias: 15, largest: 0x7b, nan: 0x7f, hasNaN: true, infinite: true},
	onnx.Float8E5M2FNUZ: {mantissa: 2, bias: 16, largest: 0x7f, nan: 0x80, hasNaN: true, unsignedZero: true},
	onnx.Float4E2M1:     {mantissa: 1, bias: 1, largest: 7},
}

// sign returns the bit of the sign: the one above the largest number.
func (f smallFloat) sign() byte {
	if f.largest <= 7 {
		return 8
	}
	return 0x80
}

// value returns the number of a code.
func (f smallFloat) value(code byte) float64 {
	sign, rest := 1.0, code&(f.sign()-1)
	if code&f.sign() != 0 {
		sign = -1
	}
	switch {
	case f.hasNaN && f.unsignedZero && code == f.nan:
		return math.NaN()
	case rest > f.largest && f.infinite && rest == f.largest+1:
		return math.Inf(int(sign))
	case rest > f.largest:
		return math.NaN()
	}
	exponent, fraction := int(rest>>f.mantissa), float64(rest&(1<<f.mantissa-1))
	if exponent == 0 { // denormal
		return sign * math.Ldexp(fraction, 1-f.bias-f.mantissa)
	}
	// A number that is not denormal has a 1 in front that its code leaves out.
	return sign * math.Ldexp(float64(int(1)<<f.mantissa)+fraction, exponent-f.bias-f.mantissa)
}

// code returns the code of the number that is nearest, with an even last bit of two. What is beyond the
// largest one becomes that if saturate is set or the format has nothing else.
func (f smallFloat) code(v float64, saturate bool) byte {
	var sign byte
	if math.Signbit(v) {
		sign = f.sign()
	}
	a := math.Abs(v)
	if v != v {
		switch {
		case !f.hasNaN:
			return sign
		case f.unsignedZero:
			return f.nan
		}
		return sign | f.nan
	}
	rest := int(f.largest) + 1 // of what is too large
	if _, e := math.Frexp(a); a == 0 {
		rest = 0
	} else if !math.IsInf(a, 0) {
		// Smaller numbers are denormal, and lie as far apart as those with the least exponent.
		exponent := max(e-1+f.bias, 1)
		// A fraction that is rounded up to the next power of two carries into the exponent, as it should.
		steps := math.RoundToEven(math.Ldexp(a, f.mantissa+f.bias-exponent))
		if steps <= float64(int(2)<<f.mantissa) {
			rest = (exponent-1)<<f.mantissa + int(steps)
		}
	}
	if rest > int(f.largest) {
		switch {
		case saturate || !f.hasNaN:
			rest = int(f.largest)
		case f.infinite:
			rest = int(f.largest) + 1
		case f.unsignedZero:
			return f.nan
		default:
			rest = int(f.nan)
		}
	}
	if rest == 0 && f.unsignedZero {
		return 0
	}
	return sign | byte(rest)
}

// The codes of float8e8m0 are exponents of powers of two.
const (
	powerBias = 127
	powerNaN  = 0xff
)

func powerOf(code byte) float64 {
	if code == powerNaN {
		return math.NaN()
	}
	return math.Ldexp(1, int(code)-powerBias)
}

// powerCode returns the code of a power of two near a number: the one above it, "up", that below it,
// "down", or the "nearest", of two the larger one. The sign is lost.
func powerCode(v float64, mode string, saturate bool) byte {
	fraction, e := math.Frexp(math.Abs(v)) // |v| = fraction × 2^e, fraction of at least 1/2
	switch {
	case v != v:
		return powerNaN
	case v == 0:
		e = -powerBias
	case math.IsInf(v, 0):
		e = powerBias + 1
	case fraction == 0.5 || mode == "down" || mode == "nearest" && fraction < 0.75:
		e--
	}
	switch {
	case e > powerBias && saturate && !math.IsInf(v, 0):
		e = powerBias
	case e > powerBias:
		return powerNaN
	}
	return byte(max(e, -powerBias) + powerBias)
}

// isSmall reports whether elements of a type are stored only.
func isSmall(t onnx.DataType) bool {
	switch t {
	case onnx.Int4, onnx.Uint4, onnx.Int2, onnx.Uint2, onnx.Float8E8M0:
		return true
	}
	_, is := smallFloats[t]
	return is
}

// smallAt returns an element of a small type. Several are in a byte, the first one in its lowest bits.
func smallAt(t onnx.DataType, data []byte, i int) float64 {
	n := t.Bits()
	code := data[i*n/8] >> (i * n % 8) & byte(1<<n-1)
	switch t {
	case onnx.Float8E8M0:
		return powerOf(code)
	case onnx.Int4, onnx.Int2:
		return float64(int8(code<<(8-n)) >> (8 - n))
	case onnx.Uint4, onnx.Uint2:
		return float64(code)
	}
	return smallFloats[t].value(code)
}

// putSmall sets an element of a small type, in bytes that are zero there.
func putSmall(t onnx.DataType, data []byte, i int, v float64) {
	n := t.Bits()
	var code byte
	switch t {
	case onnx.Float8E8M0:
		code = powerCode(v, "nearest", false)
	case onnx.Int4, onnx.Int2, onnx.Uint4, onnx.Uint2:
		code = byte(int64(v))
	default:
		code = smallFloats[t].code(v, false)
	}
	data[i*n/8] |= code & byte(1<<n-1) << (i * n % 8)
}

// A toSmall is how numbers are rounded to a small type of floats.
type toSmall struct {
	Type     onnx.DataType
	Saturate bool
	Mode     string // for float8e8m0, see powerCode
}

// round rounds float64s to a small type of floats.
func (p toSmall) round(v float64) float64 {
	if p.Type == onnx.Float8E8M0 {
		return powerOf(powerCode(v, p.Mode, p.Saturate))
	}
	f := smallFloats[p.Type]
	return f.value(f.code(v, p.Saturate))
}

func roundedToSmall(p toSmall, in []*array.Array) ([]*array.Array, error) {
	if _, is := smallFloats[p.Type]; !is && p.Type != onnx.Float8E8M0 {
		return nil, fmt.Errorf("%w: %v", ErrUnsupported, p.Type)
	}
	y := array.New(array.Float32, in[0].Shape()...)
	out := array.Slice[float32](y)
	for i, v := range array.Slice[float64](in[0]) {
		out[i] = float32(p.round(v))
	}
	return []*array.Array{y}, nil
}
