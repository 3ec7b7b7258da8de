package ir

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/nnopt/nnopt/internal/half"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
)

// elementsText returns the elements of a tensor as text, with brackets if it has dimensions.
func elementsText(x *Value) (string, bool) {
	list, ok := elementTexts(x)
	if !ok {
		return "", false
	}
	if len(x.Tensor.Dims) == 0 && len(list) == 1 {
		return list[0], true
	}
	return listText(list, func(s string) string { return s }), true
}

func elementTexts(x *Value) ([]string, bool) {
	if x.Tensor == nil {
		return nil, false
	}
	if x.Tensor.DataType == onnx.String {
		return lists.Map(x.Tensor.Strings, func(s []byte) string { return strconv.Quote(string(s)) }), true
	}
	var list []string
	if ints, ok := x.Ints(); ok {
		for _, n := range ints {
			if x.Tensor.DataType == onnx.Bool {
				list = append(list, strconv.FormatBool(n != 0))
			} else {
				list = append(list, strconv.FormatInt(n, 10))
			}
		}
		return list, true
	}
	floats, ok := x.Floats()
	for _, f := range floats {
		// With the digits of its own type: as a double, 0.1 of 32 bits would be 0.10000000149011612.
		bits := 32
		if x.Tensor.DataType == onnx.Double {
			bits = 64
		}
		list = append(list, strconv.FormatFloat(f, 'g', -1, bits))
	}
	return list, ok
}

// Floats returns the elements of a tensor of float or double.
func (x *Value) Floats() ([]float64, bool) {
	if x.Tensor == nil || x.Tensor.DataType != onnx.Float && x.Tensor.DataType != onnx.Double {
		return nil, false
	}
	raw, err := x.Bytes()
	var list []float64
	for part := range slices.Chunk(raw, x.Tensor.DataType.Bits()/8) {
		list = append(list, numberAt(x.Tensor.DataType, part))
	}
	return list, err == nil
}

// numberAt returns the number that bytes begin with, of a type that has a kind.
func numberAt(t onnx.DataType, b []byte) float64 {
	switch t {
	case onnx.Float:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case onnx.Double:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	case onnx.Float16:
		return float64(half.Float32(binary.LittleEndian.Uint16(b)))
	case onnx.BFloat16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
	}
	return float64(intAt(t, b))
}

// intAt returns the integer or bool that bytes begin with.
func intAt(t onnx.DataType, b []byte) int64 {
	size := t.Bits() / 8
	var n uint64
	for k := range size {
		n |= uint64(b[k]) << (8 * k)
	}
	if shift := 64 - 8*size; kindOf(t) == signed {
		return int64(n<<shift) >> shift
	}
	return int64(n)
}

// appendInt appends the bytes of an integer or bool of a type.
func appendInt(raw []byte, t onnx.DataType, n int64) []byte {
	for k := range t.Bits() / 8 {
		raw = append(raw, byte(n>>(8*k)))
	}
	return raw
}
