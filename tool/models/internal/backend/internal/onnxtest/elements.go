package onnxtest

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/nnopt/nnopt/internal/half"
	"github.com/nnopt/nnopt/onnx"
)

var (
	floats   = []onnx.DataType{onnx.Float, onnx.Double, onnx.Float16}
	signed   = []onnx.DataType{onnx.Int64, onnx.Int32, onnx.Int8, onnx.Int16}
	unsigned = []onnx.DataType{onnx.Uint8, onnx.Uint16, onnx.Uint32, onnx.Uint64}
	integers = slices.Concat(signed, unsigned)
	numbers  = slices.Concat(floats, integers)
	bools    = []onnx.DataType{onnx.Bool}
	anything = slices.Concat(numbers, bools)
)

func isFloat(t onnx.DataType) bool { return slices.Contains(floats, t) || t == onnx.BFloat16 }

func isSigned(t onnx.DataType) bool { return isFloat(t) || slices.Contains(signed, t) }

func isTiny(t onnx.DataType) bool { return t > onnx.BFloat16 }

// anyElem draws a type of elements, more often a common one.
func (b *builder) anyElem() onnx.DataType {
	if b.chance(0.5) {
		return pick(b, onnx.Float, onnx.Float, onnx.Float, onnx.Int64, onnx.Bool, onnx.Int32)
	}
	return pick(b, anything...)
}

// number draws an element.
func (b *builder) number(t onnx.DataType) float64 {
	switch {
	case t == onnx.Bool:
		return float64(b.IntN(2))
	// Of drawn normal numbers, no two are equal and none is 0.
	case isFloat(t) && b.chance(0.3):
		return float64(b.IntN(7) - 3)
	case isFloat(t):
		return b.NormFloat64()
	case isSigned(t):
		return float64(b.IntN(11) - 5)
	}
	return float64(b.IntN(8))
}

// tensorOf returns a tensor of elements.
func tensorOf(name string, t onnx.DataType, shape []int, at func(i int) float64) *onnx.Tensor {
	m := &onnx.Tensor{Name: name, DataType: t, Raw: []byte{}}
	n := 1
	for _, s := range shape {
		m.Dims, n = append(m.Dims, int64(s)), n*s
	}
	le := binary.LittleEndian
	for i := range n {
		v := at(i)
		switch t {
		case onnx.Float:
			m.Raw = le.AppendUint32(m.Raw, math.Float32bits(float32(v)))
		case onnx.Double:
			m.Raw = le.AppendUint64(m.Raw, math.Float64bits(v))
		case onnx.Float16:
			m.Raw = le.AppendUint16(m.Raw, half.Bits(float32(v)))
		case onnx.Int64, onnx.Uint64:
			m.Raw = le.AppendUint64(m.Raw, uint64(int64(v)))
		case onnx.Int32, onnx.Uint32:
			m.Raw = le.AppendUint32(m.Raw, uint32(int64(v)))
		case onnx.Int16, onnx.Uint16:
			m.Raw = le.AppendUint16(m.Raw, uint16(int64(v)))
		case onnx.Int4, onnx.Uint4: // two in a byte
			if i%2 == 0 {
				m.Raw = append(m.Raw, 0)
			}
			m.Raw[i/2] |= byte(int64(v)) & 15 << (i % 2 * 4)
		default:
			m.Raw = append(m.Raw, byte(int64(v)))
		}
	}
	return m
}

func integer(name string, v int) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttributeInt, Int: int64(v)}
}

func truth(name string, v bool) *onnx.Attribute {
	if v {
		return integer(name, 1)
	}
	return integer(name, 0)
}

func list(name string, v ...int) *onnx.Attribute {
	a := &onnx.Attribute{Name: name, Type: onnx.AttributeInts, Ints: []int64{}}
	for _, n := range v {
		a.Ints = append(a.Ints, int64(n))
	}
	return a
}

func number(name string, v float64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttributeFloat, Float: float32(v)}
}

func text(name, v string) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttributeString, String: []byte(v)}
}

func graph(name string, g *onnx.Graph) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttributeGraph, Graph: g}
}

func product(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// broadcast returns the shape that shapes are broadcast to, false if they can't be.
func broadcast(shapes ...[]int) ([]int, bool) {
	n := 0
	for _, s := range shapes {
		n = max(n, len(s))
	}
	out := slices.Repeat([]int{1}, n)
	for _, s := range shapes {
		for i, size := range s {
			at := &out[n-len(s)+i]
			if size != 1 && *at != 1 && size != *at {
				return nil, false
			}
			if size != 1 {
				*at = size
			}
		}
	}
	return out, true
}
