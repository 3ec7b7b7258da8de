package tensorpass

import (
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

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
