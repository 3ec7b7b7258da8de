package onnx

import "io"

// ParseAttribute reads an AttributeProto.
func ParseAttribute(data []byte) (*Attribute, error) {
	a := new(Attribute)
	return a, parse(a, data)
}

// Write writes the AttributeProto.
func (m *Attribute) Write(w io.Writer) error { return write(w, m) }

// ParseSparseTensor reads a SparseTensorProto.
func ParseSparseTensor(data []byte) (*SparseTensor, error) {
	t := new(SparseTensor)
	return t, parse(t, data)
}

// Write writes the SparseTensorProto.
func (m *SparseTensor) Write(w io.Writer) error { return write(w, m) }
