package model

import (
	"fmt"
	"math"
	"reflect"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tensor/array"
)

// makers make arrays of the memory of slices, by the types of these.
var makers = map[reflect.Type]func(data any, shape []int) *array.Array{
	reflect.TypeFor[[]bool](): arrayOf[bool], reflect.TypeFor[[]float32](): arrayOf[float32], reflect.TypeFor[[]float64](): arrayOf[float64],
	reflect.TypeFor[[]int8](): arrayOf[int8], reflect.TypeFor[[]int16](): arrayOf[int16], reflect.TypeFor[[]int32](): arrayOf[int32],
	reflect.TypeFor[[]int64](): arrayOf[int64], reflect.TypeFor[[]uint8](): arrayOf[uint8], reflect.TypeFor[[]uint16](): arrayOf[uint16],
	reflect.TypeFor[[]uint32](): arrayOf[uint32], reflect.TypeFor[[]uint64](): arrayOf[uint64],
	reflect.TypeFor[[]array.F16](): arrayOf[array.F16], reflect.TypeFor[[]array.BF16](): arrayOf[array.BF16],
	reflect.TypeFor[[]string](): func(data any, shape []int) *array.Array { return array.OfStrings(data.([]string), shape...) },
	reflect.TypeFor[[]int](): func(data any, shape []int) *array.Array {
		return array.Of(lists.Map(data.([]int), func(n int) int64 { return int64(n) }), shape...)
	},
}

func arrayOf[T array.Element](data any, shape []int) *array.Array {
	return array.Of(data.([]T), shape...)
}

// array returns a value of Go as an array, or says why it is none.
func (v *Value) array(x any) (a *array.Array, why string) {
	var flat reflect.Value
	shaped, ok := x.(Shaped)
	if ok {
		flat = reflect.ValueOf(shaped.data)
	} else if flat, shaped.shape, why = flatten(reflect.ValueOf(x)); why != "" {
		return nil, why
	}
	if !flat.IsValid() {
		return nil, "it is nothing"
	}
	maker := makers[flat.Type()]
	if maker == nil {
		return nil, fmt.Sprintf("%v is no type of elements of tensors", flat.Type().Elem())
	}
	shape := shaped.shape
	if !ok && len(shape) <= 1 && v.Dims != nil && len(shape) != len(v.Dims) {
		if shape = v.shapeFor(flat.Len()); shape == nil {
			return nil, fmt.Sprintf("%d elements can't have this shape; give them one by Tensor", flat.Len())
		}
	}
	n := 1
	for _, size := range shape {
		// An overflow could end at the right number of elements.
		if size < 0 || size > 0 && n > math.MaxInt/size {
			return nil, fmt.Sprintf("%v is no shape", shape)
		}
		n *= size
	}
	if n != flat.Len() || len(shape) > array.MaxDims {
		return nil, fmt.Sprintf("%d elements for the shape %v", flat.Len(), shape)
	}
	return maker(flat.Interface(), shape), ""
}

// shapeFor returns the sizes of a value of n elements, nil if what is declared does not say.
func (v *Value) shapeFor(n int) []int {
	shape, open, rest := make([]int, len(v.Dims)), -1, n
	for k, d := range v.Dims {
		shape[k] = d.Size
		switch {
		case d.Size < 0 && open >= 0:
			return nil
		case d.Size < 0:
			open = k
		case d.Size == 0 || rest%d.Size != 0:
			return nil
		default:
			rest /= d.Size
		}
	}
	if open >= 0 {
		shape[open], rest = rest, 1
	}
	if rest != 1 {
		return nil
	}
	return shape
}

// flatten returns the elements of nested slices or arrays as one slice, with their sizes. One slice is not copied.
func flatten(v reflect.Value) (flat reflect.Value, shape []int, why string) {
	if !v.IsValid() {
		return v, nil, "it is nothing"
	}
	nested := func(t reflect.Type) bool { return t.Kind() == reflect.Slice || t.Kind() == reflect.Array }
	rows, t := []reflect.Value{v}, v.Type()
	if !nested(t) {
		flat = reflect.MakeSlice(reflect.SliceOf(t), 1, 1)
		flat.Index(0).Set(v)
		return flat, nil, ""
	}
	for ; ; t = t.Elem() {
		size := 0
		if len(rows) > 0 {
			size = rows[0].Len()
		}
		// A whole dimension is looked at before the next, so the first row that differs is named by its
		// dimension.
		for i, row := range rows {
			if row.Len() != size {
				return v, nil, fmt.Sprintf("row %d of dimension %d has %d elements, and row 0 has %d", i, len(shape), row.Len(), size)
			}
		}
		if shape = append(shape, size); !nested(t.Elem()) {
			break
		}
		var next []reflect.Value
		for _, row := range rows {
			for i := range size {
				next = append(next, row.Index(i))
			}
		}
		rows = next
	}
	// An array of Go is copied like the rest, because its elements have no address in an interface.
	if v.Kind() == reflect.Slice && len(shape) == 1 {
		return v, shape, ""
	}
	size := shape[len(shape)-1]
	flat = reflect.MakeSlice(reflect.SliceOf(t.Elem()), len(rows)*size, len(rows)*size)
	for i, row := range rows {
		reflect.Copy(flat.Slice(i*size, (i+1)*size), row)
	}
	return flat, shape, ""
}
