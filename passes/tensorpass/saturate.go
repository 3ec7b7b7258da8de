package tensorpass

import (
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
)

// ClassFunctions returns the functions that rules see in saturation, where classes have no clients:
// what is used several times may be replaced, and the costs decide.
func (vocabulary) ClassFunctions() []pattern.Function { return classFunctions }

var classFunctions = []pattern.Function{
	pattern.NewGuardOfEach("once(x)", 1, "holds for any x", func(*variable) bool { return true }),
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
