package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor/array"
)

// algebraFunctions are what the rules of saturation ask.
var algebraFunctions = []pattern.Function{
	pattern.NewGuard("as_wide(p, x)", 1, "p is no float, or what is computed of x alone has its element type", func(a pattern.Args) bool {
		t := dtypeOf(a.Vars[1])
		for _, v := range a.Vars[2:] {
			t = array.Upcast(t, dtypeOf(v))
		}
		return !isFloat(a.Vars[0]) || t == dtypeOf(a.Vars[0])
	}),
	pattern.NewGuard("opposites(a, b)", 1, "all elements of a and of b are known to be one finite number and its opposite, which is not 0", func(a pattern.Args) bool {
		x, ok := uniform(a.Vars[0])
		y, known := uniform(a.Vars[1])
		return ok && known && x == -y && x != 0 && x-x == 0
	}),
	pattern.NewGuard("fewer(p, x)", 1, "all x have size 1 in a dimension in which p has another size, as far as types tell", func(a pattern.Args) bool {
		for d, n := range typeOf(a.Vars[0]).Shape() {
			if n != 1 && !slices.ContainsFunc(a.Vars[1:], func(v *variable) bool { return typeOf(v).Dim(d) != 1 }) {
				return true
			}
		}
		return false
	}),
}
