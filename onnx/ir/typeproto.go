package ir

import (
	"github.com/nnopt/nnopt/onnx"
)

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
