package ir

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

// Dialect is the name of the dialect of these graphs, for entries of a database.
const Dialect = "onnx"

// A Type is the type of a value: of tensors, their elements and as much of their shape as is known.
// The type of a small tensor of integers also has its elements, as far as they are known: sizes of
// others are, which become shapes again.
//
//	float[n,3,224,224]    int64[2]{n,128}    bool[]    float[*], of any shape
//
// Other types are opaque: they are what the file says, such as seq(tensor(float)). The zero Type is
// that of a value of which nothing is known, such as the result of an unknown operator.
type Type struct {
	elem   onnx.DataType // Undefined for what is no tensor
	dims   string        // as in the text, "*" for any
	data   string        // as in the text
	opaque string
}

// omittedType is the type of an optional input that is left out.
var omittedType = Type{opaque: "omitted"}

// anyShape is the text of a shape of which nothing is known.
const anyShape = "*"

// maxRank bounds the dimensions that a type has, because files may ask for any number. Of more, the
// shape is not known.
const maxRank = 64

// NewType returns the type of tensors of a shape. If the type of elements is not known, nothing is.
func NewType(elem onnx.DataType, dims ...Dim) Type {
	if elem == onnx.Undefined {
		return Type{}
	}
	if len(dims) > maxRank {
		return AnyShape(elem)
	}
	return Type{elem: elem, dims: joinDims(dims)}
}

// AnyShape returns the type of tensors of any shape. If the type of elements is not known, nothing is.
func AnyShape(elem onnx.DataType) Type {
	if elem == onnx.Undefined {
		return Type{}
	}
	return Type{elem: elem, dims: anyShape}
}

func joinDims(dims []Dim) string {
	if len(dims) == 1 {
		return dims[0].String()
	}
	var b strings.Builder
	for i, d := range dims {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(d.String())
	}
	return b.String()
}

// maxData bounds the elements that a type has.
const maxData = 64

// WithData returns the type of integers with these elements, the last dimension fastest. The shape has
// to be of numbers, and fit. If all elements are unknown, or too many, the type remains as it is.
func (t Type) WithData(elements []Dim) Type {
	if len(elements) > maxData || !slices.ContainsFunc(elements, func(d Dim) bool { return !d.IsUnknown() }) {
		t.data = ""
		return t
	}
	t.data = "{" + joinDims(elements) + "}"
	return t
}

// Data returns the elements that the type has.
func (t Type) Data() ([]Dim, bool) {
	if t.data == "" {
		return nil, false
	}
	return trustedDims(t.data[1 : len(t.data)-1]), true
}

// Elem returns the type of elements, Undefined for what is no tensor.
func (t Type) Elem() onnx.DataType { return t.elem }

// Shape returns the sizes. ranked is false if not even their number is known.
func (t Type) Shape() (dims []Dim, ranked bool) {
	if t.elem == onnx.Undefined || t.dims == anyShape {
		return nil, false
	}
	return trustedDims(t.dims), true
}

// Rank returns the number of dimensions, -1 if it is unknown.
func (t Type) Rank() int {
	if t.elem == onnx.Undefined || t.dims == anyShape {
		return -1
	}
	return countDims(t.dims)
}

// Numbers returns the sizes if all are numbers.
func (t Type) Numbers() ([]int64, bool) {
	dims, ranked := t.Shape()
	sizes := make([]int64, len(dims))
	for i, d := range dims {
		var ok bool
		if sizes[i], ok = d.Number(); !ok {
			return nil, false
		}
	}
	return sizes, ranked
}

// IsTensor reports whether the values are tensors.
func (t Type) IsTensor() bool { return t.elem != onnx.Undefined }

// IsUnknown reports whether nothing is known, not even whether it is a tensor.
func (t Type) IsUnknown() bool { return t == Type{} }

// Dialect returns the name of the dialect.
func (t Type) Dialect() string { return Dialect }

// Accepts reports whether a value of type u may be one of type t: whether nothing that is known of
// them differs.
func (t Type) Accepts(u fgraph.Type) bool {
	v, ok := u.(Type)
	if !ok {
		return false
	}
	_, ok = t.Meet(v)
	return ok
}

// Meet returns what is known of a value of both types. ok is false if there is none.
func (t Type) Meet(u Type) (both Type, ok bool) {
	switch {
	case t == u || u.IsUnknown():
		return t, true
	case t.IsUnknown():
		return u, true
	case t.elem != u.elem:
		return t, false
	case t.elem == onnx.Undefined:
		open, x, isOne := t.unwrap()
		other, y, too := u.unwrap()
		if both, ok = x.Meet(y); !isOne || !too || open != other || !ok {
			return t, false
		}
		return both.wrap(open), true
	}
	both = t
	if both.dims, ok = meetDims(t.dims, u.dims, t.dims == anyShape, u.dims == anyShape); !ok {
		return t, false
	}
	if both.data, ok = meetDims(t.data, u.data, t.data == "", u.data == ""); !ok {
		return t, false
	}
	return both, true
}

// meetDims meets two lists, either of which may be unknown.
func meetDims(a, b string, anyA, anyB bool) (string, bool) {
	switch {
	case a == b || anyB:
		return a, true
	case anyA:
		return b, true
	}
	open, closed := "", ""
	if strings.HasPrefix(a, "{") {
		open, closed = "{", "}"
		a, b = strings.Trim(a, "{}"), strings.Trim(b, "{}")
	}
	x, y := trustedDims(a), trustedDims(b)
	if len(x) != len(y) {
		return "", false
	}
	for i := range x {
		var ok bool
		if x[i], ok = x[i].meet(y[i]); !ok {
			return "", false
		}
	}
	return open + joinDims(x) + closed, true
}

// Join returns what is known of a value that is of one type or of the other.
func (t Type) Join(u Type) Type {
	switch {
	case t == u:
		return t
	case t.elem != u.elem:
		return Type{}
	case t.elem == onnx.Undefined:
		open, x, isOne := t.unwrap()
		other, y, too := u.unwrap()
		if !isOne || !too || open != other {
			return Type{}
		}
		return x.Join(y).wrap(open)
	}
	x, ranked := t.Shape()
	y, too := u.Shape()
	if !ranked || !too || len(x) != len(y) {
		return AnyShape(t.elem)
	}
	joined := NewType(t.elem, joinEach(x, y)...)
	p, known := t.Data()
	q, both := u.Data()
	if known && both && len(p) == len(q) {
		joined = joined.WithData(joinEach(p, q))
	}
	return joined
}

// joinEach returns those of two lists that are the same.
func joinEach(x, y []Dim) []Dim {
	list := make([]Dim, len(x))
	for i := range list {
		if list[i] = x[i]; !x[i].Same(y[i]) {
			list[i] = UnknownDim
		}
	}
	return list
}

// sequenceOf returns the type of sequences of values of a type.
func sequenceOf(t Type) Type { return t.withoutData().wrap("seq(") }

// optionalOf returns the type of values of a type that need not be there.
func optionalOf(t Type) Type { return t.withoutData().wrap("optional(") }

// ElementOf returns the type of the elements of a sequence or of an optional value.
func (t Type) ElementOf() (elem Type, sequence, optional bool) {
	open, elem, _ := t.unwrap()
	return elem, open == "seq(", open == "optional("
}

// withoutData returns the type of values with any elements.
func (t Type) withoutData() Type {
	t.data = ""
	return t
}

// wrap returns an opaque type, such as seq(float[n]).
func (t Type) wrap(open string) Type { return Type{opaque: open + t.inner() + ")"} }

// inner returns the text of a type in an opaque one.
func (t Type) inner() string {
	if t.opaque != "" {
		return t.opaque
	}
	return t.String()
}

// unwrap divides an opaque type into the type in it and what is in front of that.
func (t Type) unwrap() (open string, inner Type, ok bool) {
	for _, open := range []string{"seq(", "optional("} {
		if rest, ok := strings.CutPrefix(t.opaque, open); ok {
			return open, innerType(strings.TrimSuffix(rest, ")")), true
		}
	}
	if key, rest, ok := strings.Cut(t.opaque, ","); ok && strings.HasPrefix(key, "map(") {
		return key + ",", innerType(strings.TrimSuffix(rest, ")")), true
	}
	return "", Type{}, false
}

func innerType(text string) Type {
	if t, err := ParseType(text); err == nil {
		return t
	}
	return Type{opaque: text}
}

// TypeOf returns the type of a variable.
func TypeOf(v *fgraph.Variable) Type {
	t, _ := v.Type().(Type)
	return t
}

// holds reports whether tensors are known to have so many elements.
func (t Type) holds(n int) bool {
	have, ok := t.length()
	return ok && have == n
}

// length returns how many elements tensors have. ok is false if that is not known, or more than types
// have elements.
func (t Type) length() (n int, ok bool) {
	sizes, ok := t.Numbers()
	if !ok {
		return 0, false
	}
	product := int64(1)
	for _, s := range sizes {
		if s < 0 || s > maxData {
			return 0, false
		}
		product = min(product*s, maxData+1) // a 0 may follow
	}
	return int(product), product <= maxData
}
