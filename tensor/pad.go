package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Margin is how much is added to a dimension on both sides: integer scalars.
type Margin struct{ Before, After *fgraph.Variable }

// The modes of margins are those of NumPy that copy elements.
const (
	padEdge      = "edge"      // a a|a b c|c c
	padReflect   = "reflect"   // c b|a b c|b a
	padSymmetric = "symmetric" // b a|a b c|c b
	padWrap      = "wrap"      // b c|a b c|a b
)

// width returns a margin of x, and reports whether it adds anything.
func (m Margin) width() (before, after *fgraph.Variable, some bool) {
	before, after = natural("pad", AsSize("pad", m.Before)), natural("pad", AsSize("pad", m.After))
	b, ok := constantInt(before)
	a, ok2 := constantInt(after)
	return before, after, !ok || !ok2 || a+b > 0
}

func checkMargins(x *fgraph.Variable, margins []Margin) {
	if len(margins) != TypeOf(x).NDim() {
		fail("pad", "%d margins for a %v", len(margins), x.Type())
	}
}

// PadValue adds margins that are filled with value, a scalar. There is a margin for each dimension.
func PadValue(x, value *fgraph.Variable, margins ...Margin) *fgraph.Variable {
	checkMargins(x, margins)
	sizes, indexes := make([]*fgraph.Variable, len(margins)), make([]Index, len(margins))
	changed := false
	for d, m := range margins {
		sizes[d], indexes[d] = sizeOf(x, d), Everything()
		before, after, some := m.width()
		if !some {
			continue
		}
		changed = true
		end := intMap(array.Add, before, sizes[d])
		sizes[d], indexes[d] = intMap(array.Add, end, after), SliceOf(before, end, 1)
	}
	if !changed {
		return x
	}
	return SetSubtensor(Alloc(castConstant(value, TypeOf(x).DType()), sizes...), x, indexes...)
}

// Pad adds margins that repeat elements of x, in one of the modes edge, reflect, symmetric and wrap. There is a margin for each dimension. A dimension
// without elements can't be repeated.
func Pad(x *fgraph.Variable, mode string, margins ...Margin) *fgraph.Variable {
	checkMargins(x, margins)
	for d, m := range margins {
		before, after, some := m.width()
		if !some {
			continue
		}
		n := sizeOf(x, d)
		// One dimension after the other: corners repeat what is in the margins of those before.
		place := ARange(intMap(array.Sub, Int(0), before), intMap(array.Add, n, after), Int(1))
		x = takeAlong(x, d, padSource(mode, place, n))
	}
	return x
}

// padSource returns the positions of the elements that go to places, which count from the first of n
// elements.
func padSource(mode string, place, n *fgraph.Variable) *fgraph.Variable {
	last := intMap(array.Sub, n, Int(1))
	switch mode {
	case padEdge:
		return Minimum(Maximum(place, Int(0)), last)
	case padReflect:
		// Places go back and forth, with each end once: in a triangle wave of this period. One element would
		// have the period 0, and Mod divides by it.
		period := intMap(array.Maximum, intMap(array.Mul, last, Int(2)), Int(1))
		return Sub(last, Abs(Sub(Map(array.Mod, place, period), last)))
	case padSymmetric:
		// As above, but each end comes twice. The modulo lets margins be longer than x.
		period := intMap(array.Mul, n, Int(2))
		place = Map(array.Mod, place, period)
		return Minimum(place, Sub(intMap(array.Sub, period, Int(1)), place))
	case padWrap:
		return Map(array.Mod, place, n)
	}
	fail("pad", "there is no mode %q; there are constant, edge, reflect, symmetric and wrap", mode)
	return nil
}
