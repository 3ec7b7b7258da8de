package tensor

import (
	"math"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// A value is what a part of an expression text stands for.
type value struct {
	kind  valueKind
	v     *fgraph.Variable // kindTensor; of a kindNumber that was computed from others the computation
	num   number           // kindNumber
	list  []value          // kindList
	tuple bool             // kindList: in round brackets
	ix    sliceValue       // kindSlice
	text  string           // kindName: of a type or a string
}

type valueKind uint8

const (
	kindTensor valueKind = iota
	kindNumber           // written as a number, and thus of no type yet
	kindList
	kindSlice
	kindNone
	kindEllipsis
	kindName
)

type sliceValue struct{ start, stop, step *value }

// A number takes the type of what it is combined with.
type number struct {
	dtype DType // Bool, Int64 or Float64: what it was written as
	i     int64
	f     float64
}

func intNumber(i int64) number { return number{Int64, i, float64(i)} }

func parseNumber(text string) (number, bool) {
	text = strings.ReplaceAll(text, "_", "")
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return intNumber(i), true
	}
	if text == "9223372036854775808" { // see negated
		return number{Float64, math.MinInt64, 1 << 63}, true
	}
	f, err := strconv.ParseFloat(text, 64)
	return number{Float64, 0, f}, err == nil || math.IsInf(f, 0)
}

// in returns the number as a constant of a type that holds it.
func (n number) in(d DType) *fgraph.Variable {
	switch {
	case d == Int64:
		return Constant(array.Scalar(n.i))
	case d == Bool:
		return Constant(array.Scalar(n.f != 0))
	}
	return Constant(array.Full(d, n.f))
}

// fit returns the type in which the number is combined with others of type d.
func (n number) fit(d DType) DType {
	switch {
	case n.dtype == Float64:
		return d.Float()
	case n.dtype == Int64:
		return max(d, Int64)
	}
	return d
}

func tensorValue(v *fgraph.Variable) value { return value{v: v} }

// tensor returns the value as a variable. Numbers are what they are written as.
func (x value) tensor(what string) *fgraph.Variable {
	switch x.kind {
	case kindTensor:
		return x.v
	case kindNumber:
		if x.v != nil {
			return x.v
		}
		return x.num.in(x.num.dtype)
	case kindList:
		if a := x.constant(what); a != nil {
			return Constant(a)
		}
		return Stack(tensors(what, x.list)...)
	}
	fail(what, "a number or a tensor is expected")
	return nil
}

// constant returns a list of numbers, or of lists of numbers and so on, as an array; nil if there is something else in it.
func (x value) constant(what string) *array.Array {
	shape, level := []int{}, []value{x}
	for len(level) > 0 && level[0].kind == kindList {
		n := len(level[0].list)
		shape = append(shape, n)
		var next []value
		for _, v := range level {
			if v.kind != kindList || len(v.list) != n {
				return nil
			}
			next = append(next, v.list...)
		}
		if len(shape) > MaxDims {
			fail(what, "more than %d dimensions", MaxDims)
		}
		level = next
	}
	dtype := Bool
	for _, v := range level {
		if v.kind != kindNumber || v.v != nil {
			return nil
		}
		dtype = max(dtype, v.num.dtype)
	}
	if len(level) == 0 {
		dtype = Float64
	}
	a := array.New(dtype, shape...)
	for i, v := range level {
		if dtype == Int64 {
			array.Slice[int64](a)[i] = v.num.i
			continue
		}
		a.SetFloat(i, v.num.f)
	}
	return a
}

// tensors returns values as variables. Numbers take the type of the tensors among them.
func tensors(what string, list []value) []*fgraph.Variable {
	out := make([]*fgraph.Variable, len(list))
	dtype, any := Bool, false
	for i, x := range list {
		if x.kind != kindNumber {
			out[i] = x.tensor(what)
			if d := TypeOf(out[i]).DType(); any {
				dtype = array.Upcast(dtype, d)
			} else {
				dtype, any = d, true
			}
		}
	}
	for i, x := range list {
		if x.kind == kindNumber {
			d := x.num.dtype
			if any {
				d = x.num.fit(dtype)
			}
			if out[i] = x.num.in(d); !any && x.v != nil {
				out[i] = x.v
			}
		}
	}
	return out
}

// integer returns a value that has to be an integer written as a number.
func (x value) integer(what string) int {
	if x.kind != kindNumber || x.num.dtype != Int64 || x.num.i > 1<<40 || x.num.i < -1<<40 {
		fail(what, "an integer is expected")
	}
	return int(x.num.i)
}

// integers returns one integer, a list of them, or nil for None.
func (x value) integers(what string) []int {
	switch x.kind {
	case kindNone:
		return nil
	case kindList:
		list := make([]int, len(x.list))
		for i, v := range x.list {
			list[i] = v.integer(what)
		}
		return list
	}
	return []int{x.integer(what)}
}

// dtype returns the type of elements that a value names.
func (x value) dtype(what string) DType {
	if x.kind == kindName {
		if d, ok := array.ParseDType(x.text); ok {
			return d
		}
	}
	fail(what, "the name of a type such as float32 is expected; there are bool, int64, float32 and float64")
	return 0
}

// sizes returns values as sizes; one list of them stands for its elements, and so does a vector whose elements can be seen.
func sizes(what string, list []value) []*fgraph.Variable {
	if len(list) == 1 && list[0].kind == kindList {
		list = list[0].list
	}
	if len(list) == 1 && list[0].kind == kindTensor && TypeOf(list[0].v).NDim() == 1 {
		v := list[0].v
		if elements, ok := ElementsOf(v); ok {
			return elements
		}
		n := TypeOf(v).Dim(0)
		if n == Unknown || n > MaxDims {
			fail(what, "a vector of sizes of unknown length")
		}
		dims := make([]*fgraph.Variable, n)
		for i := range dims {
			dims[i] = Subtensor(v, At(Int(i)))
		}
		return dims
	}
	dims := make([]*fgraph.Variable, len(list))
	for i, x := range list {
		dims[i] = asSize(what, x.tensor(what))
	}
	return dims
}
