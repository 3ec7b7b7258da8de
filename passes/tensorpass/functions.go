package tensorpass

import (
	"math"
	"slices"
	"sync"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// Functions returns the functions that rules of tensors can use.
func (vocabulary) Functions() []pattern.Function { return allFunctions() }

// allFunctions lists them once: every rule looks them up.
var allFunctions = sync.OnceValue(func() []pattern.Function {
	return slices.Concat(functions, arithmeticFunctions, elemwiseFunctions, reduceFunctions, gemvFunctions, erfFunctions, logarithmFunctions, softmaxFunctions, algebraFunctions)
})

var functions = []pattern.Function{
	about("float(x)", "the elements of x are floats", isFloat),
	about("integer(x)", "the elements of x are integers or bools", isInteger),
	about("unsigned(x)", "the elements of x are unsigned integers, which have no opposites", func(v *variable) bool { return dtypeOf(v).IsUnsigned() }),
	about("wide(x)", "the elements of x are no integers of fewer than 64 bits, which wrap around soon", isWide),
	about("scalar(x)", "all dimensions of x have size 1, as far as types tell", isScalar),
	known("number(x)", "all elements of x are known to be one number", func(float64) bool { return true }),
	known("nonzero(x)", "all elements of x are known to be one number other than 0, which is not NaN", func(x float64) bool { return x != 0 && x == x }),
	known("positive(x)", "all elements of x are known to be one number above 0", func(x float64) bool { return x > 0 }),
	known("negative(x)", "all elements of x are known to be one number below 0", func(x float64) bool { return x < 0 }),
	known("slope(x)", "all elements of x are known to be one number above 0, at most 1", func(x float64) bool { return x > 0 && x <= 1 }),
	known("finite(x)", "all elements of x are known to be one number, which is finite", func(x float64) bool { return x-x == 0 }),
	known("whole(x)", "all elements of x are known to be one integer other than 0",
		func(x float64) bool { return x != 0 && x == math.Trunc(x) && !math.IsInf(x, 0) }),
	pattern.NewGuardOfEach("nonnegative(x)", 0, "no element of x is negative, as far as the ops tell that compute it", tensor.Nonnegative),
	about("vector(x)", "x has one dimension", func(v *variable) bool { return typeOf(v).NDim() == 1 }),
	about("prepared(x)", "x is a constant matrix of float32s, perhaps transposed, which a product prepares once", func(v *variable) bool {
		a := tensor.FixedFactor(v)
		return a != nil && a.DType() == array.Float32 && a.NDim() == 2
	}),
	about("one_row(x)", "the first dimension of x has size 1", func(v *variable) bool { return typeOf(v).NDim() > 0 && typeOf(v).Dim(0) == 1 }),
	about("empty(x)", "a dimension of x has size 0", func(v *variable) bool { return slices.Contains(typeOf(v).Shape(), 0) }),
	value("(zeros x)", 0, "zeros of the type and shape of x", func(a pattern.Args) *variable {
		return refilled(full(dtypeOf(a.Vars[0]), 0), tensor.ShapesOf(a.Context.Graph()).Shape(a.Vars[0]))
	}),
	value("(item x)", 2, "the only element of x, which scalar(x) holds for", func(a pattern.Args) *variable { return scalarOf(a.Vars[0]) }),
	about("once(x)", "x has a single use", usedOnce),
	pattern.NewGuard("exact(x)", 1, "x is a float or has the element type of the result: -(-2⁶³), which wraps around, is another number as a float",
		func(a pattern.Args) bool {
			return !slices.ContainsFunc(a.Vars, func(v *variable) bool { return isInteger(v) && dtypeOf(v) != dtypeOf(a.Root.Out()) })
		}),
	pattern.NewGuard("spans(c, x)", 1, "the floats of c reach as far as the integers of x", func(a pattern.Args) bool {
		return dtypeOf(a.Vars[0]) != array.Float16 || dtypeOf(a.Vars[1]).Size() == 1
	}),
	pattern.NewGuardOfPairs("same_dtype(x, y)", 1, "x and y have the same type of elements", func(x, y *variable) bool { return dtypeOf(x) == dtypeOf(y) }),
	pattern.NewGuardOfPairs("same_type(x, y)", 1, "x and y have the same type", func(x, y *variable) bool { return x.Type() == y.Type() }),
	pattern.NewGuard("at_least(x, y)", 3, "no element of x is less than that of y where both are numbers, as far as the ops tell that compute them", func(a pattern.Args) bool {
		return tensor.Dominates(a.Vars[0], a.Vars[1])
	}),
	pattern.NewGuard("descending(c, d)", 0, "c and d are known to be numbers, and c is not below d", func(a pattern.Args) bool {
		c, ok := uniform(a.Vars[0])
		d, too := uniform(a.Vars[1])
		return ok && too && c >= d
	}),
	pattern.NewGuardOfPairs("same_number(x, y)", 0, "all elements of x and of y are known to be one number", func(x, y *variable) bool {
		k, ok := uniform(x)
		return ok && is(y, k)
	}),
	pattern.NewGuard("fits(x)", 1, "x has the type of what is replaced, as far as types tell",
		func(a pattern.Args) bool { return a.Root.Out().Type().Accepts(a.Vars[0].Type()) }),
	pattern.NewGuard("sized(x, n)", 0, "the sizes of x, where they are not 1, are known to be the last of n", func(a pattern.Args) bool {
		return a.Context != nil && hasSizes(tensor.ShapesOf(a.Context.Graph()), a.Vars[0], a.Vars[1:])
	}),
	about("matrix(x)", "x has two dimensions", func(v *variable) bool { return typeOf(v).NDim() == 2 }),
	value("(least n m)", 1, "the smaller one of two sizes", func(a pattern.Args) *variable { return tensor.Map(array.Minimum, a.Vars...) }),
	about("square(x)", "x is a matrix with as many rows as columns, as far as types tell", func(v *variable) bool {
		return typeOf(v).NDim() == 2 && typeOf(v).Dim(0) == typeOf(v).Dim(1) && typeOf(v).Dim(0) != tensor.Unknown
	}),
	about("flat(s)", "the shape s has one size, which is -1", func(s *variable) bool {
		sizes, ok := tensor.ElementsOf(s)
		return ok && len(sizes) == 1 && is(sizes[0], -1)
	}),
	about("pads(x)", "x is a DimShuffle that only adds dimensions in front", func(v *variable) bool { return stripPadding(v) != v }),
	about("ordered(x)", "x is a DimShuffle that keeps the order of dimensions", func(v *variable) bool {
		_, op, _ := owner[tensor.DimShuffleOp](v)
		return slices.IsSorted(slices.DeleteFunc(op.NewOrder(), func(d int) bool { return d == array.NewAxis }))
	}),
	pattern.NewGuard("distinct(x, i)", 2, "the integer tensors i, indexes of x, are known to point to different places",
		func(a pattern.Args) bool { return tensor.DistinctIndexes(a.Vars[0], a.Vars[1:]) }),
}

// about returns a guard that looks at each of its arguments and at what computes it.
func about(usage, doc string, holds func(*variable) bool) pattern.Function {
	return pattern.NewGuardOfEach(usage, 2, doc, holds)
}

// known is about for known numbers.
func known(usage, doc string, holds func(float64) bool) pattern.Function {
	return about(usage, doc, func(v *variable) bool {
		x, ok := uniform(v)
		return ok && holds(x)
	})
}

// value returns a function that makes a variable, from one that panics where that can't be.
func value(usage string, depth int, doc string, build func(pattern.Args) *variable) pattern.Function {
	return pattern.NewBuilder(usage, depth, doc, func(a pattern.Args) (*variable, error) {
		return tensor.Try(func() *variable { return build(a) })
	})
}

// A limits holds the arguments above which the logarithm or the inverse of erfc comes from the
// asymptotic series, by element type. They are Theano's: from there on erfc is subnormal.
type limits map[array.DType]float64

var (
	logLimits  = limits{array.Float32: 10.0541949, array.Float64: 26.641747557}
	gradLimits = limits{array.Float32: 9.3, array.Float64: 26.641747557}
)

// erfFunctions are what the rules of the error function ask.
var erfFunctions = []pattern.Function{
	logLimits.guard("log_tail(x)", "x is a float, and no switch tells whether it is above (log_limit x)"),
	logLimits.value("(log_limit x)", "the number from which on erfc(x) is subnormal"),
	gradLimits.guard("grad_tail(x)", "x is a float, and no switch tells whether it is above (grad_limit x)"),
	gradLimits.value("(grad_limit x)", "the number from which on 1/erfc(x) is infinite, or nearly so"),
	value("(erfc_series x)", 1, "1 - 1/(2x²) + 3/(4x⁴) - 15/(8x⁶) + 105/(16x⁸)", func(a pattern.Args) *variable { return erfcSeries(a.Vars[0]) }),
}

// value returns the function that makes the limit for the element type of x.
func (l limits) value(usage, doc string) pattern.Function {
	return value(usage, 1, doc, func(a pattern.Args) *variable { return number(l[dtypeOf(a.Vars[0])], a.Vars[0]) })
}

// guard returns the guard that holds if there is a limit for the element type of x, and no switch at it
// yet.
func (l limits) guard(usage, doc string) pattern.Function {
	return pattern.NewGuard(usage, 2, doc, func(a pattern.Args) bool {
		limit, ok := l[dtypeOf(a.Vars[0])]
		return ok && !guarded(a.Root.Out(), a.Vars[0], limit)
	})
}

// erfcSeries returns 1 - 1/(2x²) + 3/(4x⁴) - 15/(8x⁶) + 105/(16x⁸). For large x, erfc(x) is
// exp(-x²)/(x·sqrt(π)) times that (Abramowitz and Stegun, 7.1.23).
func erfcSeries(x *variable) *variable {
	t := tensor.Map(array.Inv, tensor.Sqr(x))
	s := number(105.0/16, x)
	for _, k := range []float64{-15.0 / 8, 3.0 / 4, -1.0 / 2, 1} {
		s = tensor.Add(number(k, x), tensor.Mul(t, s))
	}
	return s
}

// guarded reports whether a switch guards v where x is above the limit. Between the two there may be permutations
// of dimensions that local_dimshuffle_lift is moving through the switch.
func guarded(v, x *variable, limit float64) bool {
	limit, _ = uniform(number(limit, x)) // rounded to float32 if x is
	x = unshuffled(x)
	todo := []*variable{v}
	for len(todo) > 0 {
		v, todo = todo[len(todo)-1], todo[:len(todo)-1]
		for _, client := range v.Clients() {
			if client.Apply == nil {
				continue
			}
			if _, ok := client.Apply.Op().(tensor.DimShuffleOp); ok {
				todo = append(todo, client.Apply.Out())
				continue
			}
			if op, _ := elemOf(client.Apply); op == array.Switch && client.Index == 1 {
				lt := elem(unshuffled(client.Apply.Inputs()[0]), array.Lt)
				if lt != nil && unshuffled(lt.Inputs()[0]) == x && is(lt.Inputs()[1], limit) {
					return true
				}
			}
		}
	}
	return false
}

// unshuffled looks through permutations of dimensions.
func unshuffled(v *variable) *variable {
	for {
		a, _, ok := owner[tensor.DimShuffleOp](v)
		if !ok {
			return v
		}
		v = a.Inputs()[0]
	}
}
