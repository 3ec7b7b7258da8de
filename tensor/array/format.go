package array

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

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
