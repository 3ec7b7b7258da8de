package array

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// String is the type of arrays of strings. They carry values to and from a model, and no op takes them: a graph
// has numbers in their place, since memory that is planned holds no pointers. It is none of [DTypes].
const String DType = 1 << 7

// OfStrings returns an array of strings in row-major order, whose memory is list. It panics if the shape has another
// number of elements.
func OfStrings(list []string, shape ...int) *Array {
	a := new(Array)
	a.layOut(String, shape)
	if a.Len() != len(list) {
		panic(fmt.Sprintf("array: %d elements for the shape %v", len(list), shape))
	}
	a.data = list
	return a
}

// Strings returns the elements of an array of strings in row-major order, nil for another array. The slice is the
// array's own and must not be changed.
func (a *Array) Strings() []string {
	data, ok := a.data.([]string)
	// Without strings data is nil, and the bounds are 0.
	if !ok || a.Contiguous() {
		return data[min(a.offset, len(data)):][:min(a.Len(), len(data))]
	}
	list := make([]string, a.Len())
	for i := range list {
		list[i] = data[a.place(i)]
	}
	return list
}

// numberText is what SetFloat makes of a number.
func numberText(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// stringDistance returns 0 if arrays, one of which has strings, have the same ones, and otherwise +Inf.
func stringDistance(a, b *Array) float64 {
	if a.dtype == b.dtype && SameShape(a, b) && slices.Equal(a.Strings(), b.Strings()) {
		return 0
	}
	return math.Inf(1)
}

// String prints the elements in nested brackets, as Python does: [[1.0, 2.0], [3.0, 4.0]]. It cuts
// long arrays off.
func (a *Array) String() string { return a.Text(100) }

// Text is like String, with a bound on the number of elements, most, that is kept nearly.
func (a *Array) Text(most int) string {
	if a.IsCSR() {
		return "csr(" + a.dense().Text(most) + ")"
	}
	if a.data == nil {
		return "no array"
	}
	var b strings.Builder
	a.write(&b, 0, a.offset, &most)
	return b.String()
}

// write prints dimensions d and up of the part of the array that starts at an offset. The
// recursion is bounded by MaxDims.
func (a *Array) write(b *strings.Builder, d, at int, most *int) {
	if d == int(a.ndim) {
		*most--
		b.WriteString(a.element(at))
		return
	}
	b.WriteByte('[')
	for i := range a.shape[d] {
		if i > 0 {
			b.WriteString(", ")
		}
		if *most <= 0 {
			b.WriteString("…")
			break
		}
		a.write(b, d+1, at+i*a.strides[d], most)
	}
	b.WriteByte(']')
}

// element prints an element as Python does, with as many digits as reading it back takes.
func (a *Array) element(at int) string {
	switch d := a.data.(type) {
	case []bool:
		if d[at] {
			return "True"
		}
		return "False"
	case []int64:
		return strconv.FormatInt(d[at], 10)
	case []uint64:
		return strconv.FormatUint(d[at], 10)
	case []F16:
		return floatText(d[at].decimal(), 64)
	case []BF16:
		return floatText(d[at].decimal(), 64)
	case []float32:
		return floatText(float64(d[at]), 32)
	case []float64:
		return floatText(d[at], 64)
	case []string:
		return strconv.Quote(d[at])
	}
	return strconv.FormatFloat(elementAt(a, at), 'f', -1, 64) // a smaller integer
}

func floatText(v float64, bits int) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		format = 'e'
	}
	s := strconv.FormatFloat(v, format, -1, bits)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// MarshalJSON encodes the elements as nested lists. NaN and infinities, which JSON lacks,
// become strings.
func (a *Array) MarshalJSON() ([]byte, error) {
	if a.IsCSR() {
		a = a.dense()
	}
	return json.Marshal(a.nested(0, a.offset))
}

func (a *Array) nested(d, at int) any {
	if d < int(a.ndim) {
		list := make([]any, a.shape[d])
		for i := range list {
			list[i] = a.nested(d+1, at+i*a.strides[d])
		}
		return list
	}
	switch data := a.data.(type) {
	case []bool:
		return data[at]
	case []int64:
		return data[at]
	case []uint64:
		return data[at]
	case []string:
		return data[at]
	case []float32:
		if v := float64(data[at]); math.IsNaN(v) || math.IsInf(v, 0) {
			return floatText(v, 32)
		}
		return data[at]
	}
	v := elementAt(a, at)
	switch data := a.data.(type) {
	case []F16:
		v = data[at].decimal()
	case []BF16:
		v = data[at].decimal()
	}
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		return v
	}
	return a.element(at)
}

// Encode returns an array as text that [Decode] reads to the bit: the shape, and the elements in
// row-major order, "[2, 2] 1.0 0.5 nan -inf". Numbers that are not the usual NaN are written with
// their bits, "nan:7ff8000000000001". A sparse matrix has the word csr in front, and its pointers
// and columns behind the values, each after a semicolon.
func (a *Array) Encode() string {
	var b strings.Builder
	values, s := a, (*csr)(nil)
	if a.IsCSR() {
		s = a.data.(*csr)
		values = s.values
		b.WriteString("csr ")
	}
	b.WriteByte('[')
	for i, n := range a.Shape() {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(n))
	}
	b.WriteByte(']')
	for i := range values.Len() {
		b.WriteByte(' ')
		b.WriteString(values.encoded(i))
	}
	if s != nil {
		for _, list := range [][]int64{s.pointers, s.columns} {
			b.WriteByte(';')
			for _, n := range list {
				b.WriteString(" " + strconv.FormatInt(n, 10))
			}
		}
	}
	return b.String()
}

// encoded returns element i as text.
func (a *Array) encoded(i int) string {
	switch data := a.data.(type) {
	case []uint64:
		return strconv.FormatUint(data[a.place(i)], 10)
	case []F16:
		v := data[a.place(i)]
		return encodeFloat(v.decimal(), uint64(v), 0x7e00, 64)
	case []BF16:
		v := data[a.place(i)]
		return encodeFloat(v.decimal(), uint64(v), 0x7fc0, 64)
	case []float64:
		return encodeFloat(data[a.place(i)], math.Float64bits(data[a.place(i)]), math.Float64bits(math.NaN()), 64)
	case []float32:
		v := data[a.place(i)]
		return encodeFloat(float64(v), uint64(math.Float32bits(v)), uint64(math.Float32bits(float32(math.NaN()))), 32)
	}
	return strconv.FormatInt(a.Int(i), 10)
}

func encodeFloat(v float64, bits, nan uint64, size int) string {
	switch {
	case v == v:
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, size), "+"))
	case bits == nan:
		return "nan"
	}
	return "nan:" + strconv.FormatUint(bits, 16)
}

// Decode reads an array of a type as Encode writes it. It takes memory in proportion to the text.
func Decode(dtype DType, text string) (*Array, error) {
	text, sparse := strings.CutPrefix(text, "csr ")
	shape, text, err := decodeShape(text)
	if err != nil {
		return nil, err
	}
	if !sparse {
		return decodeElements(dtype, shape, text)
	}
	parts := strings.Split(text, ";")
	if len(parts) != 3 || len(shape) != 2 {
		return nil, fmt.Errorf("array: a sparse matrix has two dimensions, and values, pointers and columns: %.100q", text)
	}
	n := len(strings.Fields(parts[0]))
	values, err := decodeElements(dtype, []int{n}, parts[0])
	if err != nil {
		return nil, err
	}
	var lists [2][]int64
	for i, part := range parts[1:] {
		for _, f := range strings.Fields(part) {
			v, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("array: %w", err)
			}
			lists[i] = append(lists[i], v)
		}
	}
	return newCSR(shape[0], shape[1], values, lists[1], lists[0])
}

// decodeShape reads "[2, 3]" and returns what follows.
func decodeShape(text string) (shape []int, rest string, err error) {
	list, rest, ok := strings.Cut(strings.TrimPrefix(text, "["), "]")
	if !ok || !strings.HasPrefix(text, "[") {
		return nil, "", fmt.Errorf("array: %.100q does not begin with a shape such as [2, 3]", text)
	}
	if list == "" {
		return nil, rest, nil
	}
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 31)
		if err != nil || len(shape) == MaxDims {
			return nil, "", fmt.Errorf("array: [%.100s] is not a shape of at most %d dimensions", list, MaxDims)
		}
		shape = append(shape, int(n))
	}
	return shape, rest, nil
}

func decodeElements(dtype DType, shape []int, text string) (*Array, error) {
	words := strings.Fields(text)
	n := 1
	for _, d := range shape {
		// Divided and not multiplied: the product of the sizes in a text may overflow, or ask for any amount of
		// memory.
		if d > 0 && n > len(words)/d {
			return nil, fmt.Errorf("array: %d elements for the shape %v", len(words), shape)
		}
		n *= d
	}
	if n != len(words) {
		return nil, fmt.Errorf("array: %d elements for the shape %v", len(words), shape)
	}
	a := New(dtype, shape...)
	for i, w := range words {
		if err := a.decode(i, w); err != nil {
			return nil, fmt.Errorf("array: element %d: %w", i, err)
		}
	}
	return a, nil
}

// decode sets element i.
func (a *Array) decode(i int, text string) error {
	bits, isBits := strings.CutPrefix(text, "nan:")
	size := 8 * a.dtype.Size()
	if isBits && a.dtype.IsFloat() {
		u, err := strconv.ParseUint(bits, 16, size)
		switch data := a.data.(type) {
		case []float64:
			data[i] = math.Float64frombits(u)
		case []float32:
			data[i] = math.Float32frombits(uint32(u))
		case []F16:
			data[i] = F16(u)
		case []BF16:
			data[i] = BF16(u)
		}
		return err
	}
	if a.dtype.IsFloat() {
		if a.dtype.IsHalf() {
			size = 64
		}
		v, err := strconv.ParseFloat(text, size)
		// For floats and doubles ParseFloat reports this.
		if a.SetFloat(i, v); err == nil && a.dtype.IsHalf() && math.IsInf(a.Float(i), 0) && !math.IsInf(v, 0) {
			return fmt.Errorf("%s is larger than all numbers of type %v", text, a.dtype)
		}
		return err
	}
	if data, ok := a.data.([]uint64); ok {
		v, err := strconv.ParseUint(text, 10, 64)
		data[i] = v
		return err
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if a.SetInt(i, v); err == nil && a.Int(i) != v {
		return fmt.Errorf("%d is not a number of type %v", v, a.dtype)
	}
	return err
}
