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

// FromProto returns the type that a file gives a value.
func FromProto(p *onnx.Type) Type {
	switch {
	case p == nil:
		return Type{}
	case p.Tensor != nil:
		return fromTensorProto(p.Tensor)
	case p.Sequence != nil:
		return sequenceOf(FromProto(p.Sequence.Elem))
	case p.Optional != nil:
		return optionalOf(FromProto(p.Optional.Elem))
	case p.Map != nil:
		return FromProto(p.Map.Value).wrap("map(" + p.Map.Key.String() + ",")
	case p.SparseTensor != nil:
		return Type{opaque: "sparse_tensor(" + fromTensorProto(p.SparseTensor).String() + ")"}
	case p.Opaque != nil:
		return Type{opaque: p.String()}
	}
	return Type{}
}

func fromTensorProto(p *onnx.TensorType) Type {
	if p.Shape == nil {
		return AnyShape(p.Elem)
	}
	dims := make([]Dim, len(p.Shape.Dims))
	for i, d := range p.Shape.Dims {
		n, name := d.Size()
		if dims[i] = Symbol(name); n >= 0 {
			dims[i] = Known(n)
		}
	}
	return NewType(p.Elem, dims...)
}

// Proto returns the type as a file has it, nil if nothing is known, or it is one of another kind than
// tensors, sequences and optional values. Expressions become names.
func (t Type) Proto() *onnx.Type {
	if t.elem == onnx.Undefined {
		elem, sequence, optional := t.ElementOf()
		if !sequence && !optional {
			return nil
		}
		switch inner := (&onnx.ElementType{Elem: elem.Proto()}); {
		case inner.Elem == nil:
			return nil
		case sequence:
			return &onnx.Type{Sequence: inner}
		default:
			return &onnx.Type{Optional: inner}
		}
	}
	p := &onnx.Type{Tensor: &onnx.TensorType{Elem: t.elem}}
	dims, ranked := t.Shape()
	if !ranked {
		return p
	}
	p.Tensor.Shape = new(onnx.Shape)
	for _, d := range dims {
		var q onnx.Dim
		if n, ok := d.Number(); ok {
			q.Value = &n
		} else if name, ok := d.Symbolic(); ok {
			q.Param = name
		} else if !d.IsUnknown() {
			q.Param = d.String()
		}
		p.Tensor.Shape.Dims = append(p.Tensor.Shape.Dims, &q)
	}
	return p
}
