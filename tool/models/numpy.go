package models

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

var errNumPy = errors.New("not an array of NumPy that can be read")

// numPyTypes are the types of elements by their names in NumPy.
var numPyTypes = map[string]onnx.DataType{
	"<f4": onnx.Float, "<f8": onnx.Double, "<f2": onnx.Float16, "<i8": onnx.Int64, "<i4": onnx.Int32, "<i2": onnx.Int16, "|i1": onnx.Int8,
	"|u1": onnx.Uint8, "<u2": onnx.Uint16, "<u4": onnx.Uint32, "<u8": onnx.Uint64, "|b1": onnx.Bool,
}

// parseNumPy reads the format NPY of versions 1 to 3: a magic number, the length of the header, the
// header as a dictionary of Python, the elements.
func parseNumPy(data []byte) (*array.Array, error) {
	if err := fileio.CheckLFS(data); err != nil {
		return nil, fmt.Errorf("%w: %w", errNumPy, err)
	}
	const magic = "\x93NUMPY"
	if len(data) < 12 || string(data[:6]) != magic {
		return nil, fmt.Errorf("%w: it does not begin like one", errNumPy)
	}
	size, at := int(binary.LittleEndian.Uint16(data[8:])), 10
	if data[6] > 1 {
		size, at = int(min(binary.LittleEndian.Uint32(data[8:]), math.MaxInt32)), 12
	}
	if size > len(data)-at {
		return nil, fmt.Errorf("%w: it ends within its header", errNumPy)
	}
	header := string(data[at : at+size])
	text := func(key, from, to string) (string, bool) {
		_, rest, ok := strings.Cut(header, "'"+key+"':")
		_, rest, begins := strings.Cut(rest, from)
		rest, _, ends := strings.Cut(rest, to)
		return rest, ok && begins && ends
	}
	kind, ok1 := text("descr", "'", "'")
	dims, ok2 := text("shape", "(", ")")
	elem, ok := numPyTypes[kind]
	switch {
	case !ok1 || !ok2:
		return nil, fmt.Errorf("%w: its header is %q", errNumPy, fileio.Excerpt(header, 0))
	case !ok:
		return nil, fmt.Errorf("%w: elements of type %q", errNumPy, fileio.Excerpt(kind, 0))
	case strings.Contains(header, "'fortran_order': True"):
		return nil, fmt.Errorf("%w: its elements are in the order of columns; save numpy.ascontiguousarray(a)", errNumPy)
	}
	t := &onnx.Tensor{DataType: elem, Raw: data[at+size:]}
	for part := range strings.SplitSeq(dims, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: its shape is (%s)", errNumPy, fileio.Excerpt(dims, 0))
		}
		t.Dims = append(t.Dims, n)
	}
	return lower.ArrayOf(t, ".")
}
