package tensorpass

import (
	"math"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
)

// ClassFunctions returns the functions that rules see in saturation, where classes have no clients:
// what is used several times may be replaced, and the costs decide.
func (vocabulary) ClassFunctions() []pattern.Function { return classFunctions }

var classFunctions = []pattern.Function{
	pattern.NewGuardOfEach("once(x)", 1, "holds for any x", func(*variable) bool { return true }),
	pattern.NewGuard("nonnegative(x)", 0, "no element of x is negative, as far as anything tells that it is equal to", func(a pattern.Args) bool {
		for i, v := range a.Vars {
			if least, _ := boundsAt(a, i); !(least >= 0) && !tensor.Nonnegative(v) {
				return false
			}
		}
		return true
	}),
	pattern.NewGuard("at_least(x, y)", 0, "no element of x is less than that of y where both are numbers, as far as anything tells that they are equal to", func(a pattern.Args) bool {
		least, _ := boundsAt(a, 0)
		_, most := boundsAt(a, 1)
		return least >= most || tensor.Dominates(a.Vars[0], a.Vars[1])
	}),
}

func boundsAt(a pattern.Args, i int) (least, most float64) {
	if a.Bounds == nil {
		return math.Inf(-1), math.Inf(1)
	}
	return a.Bounds(i)
}

// Bounds returns what is known of the elements of a variable, see [tensor.Bounds].
func (vocabulary) Bounds(v *variable, of func(*variable) (least, most float64)) (least, most float64) {
	if _, ok := v.Type().(tensor.Type); !ok {
		return math.Inf(-1), math.Inf(1)
	}
	return tensor.Bounds(v, of)
}

// Cost returns what saturation thinks that an apply costs, see [tensor.Cost].
func (vocabulary) Cost(a *apply) float64 { return tensor.Cost(a) }

// FusedCost returns what it costs if it is fused with another one where it can be, see
// [tensor.FusedCost].
func (vocabulary) FusedCost(a *apply) float64 { return tensor.FusedCost(a) }

// Rank prefers variables whose sign is known.
func (vocabulary) Rank(v *variable) int {
	if _, ok := v.Type().(tensor.Type); ok && tensor.Nonnegative(v) {
		return 1
	}
	return 0
}
