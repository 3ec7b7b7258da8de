package ir

import (
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/onnx"
)

// String returns the text that ParseType reads.
func (t Type) String() string {
	switch {
	case t.IsUnknown():
		return "unknown"
	case t.elem == onnx.Undefined:
		return "opaque[" + t.opaque + "]"
	}
	return t.elem.String() + "[" + t.dims + "]" + t.data
}

// ParseType reads the text of a type.
func ParseType(text string) (Type, error) {
	if text == "unknown" {
		return Type{}, nil
	}
	name, rest, ok := strings.Cut(text, "[")
	if name == "opaque" && strings.HasSuffix(rest, "]") {
		return Type{opaque: strings.TrimSuffix(rest, "]")}, nil
	}
	elem, known := elemOf(name)
	end := closing(rest)
	if !ok || !known || end < 0 {
		return Type{}, fmt.Errorf("%.100q is no type, such as float[n,3] or int64[*]", text)
	}
	t := AnyShape(elem)
	if dims := rest[:end]; dims != anyShape {
		list, err := readDims(dims)
		if err != nil {
			return Type{}, err
		}
		t = NewType(elem, list...)
	}
	data := rest[end+1:]
	if data == "" {
		return t, nil
	}
	list, err := readDims(strings.TrimSuffix(strings.TrimPrefix(data, "{"), "}"))
	if err != nil || len(data) < 2 || data[0] != '{' || data[len(data)-1] != '}' || !t.holds(len(list)) {
		return Type{}, fmt.Errorf("%.100q is no list of the elements, such as {n,128}", data)
	}
	return t.WithData(list), nil
}

func readDims(text string) ([]Dim, error) {
	if text == "" {
		return nil, nil
	}
	var dims []Dim
	for _, p := range split(text, ",") {
		d, err := readDim(p)
		if err != nil {
			return nil, err
		}
		dims = append(dims, d)
	}
	return dims, nil
}

// elemOf returns the type of elements of a name.
func elemOf(name string) (onnx.DataType, bool) {
	for t := onnx.Float; t <= onnx.Int2; t++ {
		if t.String() == name {
			return t, true
		}
	}
	return 0, false
}

// closing returns the index of the first bracket that closes one in front of a text, -1 if there is none.
func closing(text string) int {
	end := -1
	scan(text, func(i, _ int) {
		if end < 0 && text[i] == ']' {
			end = i
		}
	})
	return end
}
