package ir

import (
	"encoding/binary"
	"math"
	"strconv"

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
		var list []string
		for _, s := range x.Tensor.Strings {
			list = append(list, strconv.Quote(string(s)))
		}
		return list, true
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
	if x.Tensor == nil {
		return nil, false
	}
	raw, err := x.Bytes()
	if err != nil {
		return nil, false
	}
	var list []float64
	switch x.Tensor.DataType {
	case onnx.Float:
		for i := 0; i+4 <= len(raw); i += 4 {
			list = append(list, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[i:]))))
		}
	case onnx.Double:
		for i := 0; i+8 <= len(raw); i += 8 {
			list = append(list, math.Float64frombits(binary.LittleEndian.Uint64(raw[i:])))
		}
	default:
		return nil, false
	}
	return list, true
}
