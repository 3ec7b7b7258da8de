package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/internal/fileio"
)

// ErrTensor means that a tensor does not have the elements that its dimensions and type ask for.
var ErrTensor = errors.New("onnx: bad tensor")

// NewTensor returns a tensor with the elements that [Tensor.Data] would return, which it keeps. The
// error is an ErrTensor: there are too few or too many, or elements of the type have no bytes.
func NewTensor(name string, t DataType, dims []int64, data []byte) (*Tensor, error) {
	m := &Tensor{Name: name, DataType: t, Dims: slices.Clone(dims)}
	return m, m.SetData(data)
}

// SetData gives a tensor other elements, in the form of [Tensor.Data], which it keeps. It leaves the
// tensor as it was if they don't fit its dimensions and type; the error is an ErrTensor.
func (m *Tensor) SetData(data []byte) error {
	elements, size, err := m.extent()
	if err == nil && int64(len(data)) != size {
		err = m.misfit(len(data), elements)
	}
	if err != nil {
		return m.named(err)
	}
	// A nil Raw would say that the elements are in a typed field.
	if data == nil {
		data = []byte{}
	}
	m.clear()
	m.Raw = data
	return nil
}

// clear removes the elements.
func (m *Tensor) clear() {
	m.Raw, m.Floats, m.Int32s, m.Strings, m.Int64s, m.Doubles, m.Uint64s = nil, nil, nil, nil, nil, nil, nil
	m.External, m.Location, m.Segment = nil, LocationDefault, nil
}

// Size returns the number of elements that the dimensions ask for, and of the bytes that they take as
// [Tensor.Data] returns them. The error is an ErrTensor.
func (m *Tensor) Size() (elements, bytes int64, err error) {
	if elements, bytes, err = m.extent(); err != nil {
		err = m.named(err)
	}
	return elements, bytes, err
}

// Data returns the elements of a tensor in the order of rows, little-endian and without gaps;
// elements of less than a byte fill bytes from the low bits on. Strings have no such form.
//
// dir is the folder of the model, where external data are. It may be empty for a tensor of a model
// that [ReadFile] read, also if the tensor has been moved to another model.
//
// The result must not be changed: it may be part of m.Raw or of a mapped file, see [Model.Close]. The
// error is an ErrTensor, or that of a file.
func (m *Tensor) Data(dir string) ([]byte, error) {
	data, err := m.data(dir)
	if err != nil {
		return nil, m.named(err)
	}
	return data, nil
}

// named adds the name of the tensor to an error.
func (m *Tensor) named(err error) error {
	return fmt.Errorf("tensor %s: %w", fileio.Excerpt(m.Name, 0), err)
}

func (m *Tensor) misfit(bytes int, elements int64) error {
	return fmt.Errorf("%w: %d bytes for %d elements of type %v", ErrTensor, bytes, elements, m.DataType)
}

func (m *Tensor) data(dir string) ([]byte, error) {
	// First of all: Raw may be part of a mapping, and reading one that is unmapped ends the program.
	if err := m.files().use(); err != nil {
		return nil, err
	}
	elements, size, err := m.extent()
	if err != nil {
		return nil, err
	}
	if m.Location == LocationExternal {
		return m.external(dir, size)
	}
	if err := m.fits(elements, size); err != nil {
		return nil, err
	}
	if m.Raw != nil {
		return m.Raw, nil
	}
	return m.typedBytes(size), nil
}

// fits returns an error if the elements that are in m itself are not those that it should have.
func (m *Tensor) fits(elements, size int64) error {
	if m.Raw != nil {
		if int64(len(m.Raw)) != size {
			return m.misfit(len(m.Raw), elements)
		}
	} else if have := m.typed(); int64(have) != m.DataType.values(elements) {
		return fmt.Errorf("%w: %d values for %d elements of type %v", ErrTensor, have, elements, m.DataType)
	}
	return nil
}

// extent returns the number of elements, and of the bytes that they take.
func (m *Tensor) extent() (elements, bytes int64, err error) {
	if m.DataType.Bits() == 0 {
		return 0, 0, fmt.Errorf("%w: elements of type %v have no bytes", ErrTensor, m.DataType)
	}
	empty := false // whatever the product of the others is
	for _, d := range m.Dims {
		if d < 0 {
			return 0, 0, fmt.Errorf("%w: a dimension of size %d", ErrTensor, d)
		}
		empty = empty || d == 0
	}
	if empty {
		return 0, 0, nil
	}
	elements = 1
	for _, d := range m.Dims {
		// An element has at most 128 bits, so the number of bits below does not overflow either.
		if elements > math.MaxInt64/128/d {
			return 0, 0, fmt.Errorf("%w: dimensions %s have too many elements", ErrTensor, dimsText(m.Dims))
		}
		elements *= d
	}
	return elements, (elements*int64(m.DataType.Bits()) + 7) / 8, nil
}

// dimsText returns dimensions for an error, which of many shows the first.
func dimsText(dims []int64) string {
	const most = 8
	if len(dims) > most {
		return fmt.Sprintf("%v and %d more", dims[:most], len(dims)-most)
	}
	return fmt.Sprint(dims)
}

// values returns how many values a typed field has for a number of elements: two for a complex
// number, and one for all elements in a byte.
func (t DataType) values(elements int64) int64 {
	switch bits := int64(t.Bits()); {
	case t == Complex64 || t == Complex128:
		return 2 * elements
	case bits < 8:
		return (elements*bits + 7) / 8
	}
	return elements
}

// typed returns how many values there are in the typed field for elements of the type of m, other than
// strings.
func (m *Tensor) typed() int {
	switch m.DataType {
	case Float, Complex64:
		return len(m.Floats)
	case Double, Complex128:
		return len(m.Doubles)
	case Int64:
		return len(m.Int64s)
	case Uint64, Uint32:
		return len(m.Uint64s)
	}
	return len(m.Int32s)
}

// typedBytes returns the values of the typed field as bytes.
func (m *Tensor) typedBytes(size int64) []byte {
	data, le := make([]byte, 0, size), binary.LittleEndian
	switch m.DataType {
	case Float, Complex64:
		for _, v := range m.Floats {
			data = le.AppendUint32(data, math.Float32bits(v))
		}
	case Double, Complex128:
		for _, v := range m.Doubles {
			data = le.AppendUint64(data, math.Float64bits(v))
		}
	case Int64:
		for _, v := range m.Int64s {
			data = le.AppendUint64(data, uint64(v))
		}
	case Uint64:
		for _, v := range m.Uint64s {
			data = le.AppendUint64(data, v)
		}
	case Uint32:
		for _, v := range m.Uint64s {
			data = le.AppendUint32(data, uint32(v))
		}
	default:
		for _, v := range m.Int32s {
			switch m.DataType.Bits() {
			case 32:
				data = le.AppendUint32(data, uint32(v))
			case 16:
				data = le.AppendUint16(data, uint16(v))
			default:
				data = append(data, byte(v))
			}
		}
	}
	return data
}
