package onnx

import "io"

// ParseAttribute reads an AttributeProto, of which it keeps parts.
func ParseAttribute(data []byte) (*Attribute, error) {
	a := new(Attribute)
	return a, parse(a, data, nil)
}

// Write writes the AttributeProto.
func (m *Attribute) Write(w io.Writer) error { return newWriter(nil).write(w, m) }

// ParseSparseTensor reads a SparseTensorProto, of which it keeps parts.
func ParseSparseTensor(data []byte) (*SparseTensor, error) {
	t := new(SparseTensor)
	return t, parse(t, data, nil)
}

// Write writes the SparseTensorProto.
func (m *SparseTensor) Write(w io.Writer) error { return newWriter(nil).write(w, m) }
