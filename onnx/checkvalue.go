package onnx

import (
	"fmt"
	"strings"
)

// attributeTypes are the names of the types of attributes, and how one tells that an attribute has a
// value of the type. Zero may be left out of a file, and so may lists without elements and text.
var attributeTypes = [...]struct {
	name string
	has  func(*Attribute) bool
	must bool // have a value
}{
	AttributeFloat:         {"float", func(a *Attribute) bool { return a.Float != 0 }, false},
	AttributeInt:           {"int", func(a *Attribute) bool { return a.Int != 0 }, false},
	AttributeString:        {"string", func(a *Attribute) bool { return len(a.String) > 0 }, false},
	AttributeTensor:        {"tensor", func(a *Attribute) bool { return a.Tensor != nil }, true},
	AttributeGraph:         {"graph", func(a *Attribute) bool { return a.Graph != nil }, true},
	AttributeFloats:        {"floats", func(a *Attribute) bool { return len(a.Floats) > 0 }, false},
	AttributeInts:          {"ints", func(a *Attribute) bool { return len(a.Ints) > 0 }, false},
	AttributeStrings:       {"strings", func(a *Attribute) bool { return len(a.Strings) > 0 }, false},
	AttributeTensors:       {"tensors", func(a *Attribute) bool { return len(a.Tensors) > 0 }, false},
	AttributeGraphs:        {"graphs", func(a *Attribute) bool { return len(a.Graphs) > 0 }, false},
	AttributeSparseTensor:  {"sparse_tensor", func(a *Attribute) bool { return a.SparseTensor != nil }, true},
	AttributeSparseTensors: {"sparse_tensors", func(a *Attribute) bool { return len(a.SparseTensors) > 0 }, false},
	AttributeTypeProto:     {"type_proto", func(a *Attribute) bool { return a.TypeProto != nil }, true},
	AttributeTypeProtos:    {"type_protos", func(a *Attribute) bool { return len(a.TypeProtos) > 0 }, false},
}

// String returns the name of the type in onnx.proto, in lower case.
func (t AttributeType) String() string {
	switch {
	case t == AttributeUndefined:
		return "undefined"
	case t < 0 || int(t) >= len(attributeTypes):
		return fmt.Sprintf("type %d", int32(t))
	}
	return attributeTypes[t].name
}

// attribute checks an attribute of a node, or the default of one of a function.
func (c *checker) attribute(a *Attribute) {
	if a.Name == "" {
		c.fault("an attribute must have a name")
	}
	var values []string
	fits := false
	for t, of := range attributeTypes {
		if of.has != nil && of.has(a) {
			values, fits = append(values, of.name), fits || AttributeType(t) == a.Type
		}
	}
	known := a.Type > 0 && int(a.Type) < len(attributeTypes)
	// Before ir_version 2 attributes had no type, and the value told it.
	switch {
	case a.Type == AttributeUndefined && c.model.IRVersion >= 2, a.Type < 0:
		c.fault("it has no type")
	case len(values) > 1:
		c.fault("it has several values: %s", strings.Join(values, ", "))
	case a.Ref != "":
		c.ref(a, values)
	case known && len(values) == 1 && !fits:
		c.fault("it is of type %v, but has a value of type %s", a.Type, values[0])
	case known && len(values) == 0 && attributeTypes[a.Type].must:
		c.fault("it has no value of type %v", a.Type)
	}
	c.attributeParts(a)
}

// ref checks an attribute whose value is that of an attribute of the function.
func (c *checker) ref(a *Attribute, values []string) {
	switch {
	case c.function == nil:
		c.fault("it refers to the attribute %s of a function, but is in none", quote(a.Ref))
	case !c.attributes[a.Ref]:
		c.fault("it refers to the attribute %s, which the function has not", quote(a.Ref))
	case len(values) > 0:
		c.fault("it refers to the attribute %s, but has a value, too", quote(a.Ref))
	}
}

// attributeParts checks the messages in an attribute.
func (c *checker) attributeParts(a *Attribute) {
	tensor := func(i int, t *Tensor) {
		if t != nil {
			c.in(i, t, func() { c.tensor(t) })
		}
	}
	sparse := func(i int, t *SparseTensor) {
		if t != nil {
			c.in(i, t, func() { c.sparse(t) })
		}
	}
	tensor(-1, a.Tensor)
	sparse(-1, a.SparseTensor)
	for i, t := range a.Tensors {
		tensor(i, t)
	}
	for i, t := range a.SparseTensors {
		sparse(i, t)
	}
	if a.Graph != nil {
		c.graph(a.Graph, false)
	}
	for i, g := range a.Graphs {
		c.in(i, g, func() { c.graph(g, false) })
	}
	if a.TypeProto != nil {
		c.typ(a.TypeProto)
	}
	for i, t := range a.TypeProtos {
		c.in(i, t, func() { c.typ(t) })
	}
}

// tensor checks that a tensor has the elements that its dimensions ask for.
func (c *checker) tensor(t *Tensor) {
	if t.DataType <= Undefined {
		c.fault("its elements are of type %v", t.DataType)
		return
	}
	if t.DataType == String {
		c.strings(t)
		return
	}
	if t.DataType.Bits() == 0 { // of a newer version of ONNX
		return
	}
	elements, size, err := t.extent()
	if err != nil {
		c.fault("%v", plainFault(err))
		return
	}
	if t.Location == LocationExternal {
		if _, err := t.reference(size); err != nil {
			c.fault("%v", plainFault(err))
		}
		return
	}
	fields := 0
	for _, n := range []int{len(t.Raw), len(t.Floats), len(t.Int32s), len(t.Strings), len(t.Int64s), len(t.Doubles), len(t.Uint64s)} {
		if n > 0 {
			fields++
		}
	}
	if fields > 1 {
		c.fault("it has elements in %d fields", fields)
	} else if err := t.fits(elements, size); err != nil {
		c.fault("%v", plainFault(err))
	}
}

// strings checks a tensor of strings, which are in a field of their own.
func (c *checker) strings(t *Tensor) {
	numbers := len(t.Floats) + len(t.Int32s) + len(t.Int64s) + len(t.Doubles) + len(t.Uint64s)
	if len(t.Raw) > 0 || numbers > 0 || t.Location == LocationExternal {
		c.fault("strings must be in string_data")
		return
	}
	// extent refuses strings, which have no size, so bytes of the same shape are counted.
	bytes := Tensor{DataType: Uint8, Dims: t.Dims}
	elements, _, err := bytes.extent()
	if err != nil {
		c.fault("%v", plainFault(err))
	} else if int64(len(t.Strings)) != elements {
		c.fault("%d strings for %d elements", len(t.Strings), elements)
	}
}

// plainFault returns the text of an error of a tensor, without what the place says.
func plainFault(err error) string { return strings.TrimPrefix(err.Error(), ErrTensor.Error()+": ") }

// sparse checks a sparse tensor. Its indices are one for each value, into all elements in the order of
// rows or one for each dimension.
func (c *checker) sparse(s *SparseTensor) {
	if s.Values == nil {
		c.fault("it has no values")
		return
	}
	c.in(-1, s.Values, func() { c.tensor(s.Values) })
	// ONNX's checker refuses sizes of 0 here, which other tensors may have.
	for _, d := range s.Dims {
		if d <= 0 {
			c.fault("a dimension of size %d", d)
			return
		}
	}
	if len(s.Values.Dims) != 1 {
		c.fault("its values have %d dimensions, want 1", len(s.Values.Dims))
		return
	}
	n := s.Values.Dims[0]
	if s.Indices == nil {
		if n > 0 {
			c.fault("it has no indices")
		}
		return
	}
	c.in(-1, s.Indices, func() { c.tensor(s.Indices) })
	if s.Indices.DataType != Int64 {
		c.fault("its indices are of type %v, want int64", s.Indices.DataType)
	}
	switch d := s.Indices.Dims; {
	case len(d) == 1 && d[0] == n, len(d) == 2 && d[0] == n && d[1] == int64(len(s.Dims)):
	default:
		c.fault("its indices have dimensions %s for %d values in %d dimensions", dimsText(d), n, len(s.Dims))
	}
}
