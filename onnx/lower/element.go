package lower

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

// dtypeOf returns the type of arrays that hold elements of a type. Small integers and half floats
// are held in larger types, and a uint64 as an int64: one that is too large is refused where it comes
// in.
func dtypeOf(t onnx.DataType) (array.DType, error) {
	switch t {
	case onnx.Float, onnx.BFloat16, onnx.Float16:
		return array.Float32, nil
	case onnx.Double:
		return array.Float64, nil
	case onnx.Int64, onnx.Uint32, onnx.Uint64:
		return array.Int64, nil
	case onnx.Int32, onnx.Int16, onnx.Uint16:
		return array.Int32, nil
	case onnx.Int8, onnx.Int4, onnx.Int2:
		return array.Int8, nil
	case onnx.Uint8, onnx.Uint4, onnx.Uint2:
		return array.Uint8, nil
	case onnx.Bool:
		return array.Bool, nil
	}
	if isSmall(t) {
		return array.Float32, nil
	}
	return 0, fmt.Errorf("%w: elements of type %v", ErrUnsupported, t)
}

// elementOf returns the type of elements of arrays.
func elementOf(d array.DType) onnx.DataType {
	for _, t := range []onnx.DataType{onnx.Float, onnx.Double, onnx.Int64, onnx.Int32, onnx.Int8, onnx.Uint8, onnx.Bool} {
		if have, err := dtypeOf(t); err == nil && have == d {
			return t
		}
	}
	return onnx.Undefined
}

// NewArray returns an array of zeros that can hold elements of a type.
func NewArray(t onnx.DataType, shape ...int) (*array.Array, error) {
	d, err := dtypeOf(t)
	if err != nil {
		return nil, err
	}
	n := 1
	for _, s := range shape {
		if s < 0 || s > maxElements || n*max(s, 1) > maxElements {
			err = fmt.Errorf("%w: dimensions %v", ErrUnsupported, shape)
		}
		n *= max(s, 1)
	}
	if len(shape) > array.MaxDims {
		err = fmt.Errorf("%w: %d dimensions", ErrUnsupported, len(shape))
	}
	if err != nil {
		return nil, err
	}
	return array.New(d, shape...), nil
}

// maxElements bounds the elements of a tensor of a model.
const maxElements = 1 << 31

func (l *lowering) arrayOf(t *onnx.Tensor) (*array.Array, error) { return ArrayOf(t, l.options.Dir) }

// ArrayOf returns the elements of a tensor as an array, which may be in the memory of the tensor and
// must not be changed. dir is the folder of the model, where external data are.
func ArrayOf(t *onnx.Tensor, dir string) (*array.Array, error) {
	d, err := dtypeOf(t.DataType)
	if err != nil {
		return nil, err
	}
	if len(t.Dims) > array.MaxDims {
		return nil, fmt.Errorf("%w: %d dimensions", ErrUnsupported, len(t.Dims))
	}
	n, shape := int64(1), make([]int, len(t.Dims))
	for i, s := range t.Dims {
		if s < 0 || s > maxElements || n*s > maxElements {
			return nil, fmt.Errorf("%w: dimensions %v", ErrUnsupported, t.Dims)
		}
		n, shape[i] = n*s, int(s)
	}
	data, err := t.Data(dir)
	if err != nil {
		return nil, err
	}
	if bits := t.DataType.Bits(); int64(len(data)) != (n*int64(bits)+7)/8 {
		return nil, fmt.Errorf("%w: %d bytes for %d elements", ErrUnsupported, len(data), n)
	}
	if a, ok := shared(t.DataType, data, shape); ok {
		return a, nil
	}
	a := array.New(d, shape...)
	if decode(a, t.DataType, data) {
		return a, nil
	}
	for i := range int(n) {
		if isSmall(t.DataType) {
			a.SetFloat(i, smallAt(t.DataType, data, i))
		} else if at := integerAt(t.DataType); at != nil {
			v := at(data, i)
			if v < 0 && t.DataType == onnx.Uint64 {
				return nil, fmt.Errorf("%w: a number over 2^63-1 of type %v", ErrUnsupported, t.DataType)
			}
			setInt(a, i, v)
		} else {
			a.SetFloat(i, floatAt(t.DataType, data, i))
		}
	}
	return a, nil
}

// decode copies elements of a type that arrays have, in loops that the compiler makes into moves:
// weights are of such types, and there may be gigabytes of them. It reports false for other types.
func decode(a *array.Array, t onnx.DataType, data []byte) bool {
	if b, ok := bytesOf(a, t); ok {
		copy(b, data)
		return true
	}
	le := binary.LittleEndian
	switch t {
	case onnx.Float:
		for i, out := 0, array.Slice[float32](a); i < len(out); i++ {
			out[i] = math.Float32frombits(le.Uint32(data[4*i:]))
		}
	case onnx.Double:
		for i, out := 0, array.Slice[float64](a); i < len(out); i++ {
			out[i] = math.Float64frombits(le.Uint64(data[8*i:]))
		}
	case onnx.Int64:
		for i, out := 0, array.Slice[int64](a); i < len(out); i++ {
			out[i] = int64(le.Uint64(data[8*i:]))
		}
	default:
		return false
	}
	return true
}

// encode is the inverse of decode.
func encode(a *array.Array, t onnx.DataType, data []byte) bool {
	le := binary.LittleEndian
	switch t {
	case onnx.Float:
		for i, v := range array.Slice[float32](a) {
			le.PutUint32(data[4*i:], math.Float32bits(v))
		}
	case onnx.Double:
		for i, v := range array.Slice[float64](a) {
			le.PutUint64(data[8*i:], math.Float64bits(v))
		}
	case onnx.Int64:
		for i, v := range array.Slice[int64](a) {
			le.PutUint64(data[8*i:], uint64(v))
		}
	default:
		return false
	}
	return true
}

// setInt sets an element of an array of integers.
func setInt(a *array.Array, i int, v int64) {
	if a.DType() == array.Int64 {
		array.Slice[int64](a)[i] = v
	} else {
		a.SetFloat(i, float64(v))
	}
}

// integerAt returns a function for the elements of a type of integers, or nil.
func integerAt(t onnx.DataType) func(data []byte, i int) int64 {
	switch t {
	case onnx.Int64, onnx.Uint64:
		return func(data []byte, i int) int64 { return int64(binary.LittleEndian.Uint64(data[8*i:])) }
	case onnx.Int32:
		return func(data []byte, i int) int64 { return int64(int32(binary.LittleEndian.Uint32(data[4*i:]))) }
	case onnx.Uint32:
		return func(data []byte, i int) int64 { return int64(binary.LittleEndian.Uint32(data[4*i:])) }
	case onnx.Int16:
		return func(data []byte, i int) int64 { return int64(int16(binary.LittleEndian.Uint16(data[2*i:]))) }
	case onnx.Uint16:
		return func(data []byte, i int) int64 { return int64(binary.LittleEndian.Uint16(data[2*i:])) }
	case onnx.Int8:
		return func(data []byte, i int) int64 { return int64(int8(data[i])) }
	case onnx.Uint8, onnx.Bool:
		return func(data []byte, i int) int64 { return int64(data[i]) }
	}
	return nil
}

// floatAt returns an element of a type of floats.
func floatAt(t onnx.DataType, data []byte, i int) float64 {
	switch t {
	case onnx.Double:
		return math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	case onnx.BFloat16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16))
	case onnx.Float16:
		return half(binary.LittleEndian.Uint16(data[2*i:]))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
}

// half returns the value of the bits of a float16.
func half(bits uint16) float64 {
	sign, exponent, fraction := 1.0, int(bits>>10&31), float64(bits&1023)
	if bits>>15 == 1 {
		sign = -1
	}
	switch {
	case exponent == 31 && fraction != 0:
		return math.NaN()
	case exponent == 31:
		return math.Inf(int(sign))
	case exponent == 0:
		return sign * math.Ldexp(fraction, -24)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// ReadTensor reads a tensor from a file with the extension .pb.
func ReadTensor(name string) (*onnx.Tensor, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t, err := onnx.ParseTensor(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// TensorOf returns an array as a tensor with elements of a type, the inverse of ArrayOf. Elements are
// rounded to that type. The tensor may be in the memory of the array, which must not be changed.
func TensorOf(name string, a *array.Array, t onnx.DataType) (*onnx.Tensor, error) {
	d, err := dtypeOf(t)
	if err == nil && d != a.DType() {
		err = fmt.Errorf("%w: %v as elements of type %v", ErrUnsupported, a.DType(), t)
	}
	if err != nil {
		return nil, err
	}
	if !a.Contiguous() {
		a = a.Clone()
	}
	m := &onnx.Tensor{Name: name, DataType: t}
	for _, n := range a.Shape() {
		m.Dims = append(m.Dims, int64(n))
	}
	var ok bool
	if m.Raw, ok = bytesOf(a, t); ok {
		return m, nil
	}
	if isSmall(t) {
		m.Raw = make([]byte, (a.Len()*t.Bits()+7)/8)
		for i := range a.Len() {
			putSmall(t, m.Raw, i, a.Float(i))
		}
		return m, nil
	}
	m.Raw = make([]byte, 0, a.Len()*t.Bits()/8) // as large as it gets
	if encode(a, t, m.Raw[:cap(m.Raw)]) {
		m.Raw = m.Raw[:cap(m.Raw)]
		return m, nil
	}
	for i := range a.Len() {
		m.Raw = appendElement(m.Raw, t, a, i)
	}
	return m, nil
}

// appendElement appends the bytes of an element.
func appendElement(data []byte, t onnx.DataType, a *array.Array, i int) []byte {
	le := binary.LittleEndian
	switch t {
	case onnx.Float:
		return le.AppendUint32(data, math.Float32bits(float32(a.Float(i))))
	case onnx.Double:
		return le.AppendUint64(data, math.Float64bits(a.Float(i)))
	case onnx.BFloat16:
		return le.AppendUint16(data, brainBits(float32(a.Float(i))))
	case onnx.Float16:
		return le.AppendUint16(data, halfBits(a.Float(i)))
	}
	switch v := a.Int(i); t.Bits() {
	case 64:
		return le.AppendUint64(data, uint64(v))
	case 32:
		return le.AppendUint32(data, uint32(v))
	case 16:
		return le.AppendUint16(data, uint16(v))
	default:
		return append(data, byte(v))
	}
}

// brainBits returns the bits of the bfloat16 that is nearest, with an even last bit of two.
func brainBits(v float32) uint16 {
	bits := math.Float32bits(v)
	if v != v {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// halfBits returns the bits of the float16 that is nearest, with an even last bit of two.
func halfBits(v float64) uint16 {
	sign := uint16(math.Float64bits(v) >> 48 & 0x8000)
	v = math.Abs(v)
	switch {
	case v != v:
		return sign | 0x7e00
	case v >= 65520: // half way to the next power of two
		return sign | 0x7c00
	case v < 1.0/(1<<14): // denormal, or the smallest normal number after rounding
		return sign | uint16(math.RoundToEven(v*(1<<24)))
	}
	fraction, exponent := math.Frexp(v) // v = fraction × 2^exponent, fraction of at least 1/2
	// A fraction that is rounded up to 1 carries into the exponent, as it should.
	return sign | uint16((exponent+13)<<10+int(math.RoundToEven(fraction*2048)))
}
