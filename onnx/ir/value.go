package ir

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/half"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
)

// A Value is the data of a constant: a tensor of a file, whose elements are read when somebody asks.
// It does not change.
type Value struct {
	Tensor *onnx.Tensor
	sparse *onnx.SparseTensor // in place of a Tensor
	dir    string

	once sync.Once // for elements that are not in the tensor as bytes
	data []byte
	err  error
}

// NewValue returns the value of a tensor of a file in a folder. Neither may change afterwards.
func NewValue(t *onnx.Tensor, dir string) *Value {
	return &Value{Tensor: t, dir: dir}
}

// Bytes returns the elements as [onnx.Tensor.Data] does.
func (x *Value) Bytes() ([]byte, error) {
	if x.Tensor == nil {
		return nil, fmt.Errorf("%w: a sparse tensor", onnx.ErrTensor)
	}
	if x.Tensor.Raw != nil {
		return x.Tensor.Data(x.dir)
	}
	x.once.Do(func() { x.data, x.err = x.Tensor.Data(x.dir) })
	return x.data, x.err
}

// Len returns the number of elements, -1 if it is too large for an int.
func (x *Value) Len() int {
	if x.Tensor == nil {
		return -1
	}
	n := int64(1)
	for _, d := range x.Tensor.Dims {
		// Dimensions come from a file, and their product could overflow.
		if d != 0 && n > (1<<60)/max(d, 1) {
			return -1
		}
		n *= d
	}
	return int(n)
}

// Small reports whether there are so few elements that types may have them: sizes, axes and the like.
func (x *Value) Small() bool { n := x.Len(); return n >= 0 && n <= maxData }

// Dir returns the folder of the file that the tensor is from.
func (x *Value) Dir() string { return x.dir }

// Constant returns a constant.
func Constant(x *Value, name string) *fgraph.Variable {
	if x.Tensor == nil {
		return fgraph.NewConstant(Type{opaque: "sparse"}, x, name)
	}
	dims := lists.Map(x.Tensor.Dims, Known)
	t := NewType(x.Tensor.DataType, dims...)
	if len(dims) <= 1 && x.Len() <= maxData {
		if list, ok := x.Ints(); ok {
			t = t.WithData(knowns(list))
		}
	}
	return fgraph.NewConstant(t, x, name)
}

func knowns(list []int64) []Dim { return lists.Map(list, Known) }

// Int64s returns a constant of integers, with one dimension.
func Int64s(list ...int64) *fgraph.Variable { return int64s([]int64{int64(len(list))}, list) }

// Int64 returns a constant without dimensions.
func Int64(n int64) *fgraph.Variable { return int64s(nil, []int64{n}) }

func int64s(dims, list []int64) *fgraph.Variable {
	v, _ := Integers(list, onnx.Int64, dims...)
	return v
}

type omitted struct{}

// Missing returns what takes the place of an input that is left out.
func Missing() *fgraph.Variable { return fgraph.NewConstant(omittedType, omitted{}, "") }

// IsOmitted reports whether a variable takes the place of an input that is left out.
func IsOmitted(v *fgraph.Variable) bool { return v.IsConstant() && v.Data() == omitted{} }

// ValueOf returns the value of a constant, or nil.
func ValueOf(v *fgraph.Variable) *Value {
	x, _ := v.Data().(*Value)
	return x
}

// Ints returns the elements of a tensor of integers or bools.
func (x *Value) Ints() ([]int64, bool) {
	if x.Tensor == nil {
		return nil, false
	}
	t := x.Tensor.DataType
	if !isInteger(t) || t == onnx.Uint64 {
		return nil, false
	}
	raw, err := x.Bytes()
	if err != nil {
		return nil, false
	}
	size := t.Bits() / 8
	list := make([]int64, len(raw)/size)
	for i := range list {
		list[i] = intAt(t, raw[i*size:])
	}
	return list, true
}

// NumbersOf returns the elements of a variable of integers if all are known: it is a constant, or its
// type has them.
func NumbersOf(v *fgraph.Variable) ([]int64, bool) {
	if x := ValueOf(v); x != nil {
		return x.Ints()
	}
	if v.Data() != nil {
		return nil, false
	}
	t := TypeOf(v)
	data, ok := t.Data()
	if !ok {
		// An empty list has no elements that its type could show, so all of them are known.
		return nil, t.Elem() == onnx.Int64 && t.dims == "0"
	}
	list := make([]int64, len(data))
	for i, d := range data {
		if list[i], ok = d.Number(); !ok {
			return nil, false
		}
	}
	return list, true
}

// EqualData reports whether two constants of the type are the same to the bit.
func (t Type) EqualData(a, b any) bool {
	x, ok := a.(*Value)
	y, too := b.(*Value)
	if !ok || !too {
		return a == b
	}
	if x == y {
		return true
	}
	if x.Tensor == nil || y.Tensor == nil || x.Tensor.DataType != y.Tensor.DataType || !slices.Equal(x.Tensor.Dims, y.Tensor.Dims) {
		return false
	}
	if x.Tensor.DataType == onnx.String {
		return slices.EqualFunc(x.Tensor.Strings, y.Tensor.Strings, bytes.Equal)
	}
	p, err := x.Bytes()
	q, err2 := y.Bytes()
	return err == nil && err2 == nil && bytes.Equal(p, q)
}

// EqualConstants reports whether two variables are constants that are the same to the bit.
func EqualConstants(u, v *fgraph.Variable) bool {
	return u.IsConstant() && v.IsConstant() && u.Type() == v.Type() && fgraph.EqualData(u.Type(), u.Data(), v.Data())
}

// hashed bounds the bytes of a tensor that are hashed, because weights may be large. Those of equal
// hash are compared whole.
const hashed = 1 << 10

// HashData returns a hash that is consistent with EqualData.
func (t Type) HashData(data any) uint64 {
	x, ok := data.(*Value)
	if !ok || x.Tensor == nil {
		return 1
	}
	h := maphash.Hash{}
	h.SetSeed(seed)
	h.WriteString(t.dims)
	h.WriteByte(byte(t.elem))
	if x.Tensor.DataType == onnx.String {
		return h.Sum64()
	}
	raw, err := x.Bytes()
	if err != nil {
		return h.Sum64()
	}
	h.Write(raw[:min(len(raw), hashed)])
	h.Write(raw[max(len(raw)-hashed, 0):])
	return h.Sum64()
}

// shown bounds the elements that a constant is printed with.
const shown = 8

// FormatData returns a constant in short: its elements if they are few, else its type.
func (t Type) FormatData(data any) string {
	x, ok := data.(*Value)
	if !ok {
		return "_"
	}
	if n := x.Len(); n >= 0 && n <= shown {
		if text, ok := elementsText(x); ok {
			return text
		}
	}
	return t.String()
}

// Sample returns at most so many numbers of a constant, evenly spaced, and how many it has.
func (t Type) Sample(data any, most int) (numbers []float64, of int) {
	x, ok := data.(*Value)
	if !ok || x.Tensor == nil || kindOf(x.Tensor.DataType) == 0 {
		return nil, 0
	}
	raw, err := x.Bytes()
	if err != nil {
		return nil, 0
	}
	size := x.Tensor.DataType.Bits() / 8
	all := len(raw) / size
	n := min(all, most)
	for i := range n {
		numbers = append(numbers, numberAt(x.Tensor.DataType, raw[i*all/n*size:]))
	}
	return numbers, all
}

// DataText returns the elements of a constant to the bit, in base64.
func dataText(x *Value) (string, error) {
	if x.Tensor != nil && x.Tensor.DataType != onnx.String {
		raw, err := x.Bytes()
		return base64.StdEncoding.EncodeToString(raw), err
	}
	var b strings.Builder
	var err error
	if x.Tensor == nil {
		err = x.sparse.Write(&b)
	} else {
		err = x.Tensor.Write(&b)
	}
	return "proto " + base64.StdEncoding.EncodeToString([]byte(b.String())), err
}

// Integers returns a constant of integers.
func Integers(list []int64, elem onnx.DataType, dims ...int64) (*fgraph.Variable, error) {
	if !isInteger(elem) {
		return nil, fmt.Errorf("integers of type %v", elem)
	}
	var raw []byte
	for _, n := range list {
		raw = appendInt(raw, elem, n)
	}
	x := NewValue(&onnx.Tensor{Dims: dims, DataType: elem, Raw: raw}, "")
	_, err := x.Bytes()
	return Constant(x, ""), err
}

// elementsText returns the elements of a tensor as text, with brackets if it has dimensions.
func elementsText(x *Value) (string, bool) {
	list, ok := elementTexts(x)
	if !ok {
		return "", false
	}
	if len(x.Tensor.Dims) == 0 && len(list) == 1 {
		return list[0], true
	}
	return listText(list, func(s string) string { return s }), true
}

func elementTexts(x *Value) ([]string, bool) {
	if x.Tensor == nil {
		return nil, false
	}
	if x.Tensor.DataType == onnx.String {
		return lists.Map(x.Tensor.Strings, func(s []byte) string { return strconv.Quote(string(s)) }), true
	}
	var list []string
	if ints, ok := x.Ints(); ok {
		for _, n := range ints {
			if x.Tensor.DataType == onnx.Bool {
				list = append(list, strconv.FormatBool(n != 0))
			} else {
				list = append(list, strconv.FormatInt(n, 10))
			}
		}
		return list, true
	}
	floats, ok := x.Floats()
	for _, f := range floats {
		// With the digits of its own type: as a double, 0.1 of 32 bits would be 0.10000000149011612.
		bits := 32
		if x.Tensor.DataType == onnx.Double {
			bits = 64
		}
		list = append(list, strconv.FormatFloat(f, 'g', -1, bits))
	}
	return list, ok
}

// Floats returns the elements of a tensor of float or double.
func (x *Value) Floats() ([]float64, bool) {
	if x.Tensor == nil || x.Tensor.DataType != onnx.Float && x.Tensor.DataType != onnx.Double {
		return nil, false
	}
	raw, err := x.Bytes()
	var list []float64
	for part := range slices.Chunk(raw, x.Tensor.DataType.Bits()/8) {
		list = append(list, numberAt(x.Tensor.DataType, part))
	}
	return list, err == nil
}

// numberAt returns the number that bytes begin with, of a type that has a kind.
func numberAt(t onnx.DataType, b []byte) float64 {
	switch t {
	case onnx.Float:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case onnx.Double:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	case onnx.Float16:
		return float64(half.Float32(binary.LittleEndian.Uint16(b)))
	case onnx.BFloat16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
	}
	return float64(intAt(t, b))
}

// intAt returns the integer or bool that bytes begin with.
func intAt(t onnx.DataType, b []byte) int64 {
	size := t.Bits() / 8
	var n uint64
	for k := range size {
		n |= uint64(b[k]) << (8 * k)
	}
	if shift := 64 - 8*size; kindOf(t) == signed {
		return int64(n<<shift) >> shift
	}
	return int64(n)
}

// appendInt appends the bytes of an integer or bool of a type.
func appendInt(raw []byte, t onnx.DataType, n int64) []byte {
	for k := range t.Bits() / 8 {
		raw = append(raw, byte(n>>(8*k)))
	}
	return raw
}
