package expr_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/tensor/array"
)

// parseArray reads for example "float64[2, 1] 0.5 -1".
func parseArray(t *testing.T, text string) *array.Array {
	t.Helper()
	typ, elements, ok := strings.Cut(text, "]")
	name, sizes, ok2 := strings.Cut(typ, "[")
	dtype, ok3 := array.ParseDType(name)
	if !ok || !ok2 || !ok3 {
		t.Fatalf("%q is no array", text)
	}
	var shape []int
	for _, n := range strings.Fields(strings.ReplaceAll(sizes, ",", " ")) {
		k, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		shape = append(shape, k)
	}
	a := array.New(dtype, shape...)
	fields := strings.Fields(elements)
	if len(fields) != a.Len() {
		t.Fatalf("%q has %d elements", text, len(fields))
	}
	for k, f := range fields {
		if err := setElement(a, k, f); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// setElement sets an element to a number, True or False.
func setElement(a *array.Array, k int, text string) error {
	var v float64
	var err error
	switch {
	case a.DType() == array.Int64:
		array.Slice[int64](a)[k], err = strconv.ParseInt(text, 10, 64)
		return err
	case text == "True":
		v = 1
	case text != "False":
		v, err = strconv.ParseFloat(text, 64)
	}
	a.SetFloat(k, v)
	return err
}

// differs says how an array differs from what is wanted, if it does by more than rounding: a part of
// the value, which counts as at least least. Of float32s the part is 1e-6.
func differs(got, want *array.Array, part, least float64) string {
	if got.DType() != want.DType() || !array.SameShape(got, want) {
		return fmt.Sprintf("%v%v, want %v%v", got.DType(), got, want.DType(), want)
	}
	if want.DType() == array.Float32 {
		part, least = 1e-6, 100*least
	}
	for k := range want.Len() {
		x, y := got.Float(k), want.Float(k)
		if want.DType() == array.Int64 && got.Int(k) != want.Int(k) || x != y && !(x != x && y != y) && !(math.Abs(x-y) <= part*max(math.Abs(y), least)) {
			return fmt.Sprintf("element %d is %v, want %v", k, x, y)
		}
	}
	return ""
}
