package lower

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

// dtypeOf returns the type of arrays that hold elements of a type. Small integers and half floats
// are held in larger types.
func dtypeOf(t onnx.DataType) (array.DType, error) {
	switch t {
	case onnx.Float, onnx.BFloat16, onnx.Float16:
		return array.Float32, nil
	case onnx.Double:
		return array.Float64, nil
	case onnx.Int64, onnx.Uint32:
		return array.Int64, nil
	case onnx.Int32, onnx.Int16, onnx.Uint16:
		return array.Int32, nil
	case onnx.Int8:
		return array.Int8, nil
	case onnx.Uint8:
		return array.Uint8, nil
	case onnx.Bool:
		return array.Bool, nil
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

// maxElements bounds the elements of a tensor of a model.
const maxElements = 1 << 31

func (l *lowering) arrayOf(t *onnx.Tensor) (*array.Array, error) { return ArrayOf(t, l.options.Dir) }

// ArrayOf returns the elements of a tensor as an array. dir is the folder of the model, where
// external data are.
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
	if bits := t.DataType.Bits(); int64(len(data)) != n*int64(bits)/8 {
		return nil, fmt.Errorf("%w: %d bytes for %d elements", ErrUnsupported, len(data), n)
	}
	a := array.New(d, shape...)
	for i := range int(n) {
		if at := integerAt(t.DataType); at != nil {
			setInt(a, i, at(data, i))
		} else {
			a.SetFloat(i, floatAt(t.DataType, data, i))
		}
	}
	return a, nil
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
	case onnx.Int64:
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
