package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/nnopt/nnopt/internal/fileio"
)

// ErrTensor means that a tensor does not have the elements that its dimensions and type ask for.
var ErrTensor = errors.New("onnx: bad tensor")

// Data returns the elements of a tensor in the order of rows, little-endian and without gaps;
// elements of less than a byte fill bytes from the low bits on. dir is the folder of the model, where
// external data are. The result may be part of m.Raw. Strings have no such form. The error is an
// ErrTensor, or that of a file.
func (m *Tensor) Data(dir string) ([]byte, error) {
	data, err := m.data(dir)
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", fileio.Excerpt(m.Name, 0), err)
	}
	return data, nil
}

func (m *Tensor) data(dir string) ([]byte, error) {
	elements, size, err := m.extent()
	if err != nil {
		return nil, err
	}
	if m.Location == LocationExternal {
		return m.external(dir, size)
	}
	if m.Raw != nil {
		if int64(len(m.Raw)) != size {
			return nil, fmt.Errorf("%w: %d bytes for %d elements of type %v", ErrTensor, len(m.Raw), elements, m.DataType)
		}
		return m.Raw, nil
	}
	data, have := m.typed(elements)
	if int64(have) != m.DataType.values(elements) {
		return nil, fmt.Errorf("%w: %d values for %d elements of type %v", ErrTensor, have, elements, m.DataType)
	}
	return data, nil
}

// extent returns the number of elements, and of the bytes that they take.
func (m *Tensor) extent() (elements, bytes int64, err error) {
	if m.DataType.Bits() == 0 {
		return 0, 0, fmt.Errorf("%w: elements of type %v have no bytes", ErrTensor, m.DataType)
	}
	if least := slices.Min(append([]int64{1}, m.Dims...)); least <= 0 {
		if least < 0 {
			err = fmt.Errorf("%w: a dimension of size %d", ErrTensor, least)
		}
		return 0, 0, err
	}
	elements = 1
	for _, d := range m.Dims {
		if elements > math.MaxInt64/128/d {
			return 0, 0, fmt.Errorf("%w: dimensions %v have too many elements", ErrTensor, m.Dims)
		}
		elements *= d
	}
	return elements, (elements*int64(m.DataType.Bits()) + 7) / 8, nil
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

// typed returns the bytes of a typed field, if it has as many values as there should be, and how many
// it has.
func (m *Tensor) typed(elements int64) (data []byte, have int) {
	want := m.DataType.values(elements)
	fill := func(n int, add func(i int)) ([]byte, int) {
		for i := 0; i < n && int64(n) == want; i++ {
			add(i)
		}
		return data, n
	}
	le := binary.LittleEndian
	switch m.DataType {
	case Float, Complex64:
		return fill(len(m.Floats), func(i int) { data = le.AppendUint32(data, math.Float32bits(m.Floats[i])) })
	case Double, Complex128:
		return fill(len(m.Doubles), func(i int) { data = le.AppendUint64(data, math.Float64bits(m.Doubles[i])) })
	case Int64:
		return fill(len(m.Int64s), func(i int) { data = le.AppendUint64(data, uint64(m.Int64s[i])) })
	case Uint64:
		return fill(len(m.Uint64s), func(i int) { data = le.AppendUint64(data, m.Uint64s[i]) })
	case Uint32:
		return fill(len(m.Uint64s), func(i int) { data = le.AppendUint32(data, uint32(m.Uint64s[i])) })
	}
	return fill(len(m.Int32s), func(i int) {
		switch v := uint32(m.Int32s[i]); {
		case m.DataType.Bits() == 32:
			data = le.AppendUint32(data, v)
		case m.DataType.Bits() == 16:
			data = le.AppendUint16(data, uint16(v))
		default:
			data = append(data, byte(v))
		}
	})
}

// external reads elements from another file.
func (m *Tensor) external(dir string, size int64) ([]byte, error) {
	name, offset := "", int64(0)
	for _, e := range m.External {
		var err error
		switch e.Key {
		case "location":
			name = e.Value
		case "offset":
			offset, err = strconv.ParseInt(e.Value, 10, 64)
		case "length":
			var length int64
			if length, err = strconv.ParseInt(e.Value, 10, 64); err == nil && length != size {
				return nil, fmt.Errorf("%w: %d bytes of external data, want %d", ErrTensor, length, size)
			}
		}
		if err != nil || offset < 0 {
			return nil, fmt.Errorf("%w: %s of external data is %q", ErrTensor, e.Key, fileio.Excerpt(e.Value, 0))
		}
	}
	// A model may come from anywhere, and must not read any file of its user.
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%w: external data in %q, which is not below the folder of the model", ErrTensor, fileio.Excerpt(name, 0))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// The size of the file is looked at before memory is taken for what the model promises.
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || size > info.Size()-offset {
		return nil, fmt.Errorf("%w: %s has no %d bytes from byte %d on", ErrTensor, fileio.Excerpt(name, 0), size, offset)
	}
	data := make([]byte, size)
	if _, err := file.ReadAt(data, offset); err != nil {
		return nil, err
	}
	return data, nil
}
