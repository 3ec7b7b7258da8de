package onnx

// The numbers of the fields are those of onnx.proto.

func (m *Model) fields(c *codec) {
	integer(c, 1, &m.IRVersion, false)
	c.string(2, &m.ProducerName)
	c.string(3, &m.ProducerVersion)
	c.string(4, &m.Domain)
	integer(c, 5, &m.ModelVersion, false)
	c.string(6, &m.Doc)
	one(c, 7, &m.Graph)
	many(c, 8, &m.Opsets)
	many(c, 14, &m.Metadata)
	many(c, 25, &m.Functions)
}

func (m *Opset) fields(c *codec) {
	c.string(1, &m.Domain)
	integer(c, 2, &m.Version, false)
}

func (m *Entry) fields(c *codec) {
	c.string(1, &m.Key)
	c.string(2, &m.Value)
}

func (m *Graph) fields(c *codec) {
	many(c, 1, &m.Nodes)
	c.string(2, &m.Name)
	many(c, 5, &m.Initializers)
	c.string(10, &m.Doc)
	many(c, 11, &m.Inputs)
	many(c, 12, &m.Outputs)
	many(c, 13, &m.Values)
	many(c, 14, &m.Quantization)
	many(c, 15, &m.SparseInitializers)
	many(c, 16, &m.Metadata)
}

func (m *Node) fields(c *codec) {
	c.strings(1, &m.Inputs)
	c.strings(2, &m.Outputs)
	c.string(3, &m.Name)
	c.string(4, &m.Op)
	many(c, 5, &m.Attributes)
	c.string(6, &m.Doc)
	c.string(7, &m.Domain)
	c.string(8, &m.Overload)
	many(c, 9, &m.Metadata)
}

func (m *Attribute) fields(c *codec) {
	c.string(1, &m.Name)
	// onnx.proto is of proto2, whose readers tell a zero from a value that is not set. A reference to
	// an attribute of a function must have none.
	c.float(2, &m.Float, m.Type == AttributeFloat && m.Ref == "")
	integer(c, 3, &m.Int, m.Type == AttributeInt && m.Ref == "")
	c.data(4, &m.String)
	one(c, 5, &m.Tensor)
	one(c, 6, &m.Graph)
	// Lists of attributes are not packed in onnx.proto, those of tensors below are.
	c.floats(7, &m.Floats, false)
	integers(c, 8, &m.Ints, false)
	c.datas(9, &m.Strings)
	many(c, 10, &m.Tensors)
	many(c, 11, &m.Graphs)
	c.string(13, &m.Doc)
	one(c, 14, &m.TypeProto)
	many(c, 15, &m.TypeProtos)
	integer(c, 20, &m.Type, false)
	c.string(21, &m.Ref)
	one(c, 22, &m.SparseTensor)
	many(c, 23, &m.SparseTensors)
}

func (m *Tensor) fields(c *codec) {
	integers(c, 1, &m.Dims, false)
	integer(c, 2, &m.DataType, false)
	one(c, 3, &m.Segment)
	c.floats(4, &m.Floats, true)
	integers(c, 5, &m.Int32s, true)
	c.datas(6, &m.Strings)
	integers(c, 7, &m.Int64s, true)
	c.string(8, &m.Name)
	c.data(9, &m.Raw)
	c.doubles(10, &m.Doubles)
	integers(c, 11, &m.Uint64s, true)
	c.string(12, &m.Doc)
	many(c, 13, &m.External)
	integer(c, 14, &m.Location, false)
	many(c, 16, &m.Metadata)
}

func (m *Segment) fields(c *codec) {
	integer(c, 1, &m.Begin, false)
	integer(c, 2, &m.End, false)
}

func (m *SparseTensor) fields(c *codec) {
	one(c, 1, &m.Values)
	one(c, 2, &m.Indices)
	integers(c, 3, &m.Dims, false)
}

func (m *Annotation) fields(c *codec) {
	c.string(1, &m.Tensor)
	many(c, 2, &m.Params)
}

func (m *ValueInfo) fields(c *codec) {
	c.string(1, &m.Name)
	sharedType(c, 2, &m.Type)
	c.string(3, &m.Doc)
	many(c, 4, &m.Metadata)
}

func (m *Type) fields(c *codec) {
	one(c, 1, &m.Tensor)
	one(c, 4, &m.Sequence)
	one(c, 5, &m.Map)
	c.string(6, &m.Denotation)
	one(c, 7, &m.Opaque)
	one(c, 8, &m.SparseTensor)
	one(c, 9, &m.Optional)
}

func (m *TensorType) fields(c *codec) {
	integer(c, 1, &m.Elem, false)
	one(c, 2, &m.Shape)
}

func (m *Shape) fields(c *codec) { many(c, 1, &m.Dims) }

func (m *Dim) fields(c *codec) {
	c.number(1, &m.Value)
	c.string(2, &m.Param)
	c.string(3, &m.Denotation)
}

func (m *ElementType) fields(c *codec) { one(c, 1, &m.Elem) }

func (m *MapType) fields(c *codec) {
	integer(c, 1, &m.Key, false)
	one(c, 2, &m.Value)
}

func (m *OpaqueType) fields(c *codec) {
	c.string(1, &m.Domain)
	c.string(2, &m.Name)
}

func (m *Function) fields(c *codec) {
	c.string(1, &m.Name)
	c.strings(4, &m.Inputs)
	c.strings(5, &m.Outputs)
	c.strings(6, &m.Attributes)
	many(c, 7, &m.Nodes)
	c.string(8, &m.Doc)
	many(c, 9, &m.Opsets)
	c.string(10, &m.Domain)
	many(c, 11, &m.Defaults)
	many(c, 12, &m.Values)
	c.string(13, &m.Overload)
	many(c, 14, &m.Metadata)
}
