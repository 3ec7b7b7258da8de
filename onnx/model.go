package onnx

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// A Model is a ModelProto: a graph with the versions of the operators that it uses.
type Model struct {
	IRVersion       int64
	ProducerName    string
	ProducerVersion string
	Domain          string
	ModelVersion    int64
	Doc             string
	Graph           *Graph
	Opsets          []*Opset
	Metadata        []*Entry
	Functions       []*Function
	message
}

// An Opset is an OperatorSetIdProto: the version of the operators of a domain, "" for ONNX's own.
type Opset struct {
	Domain  string `json:"domain"`
	Version int64  `json:"version"`
	message
}

// An Entry is a StringStringEntryProto.
type Entry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	message
}

// A Graph is a GraphProto. Nodes come after those whose outputs they use.
type Graph struct {
	Nodes              []*Node
	Name               string
	Initializers       []*Tensor
	Doc                string
	Inputs             []*ValueInfo
	Outputs            []*ValueInfo
	Values             []*ValueInfo // types of what is in between
	Quantization       []*Annotation
	SparseInitializers []*SparseTensor
	Metadata           []*Entry
	message
}

// A Node is a NodeProto: an operator applied to named values. An empty name is an optional input or
// output that is left out.
type Node struct {
	Inputs     []string
	Outputs    []string
	Name       string
	Op         string
	Attributes []*Attribute
	Doc        string
	Domain     string
	Overload   string
	Metadata   []*Entry
	message
}

// An Attribute is an AttributeProto. Type says which of the values it has.
type Attribute struct {
	Name          string
	Float         float32
	Int           int64
	String        []byte
	Tensor        *Tensor
	Graph         *Graph
	Floats        []float32
	Ints          []int64
	Strings       [][]byte
	Tensors       []*Tensor
	Graphs        []*Graph
	Doc           string
	TypeProto     *Type
	TypeProtos    []*Type
	Type          AttributeType
	Ref           string // in a function: the attribute of the function that is the value
	SparseTensor  *SparseTensor
	SparseTensors []*SparseTensor
	message
}

// An AttributeType is the type of an attribute.
type AttributeType int32

// The types of attributes.
const (
	AttributeUndefined AttributeType = iota
	AttributeFloat
	AttributeInt
	AttributeString
	AttributeTensor
	AttributeGraph
	AttributeFloats
	AttributeInts
	AttributeStrings
	AttributeTensors
	AttributeGraphs
	AttributeSparseTensor
	AttributeSparseTensors
	AttributeTypeProto
	AttributeTypeProtos
)

// A Tensor is a TensorProto. Its elements are in Raw, little-endian, in one of the typed fields, or
// in another file. Raw and Strings may share the memory that the model was read from.
type Tensor struct {
	Dims     []int64
	DataType DataType
	Segment  *Segment
	Floats   []float32 // also complex64, as pairs
	Int32s   []int32   // also smaller integers, bool, and halves as bits
	Strings  [][]byte
	Int64s   []int64
	Name     string
	Raw      []byte
	Doubles  []float64 // also complex128, as pairs
	Uint64s  []uint64  // also uint32
	Doc      string
	External []*Entry     // where the elements are if Location is LocationExternal
	Location DataLocation // of the elements
	Metadata []*Entry
	message
}

// A DataLocation says where the elements of a tensor are.
type DataLocation int32

// The locations of elements.
const (
	LocationDefault DataLocation = iota
	LocationExternal
)

// A Segment is a part of a tensor that is written in parts.
type Segment struct {
	Begin, End int64
	message
}

// A DataType is the type of elements.
type DataType int32

// The types of elements.
const (
	Undefined DataType = iota
	Float
	Uint8
	Int8
	Uint16
	Int16
	Int32
	Int64
	String
	Bool
	Float16
	Double
	Uint32
	Uint64
	Complex64
	Complex128
	BFloat16
	Float8E4M3FN
	Float8E4M3FNUZ
	Float8E5M2
	Float8E5M2FNUZ
	Uint4
	Int4
	Float4E2M1
	Float8E8M0
	Uint2
	Int2
)

var dataTypes = [...]struct {
	name string
	bits int // 0 for strings
}{
	{"undefined", 0}, {"float", 32}, {"uint8", 8}, {"int8", 8}, {"uint16", 16}, {"int16", 16}, {"int32", 32}, {"int64", 64}, {"string", 0}, {"bool", 8},
	{"float16", 16}, {"double", 64}, {"uint32", 32}, {"uint64", 64}, {"complex64", 64}, {"complex128", 128}, {"bfloat16", 16},
	{"float8e4m3fn", 8}, {"float8e4m3fnuz", 8}, {"float8e5m2", 8}, {"float8e5m2fnuz", 8}, {"uint4", 4}, {"int4", 4}, {"float4e2m1", 4}, {"float8e8m0", 8},
	{"uint2", 2}, {"int2", 2},
}

// String returns the name that ONNX's type strings use, such as "float" or "int64".
func (t DataType) String() string {
	if t < 0 || int(t) >= len(dataTypes) {
		return "type " + strconv.Itoa(int(t))
	}
	return dataTypes[t].name
}

// Bits returns the size of an element, 0 if it has none: of strings and of unknown types.
func (t DataType) Bits() int {
	if t < 0 || int(t) >= len(dataTypes) {
		return 0
	}
	return dataTypes[t].bits
}

// Limits returns the least and the largest number of a type of integers, or of bools, which are 0 and 1, as far as
// an int64 has them. ok is false for other types.
func (t DataType) Limits() (least, most int64, ok bool) {
	switch t {
	case Bool:
		return 0, 1, true
	case Int2, Int4, Int8, Int16, Int32, Int64:
		least = int64(-1) << (t.Bits() - 1)
		return least, -(least + 1), true
	case Uint2, Uint4, Uint8, Uint16, Uint32:
		return 0, int64(1)<<t.Bits() - 1, true
	case Uint64:
		return 0, math.MaxInt64, true
	}
	return 0, 0, false
}

// A SparseTensor is a SparseTensorProto: values at indices of a tensor of zeros.
type SparseTensor struct {
	Values  *Tensor
	Indices *Tensor
	Dims    []int64
	message
}

// An Annotation is a TensorAnnotation: how a value is quantized.
type Annotation struct {
	Tensor string
	Params []*Entry
	message
}

// A ValueInfo is a ValueInfoProto: the type of a named value. Values of the graphs in nodes may share a type that was
// read: it must not be changed, only replaced.
type ValueInfo struct {
	Name     string
	Type     *Type
	Doc      string
	Metadata []*Entry
	message
}

// A Type is a TypeProto. One of its pointers is set.
type Type struct {
	Tensor       *TensorType
	Sequence     *ElementType
	Map          *MapType
	Denotation   string
	Opaque       *OpaqueType
	SparseTensor *TensorType
	Optional     *ElementType
	message
}

// A TensorType is the type of tensors.
type TensorType struct {
	Elem  DataType
	Shape *Shape // nil if the number of dimensions is unknown
	message
}

// A Shape is a TensorShapeProto.
type Shape struct {
	Dims []*Dim
	message
}

// A Dim is a dimension of a shape: a number, a symbol, or neither if it is unknown.
type Dim struct {
	Value      *int64
	Param      string
	Denotation string
	message
}

// Size returns the number that m is, with no name, or -1 and the name that all sizes have that are equal to it, which is
// empty if nothing is known of m. Some exporters write -1 for the number of what is not known, or one text, such as "?" or
// "None", for all such sizes, which need not be equal then.
func (m *Dim) Size() (n int64, name string) {
	switch {
	case m.Value != nil && *m.Value >= 0:
		return *m.Value, ""
	case m.Value == nil && m.Param != "None" && strings.ContainsFunc(m.Param, unicode.IsLetter):
		return -1, m.Param
	}
	return -1, ""
}

// An ElementType is the type of sequences or of optional values.
type ElementType struct {
	Elem *Type
	message
}

// A MapType is the type of maps.
type MapType struct {
	Key   DataType
	Value *Type
	message
}

// An OpaqueType is a type of another domain.
type OpaqueType struct {
	Domain, Name string
	message
}

// A Function is a FunctionProto: an operator as a graph of others.
type Function struct {
	Name       string
	Inputs     []string
	Outputs    []string
	Attributes []string     // without a default
	Defaults   []*Attribute // with one
	Nodes      []*Node
	Doc        string
	Opsets     []*Opset
	Domain     string
	Values     []*ValueInfo
	Overload   string
	Metadata   []*Entry
	message
}
