package tensorpass

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// Functions returns the functions that rules of tensors can use.
func (vocabulary) Functions() []pattern.Function { return allFunctions() }

// allFunctions lists them once: every rule looks them up.
var allFunctions = sync.OnceValue(func() []pattern.Function {
	return slices.Concat(functions, arithmeticFunctions, elemwiseFunctions, reduceFunctions, gemvFunctions, erfFunctions, logarithmFunctions, softmaxFunctions)
})

var functions = []pattern.Function{
	about("float(x)", "the elements of x are floats", isFloat),
	about("integer(x)", "the elements of x are integers or bools", isInteger),
	about("scalar(x)", "all dimensions of x have size 1, as far as types tell", isScalar),
	known("number(x)", "all elements of x are known to be one number", func(float64) bool { return true }),
	known("nonzero(x)", "all elements of x are known to be one number other than 0, which is not NaN", func(x float64) bool { return x != 0 && x == x }),
	known("positive(x)", "all elements of x are known to be one number above 0", func(x float64) bool { return x > 0 }),
	known("negative(x)", "all elements of x are known to be one number below 0", func(x float64) bool { return x < 0 }),
	known("finite(x)", "all elements of x are known to be one number, which is finite", func(x float64) bool { return x-x == 0 }),
	known("whole(x)", "all elements of x are known to be one integer other than 0",
		func(x float64) bool { return x != 0 && x == math.Trunc(x) && !math.IsInf(x, 0) }),
	{Name: "nonnegative", Usage: "nonnegative(x)", Doc: "no element of x is negative, as far as the ops tell that compute it",
		Holds: func(a pattern.Args) bool {
			return !slices.ContainsFunc(a.Vars, func(v *variable) bool { return !isNonnegative(v) })
		}},
	about("vector(x)", "x has one dimension", func(v *variable) bool { return typeOf(v).NDim() == 1 }),
	about("one_row(x)", "the first dimension of x has size 1", func(v *variable) bool { return typeOf(v).NDim() > 0 && typeOf(v).Dim(0) == 1 }),
	about("empty(x)", "a dimension of x has size 0", func(v *variable) bool { return slices.Contains(typeOf(v).Shape(), 0) }),
	{Name: "zeros", Usage: "(zeros x)", Doc: "zeros of the type and shape of x",
		Build: func(a pattern.Args) (*variable, error) {
			return refilled(full(dtypeOf(a.Vars[0]), 0), tensor.ShapesOf(a.Context.Graph()).Shape(a.Vars[0])), nil
		}},
	{Name: "item", Usage: "(item x)", Depth: 2, Doc: "the only element of x, which scalar(x) holds for",
		Build: func(a pattern.Args) (*variable, error) { return scalarOf(a.Vars[0]), nil }},
	about("once(x)", "x has a single use", usedOnce),
	{Name: "exact", Usage: "exact(x)", Depth: 1,
		Doc: "x is a float or the result an integer: an integer that wraps around is not converted to a float",
		Holds: func(a pattern.Args) bool {
			return !slices.ContainsFunc(a.Vars, func(v *variable) bool { return !exactIn(a.Root.Out(), v) })
		}},
	alike("same_dtype(x, y)", 1, "x and y have the same type of elements", func(x, y *variable) bool { return dtypeOf(x) == dtypeOf(y) }),
	alike("same_type(x, y)", 1, "x and y have the same type", func(x, y *variable) bool { return x.Type() == y.Type() }),
	alike("same_number(x, y)", 0, "all elements of x and of y are known to be one number", func(x, y *variable) bool {
		k, ok := uniform(x)
		return ok && is(y, k)
	}),
	{Name: "fits", Usage: "fits(x)", Depth: 1, Doc: "x has the type of what is replaced, as far as types tell",
		Holds: func(a pattern.Args) bool { return a.Root.Out().Type().Accepts(a.Vars[0].Type()) }},
	{Name: "sized", Usage: "sized(x, n)", Doc: "the sizes of x, where they are not 1, are known to be the last of n",
		Holds: func(a pattern.Args) bool {
			return a.Context != nil && hasSizes(tensor.ShapesOf(a.Context.Graph()), a.Vars[0], a.Vars[1:])
		}},
	about("matrix(x)", "x has two dimensions", func(v *variable) bool { return typeOf(v).NDim() == 2 }),
	about("flat(s)", "the shape s has one size, which is -1", func(s *variable) bool {
		sizes, ok := tensor.ElementsOf(s)
		return ok && len(sizes) == 1 && is(sizes[0], -1)
	}),
	about("pads(x)", "x is a DimShuffle that only adds dimensions in front", func(v *variable) bool { return stripPadding(v) != v }),
	about("ordered(x)", "x is a DimShuffle that keeps the order of dimensions", func(v *variable) bool {
		_, op, _ := owner[tensor.DimShuffleOp](v)
		return slices.IsSorted(slices.DeleteFunc(op.NewOrder(), func(d int) bool { return d == array.NewAxis }))
	}),
	{Name: "distinct", Usage: "distinct(x, i)", Depth: 2, Doc: "the integer tensors i, indexes of x, are known to point to different places",
		Holds: func(a pattern.Args) bool { return distinct(a.Vars[0], a.Vars[1:]) }},
}

// about returns a guard that asks the same of all its arguments, which it looks at and no further.
func about(usage, doc string, holds func(*variable) bool) pattern.Function {
	name, _, _ := strings.Cut(usage, "(")
	return pattern.Function{Name: name, Usage: usage, Doc: doc, Depth: 2, Holds: func(a pattern.Args) bool {
		return !slices.ContainsFunc(a.Vars, func(v *variable) bool { return !holds(v) })
	}}
}

// known is about for known numbers.
func known(usage, doc string, holds func(float64) bool) pattern.Function {
	return about(usage, doc, func(v *variable) bool {
		x, ok := uniform(v)
		return ok && holds(x)
	})
}

// alike returns a guard that compares all its arguments with the first one.
func alike(usage string, depth int, doc string, holds func(x, y *variable) bool) pattern.Function {
	f := about(usage, doc, nil)
	f.Depth, f.Holds = depth, func(a pattern.Args) bool {
		return !slices.ContainsFunc(a.Vars[1:], func(v *variable) bool { return !holds(a.Vars[0], v) })
	}
	return f
}
