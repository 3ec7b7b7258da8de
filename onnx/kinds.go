package onnx

import (
	"math"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

func (c *codec) string(num protowire.Number, v *string) {
	if c.reading() {
		if c.is(num, protowire.BytesType) && c.d.need(len(c.bytes)) {
			*v = string(c.bytes)
		}
	} else if *v != "" {
		c.out.tag(num, protowire.BytesType)
		c.out.varint(uint64(len(*v)))
		c.out.text(*v)
	}
}

func (c *codec) strings(num protowire.Number, v *[]string) {
	if c.reading() {
		// A list that grows leaves several times its size behind, of which 64 bytes for an element are enough.
		if c.is(num, protowire.BytesType) && c.d.need(len(c.bytes)+64) {
			*v = append(*v, string(c.bytes))
		}
		return
	}
	for _, s := range *v {
		c.out.tag(num, protowire.BytesType)
		c.out.varint(uint64(len(s)))
		c.out.text(s)
	}
}

// data is a field of bytes, which are not copied. Nil is one that is not there.
func (c *codec) data(num protowire.Number, v *[]byte) {
	if c.reading() {
		if c.is(num, protowire.BytesType) {
			*v = c.bytes[:len(c.bytes):len(c.bytes)]
		}
	} else if *v != nil {
		c.out.data(num, *v)
	}
}

func (c *codec) datas(num protowire.Number, v *[][]byte) {
	if c.reading() {
		if c.is(num, protowire.BytesType) && c.d.need(48) {
			*v = append(*v, c.bytes[:len(c.bytes):len(c.bytes)])
		}
		return
	}
	for _, b := range *v {
		c.out.data(num, b)
	}
}

// integer is a field of an integer or an enumeration. Zero is written if always is true.
func integer[T ~int32 | ~int64](c *codec, num protowire.Number, v *T, always bool) {
	if c.reading() {
		if c.is(num, protowire.VarintType) {
			*v = T(c.num64)
		}
	} else if *v != 0 || always {
		c.out.tag(num, protowire.VarintType)
		c.out.varint(uint64(int64(*v)))
	}
}

// integers is a field of several integers, in one field if packed is true.
func integers[T int32 | int64 | uint64](c *codec, num protowire.Number, v *[]T, packed bool) {
	numbers(c, num, v, protowire.VarintType, packed, func(x T) uint64 { return uint64(x) }, func(bits uint64) T { return T(bits) })
}

// floats is a field of several floats, in one field if packed is true.
func (c *codec) floats(num protowire.Number, v *[]float32, packed bool) {
	numbers(c, num, v, protowire.Fixed32Type, packed, func(x float32) uint64 { return uint64(math.Float32bits(x)) },
		func(bits uint64) float32 { return math.Float32frombits(uint32(bits)) })
}

// doubles is a packed field of float64s.
func (c *codec) doubles(num protowire.Number, v *[]float64) {
	numbers(c, num, v, protowire.Fixed64Type, true, math.Float64bits, math.Float64frombits)
}

// numbers is a field of several numbers whose bits have a type, in one field if packed is true. Both forms are
// read.
func numbers[T any](c *codec, num protowire.Number, v *[]T, typ protowire.Type, packed bool, bits func(T) uint64, of func(uint64) T) {
	if !c.reading() {
		c.out.list(num, typ, len(*v), packed, func(i int) uint64 { return bits((*v)[i]) })
		return
	}
	if c.num != num {
		return
	}
	size := 8 // of memory that an element takes, at most
	if typ == protowire.Fixed32Type {
		size = 4
	}
	if c.is(num, typ, protowire.BytesType); c.typ == typ {
		if c.d.need(size) {
			*v = append(*v, of(c.num64))
		}
		return
	}
	for b := c.bytes; len(b) > 0 && c.d.need(size); {
		x, n := consume(typ, b)
		if n < 0 {
			c.d.fail("field %d: %v", num, protowire.ParseError(n))
			return
		}
		*v = append(*v, of(x))
		b = b[n:]
	}
}

// consume reads the bits of a number, and returns how many bytes they take, which is negative for an error.
func consume(typ protowire.Type, b []byte) (uint64, int) {
	switch typ {
	case protowire.VarintType:
		return protowire.ConsumeVarint(b)
	case protowire.Fixed32Type:
		x, n := protowire.ConsumeFixed32(b)
		return uint64(x), n
	}
	return protowire.ConsumeFixed64(b)
}

// list encodes numbers: packed into one field, or each in a field.
func (s *sink) list(num protowire.Number, typ protowire.Type, n int, packed bool, at func(int) uint64) {
	if n == 0 {
		return
	}
	element := func(v uint64) {
		switch typ {
		case protowire.VarintType:
			s.varint(v)
		case protowire.Fixed32Type:
			s.buf = protowire.AppendFixed32(s.buf[:0], uint32(v))
			s.put(s.buf)
		default:
			s.buf = protowire.AppendFixed64(s.buf[:0], v)
			s.put(s.buf)
		}
	}
	// The length comes first. Counting takes a second pass over the numbers, but no memory for their encoding.
	if packed {
		size := 0
		switch typ {
		case protowire.VarintType:
			for i := range n {
				size += protowire.SizeVarint(at(i))
			}
		case protowire.Fixed32Type:
			size = 4 * n
		default:
			size = 8 * n
		}
		s.tag(num, protowire.BytesType)
		s.varint(uint64(size))
	}
	for i := range n {
		if !packed {
			s.tag(num, typ)
		}
		element(at(i))
	}
}

// one is a field with a message.
func one[M any, P interface {
	*M
	proto
}](c *codec, num protowire.Number, v *P) {
	if c.reading() {
		if c.is(num, protowire.BytesType) && c.d.need(int(unsafe.Sizeof(*new(M)))) {
			// A field of one message may be encoded twice; protobuf asks readers to merge both.
			if *v == nil {
				*v = new(M)
			}
			c.d.decode(*v, c.bytes, c.at)
		}
		return
	}
	if *v != nil {
		c.out.sub(num, *v)
	}
}

// Values of the graphs in nodes share their types, see ValueInfo: those of the model and of functions are this deep.
const unsharedDepth, maxSharedTypes = 3, 1 << 12

// sharedType is one for the types of values: those in graphs in nodes, of which there may be very many, get the same
// message for the same encoding.
func sharedType(c *codec, num protowire.Number, v **Type) {
	if !c.reading() || c.num != num || c.d.depth <= unsharedDepth {
		one(c, num, v)
		return
	}
	first := *v
	if known := c.d.types[string(c.bytes)]; first == nil && known != nil && c.is(num, protowire.BytesType) {
		*v = known
		return
	}
	if first != nil && c.d.types[string(first.encoding())] == first { // others must not get what is merged into it
		*v = new(Type)
		c.d.decode(*v, first.encoding(), int(first.at))
	}
	one(c, num, v)
	if _, odd := c.d.from.odd[uint32(c.at)]; first == nil && !odd && *v != nil && len(c.d.types) < maxSharedTypes {
		c.d.types[string(c.bytes)] = *v
	}
}

// many is a field with several messages.
func many[M any, P interface {
	*M
	proto
}](c *codec, num protowire.Number, v *[]P) {
	if c.reading() {
		if c.is(num, protowire.BytesType) && c.d.need(int(unsafe.Sizeof(*new(M)))+16) {
			m := P(new(M))
			*v = append(*v, m)
			c.d.decode(m, c.bytes, c.at)
		}
		return
	}
	for _, m := range *v {
		c.out.sub(num, m)
	}
}

// float is a field of a float32. Zero is written if always is true.
func (c *codec) float(num protowire.Number, v *float32, always bool) {
	if c.reading() {
		if c.is(num, protowire.Fixed32Type) {
			*v = math.Float32frombits(uint32(c.num64))
		}
	} else if math.Float32bits(*v) != 0 || always {
		c.out.tag(num, protowire.Fixed32Type)
		c.out.buf = protowire.AppendFixed32(c.out.buf[:0], math.Float32bits(*v))
		c.out.put(c.out.buf)
	}
}

// number is a field of an integer that may be left out.
func (c *codec) number(num protowire.Number, v **int64) {
	if c.reading() {
		if c.is(num, protowire.VarintType) && c.d.need(8) {
			*v = new(int64(c.num64))
		}
	} else if *v != nil {
		c.out.tag(num, protowire.VarintType)
		c.out.varint(uint64(**v))
	}
}

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
