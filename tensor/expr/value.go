package expr

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A value is the meaning of a part of an expression.
type value struct {
	kind    valueKind
	v       *fgraph.Variable // kindTensor; the computation of a kindNumber that was computed from others
	num     number           // kindNumber
	list    []value          // kindList
	tuple   bool             // kindList: in round brackets
	several bool             // kindList: the results of a function that returns several
	part    *tensor.Part     // kindTensor: what an index selected, which set_subtensor changes
	ix      sliceValue       // kindSlice
	text    string           // kindName: an element type or a string
}

type valueKind uint8

const (
	kindTensor valueKind = iota
	kindNumber           // has no type yet
	kindList
	kindSlice
	kindNone
	kindEllipsis
	kindName
)

type sliceValue struct{ start, stop, step *value }

func tensorValue(v *fgraph.Variable) value { return value{v: v} }

// results returns the value of a function that returns several tensors.
func results(list []*fgraph.Variable) value {
	x := value{kind: kindList, several: true, list: make([]value, len(list))}
	for i, v := range list {
		x.list[i] = tensorValue(v)
	}
	return x
}

// tensor returns the value as a variable. A number has the type that it is written as.
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
			return tensor.Constant(a)
		}
		return tensor.Stack(0, tensors(what, x.list)...)
	}
	fail(what, "a number or a tensor is expected")
	return nil
}

// constant returns nested lists of numbers as an array; nil if they hold anything else.
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
		if len(shape) > array.MaxDims {
			fail(what, "more than %d dimensions", array.MaxDims)
		}
		level = next
	}
	dtype := array.Bool
	for _, v := range level {
		// A number that was computed from others has applies in the graph, which a constant would drop.
		if v.kind != kindNumber || v.v != nil {
			return nil
		}
		dtype = max(dtype, v.num.dtype)
	}
	// NumPy has floats for an empty list, and where neither int64 nor uint64 holds all of the numbers.
	if len(level) == 0 || dtype == array.Uint64 && slices.ContainsFunc(level, func(v value) bool { return v.num.f < 0 }) {
		dtype = array.Float64
	}
	a := array.New(dtype, shape...)
	for i, v := range level {
		if dtype.IsInteger() {
			a.SetInt(i, v.num.i)
			continue
		}
		a.SetFloat(i, v.num.f)
	}
	return a
}

// tensors returns values as variables. Numbers take the type of the tensors beside them.
func tensors(what string, list []value) []*fgraph.Variable {
	out := make([]*fgraph.Variable, len(list))
	dtype, any := array.Bool, false
	for i, x := range list {
		if x.kind != kindNumber {
			out[i] = x.tensor(what)
			if d := tensor.TypeOf(out[i]).DType(); any {
				dtype = array.Upcast(dtype, d)
			} else {
				dtype, any = d, true
			}
		}
	}
	// Numbers come second, since their type depends on all of the tensors.
	for i, x := range list {
		if x.kind == kindNumber {
			d := x.num.dtype
			if any {
				d = x.num.fit(dtype)
			}
			// Among tensors it is a constant of their type, and alone what it was computed by.
			if out[i] = x.num.in(d); !any && x.v != nil {
				out[i] = x.v
			}
		}
	}
	return out
}

// integer returns the value of an integer that is written as a number.
func (x value) integer(what string) int {
	if x.kind != kindNumber || x.num.dtype != array.Int64 || x.num.i > 1<<40 || x.num.i < -1<<40 {
		fail(what, "an integer is expected")
	}
	return int(x.num.i)
}

// integers returns the elements of a list of integers or of a single one; nil for None.
func (x value) integers(what string) []int {
	switch x.kind {
	case kindNone:
		return nil
	case kindList:
		return lists.Map(x.list, func(v value) int { return v.integer(what) })
	}
	return []int{x.integer(what)}
}

// dtype returns the element type that the value names.
func (x value) dtype(what string) array.DType {
	if x.kind == kindName {
		if d, ok := array.ParseDType(x.text); ok {
			return d
		}
	}
	names := lists.Map(array.DTypes(), array.DType.String)
	fail(what, "the name of a type such as float32 is expected; there are %s%s", strings.Join(names, ", "), spell.Hint(x.text, names))
	return 0
}

// sizes returns values as sizes. A single list means its elements, and so does a single vector
// of known length.
func sizes(what string, list []value) []*fgraph.Variable {
	if len(list) == 1 && list[0].kind == kindList {
		list = list[0].list
	}
	if len(list) == 1 && list[0].kind == kindTensor && tensor.TypeOf(list[0].v).NDim() == 1 {
		v := list[0].v
		if elements, ok := tensor.ElementsOf(v); ok {
			return elements
		}
		n := tensor.TypeOf(v).Dim(0)
		if n == tensor.Unknown || n > array.MaxDims {
			fail(what, "a vector of sizes of unknown length")
		}
		dims := make([]*fgraph.Variable, n)
		for i := range dims {
			dims[i] = tensor.Subtensor(v, tensor.At(tensor.Int(i)))
		}
		return dims
	}
	return lists.Map(list, func(x value) *fgraph.Variable { return x.size(what) })
}

// size returns the value as a size or an index. A number that was computed from others, such as
// 2**10, is a constant.
func (x value) size(what string) *fgraph.Variable {
	if x.kind == kindNumber && x.num.dtype == array.Int64 {
		return tensor.Int(int(x.num.i))
	}
	return tensor.AsSize(what, x.tensor(what))
}
