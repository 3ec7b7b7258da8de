package array

import (
	"fmt"
	"math"
	"slices"
	"strconv"
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
