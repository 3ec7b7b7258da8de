// Package rational compares tensor expressions in exact arithmetic.
//
// Sides that only add, multiply and divide floats element by element are rational functions of their inputs. If they
// are not equal, the polynomial by which they differ has no more zeros than its degree for each number that an input
// may be (Schwartz 1980, Zippel 1979), so one draw of numbers from many tells, in exact arithmetic.
package rational

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

const (
	drawnBits = 61 // of a number that is drawn
	smallBits = 58 // of them behind the point, so that numbers are below 8 and constants count
	// maxDegree bounds the digits of what is computed, which a chain of squares doubles at each step.
	maxDegree = 64
	// Constants of rules are rounded to floats: sides that differ by less may be equal but for that.
	maxRounded = 1.0 / (1 << 20)
	// maxCompared bounds the instances of a rule that are compared: each says nearly all.
	maxCompared = 4
)

// A fraction is the value of a rational function, and the degrees of what is above and below its line.
type fraction struct {
	value        *big.Rat
	above, below int
}

// A Comparer compares the sides of a rule.
type Comparer struct {
	rng    *rand.Rand
	values map[*fgraph.Variable]fraction // of an instance
	inputs []*fgraph.Variable

	Compared int     // instances
	Chance   float64 // that sides of one agree which are not equal
	Other    bool    // whether some do more than rational functions do
}

// NewComparer returns a Comparer that draws numbers.
func NewComparer(rng *rand.Rand) Comparer { return Comparer{rng: rng} }

// Compare draws inputs, and compares both sides of an instance. It says where they differ. Instances that divide by
// zero tell nothing, nor do those of other types or with dimensions that move.
func (r *Comparer) Compare(left, right []*fgraph.Variable) (differ string) {
	if r.Compared == maxCompared || r.Other {
		return ""
	}
	r.values, r.inputs = make(map[*fgraph.Variable]fraction), nil
	chance := 0.0
	for i, v := range left {
		left, okLeft := r.of(v)
		right, okRight := r.of(right[i])
		if !okLeft || !okRight {
			return ""
		}
		degree := max(left.above+right.below, right.above+left.below, 1)
		chance += math.Ldexp(float64(degree), -drawnBits)
		off := new(big.Rat).Sub(left.value, right.value)
		if off.Sign() == 0 {
			continue
		}
		l, _ := left.value.Float64()
		f, _ := right.value.Float64()
		if d, _ := off.Float64(); !(math.Abs(d) > maxRounded*max(math.Abs(l), math.Abs(f))) {
			return ""
		}
		text := []string{"in exact arithmetic"}
		for _, v := range r.inputs {
			x, _ := r.values[v].value.Float64()
			text = append(text, fmt.Sprintf("%v = %v", v, x))
		}
		return strings.Join(append(text, fmt.Sprintf("left: %v", l), fmt.Sprintf("right: %v", f)), "; ")
	}
	r.Compared++
	r.Chance = max(r.Chance, chance)
	return ""
}

// of returns the value of a variable. It recurses as deep as the sides of a rule are.
func (r *Comparer) of(v *fgraph.Variable) (f fraction, ok bool) {
	if f, ok := r.values[v]; ok {
		return f, true
	}
	defer func() {
		if ok = ok && max(f.above, f.below) <= maxDegree; ok {
			r.values[v] = f
		}
	}()
	if tensor.TypeOf(v).DType() != array.Float64 {
		return f, false
	}
	a := v.Owner()
	if c, uniform := tensor.UniformOf(v); uniform {
		if f.value = new(big.Rat).SetFloat64(c); f.value == nil {
			return f, false
		}
		return f, true
	}
	if a == nil {
		if v.IsConstant() {
			return f, false
		}
		r.inputs = append(r.inputs, v)
		n := int64(r.rng.Uint64()>>(64-drawnBits)) - 1<<(drawnBits-1)
		return fraction{value: big.NewRat(n, 1<<smallBits), above: 1}, true
	}
	if _, moves := a.Op().(tensor.DimShuffleOp); moves {
		return f, false
	}
	e, elementwise := a.Op().(tensor.Elemwise)
	if r.Other = r.Other || !elementwise || !slices.Contains(rationalOps, e.Op); r.Other {
		return f, false
	}
	args := make([]fraction, len(a.Inputs()))
	for i, in := range a.Inputs() {
		if args[i], ok = r.of(in); !ok {
			return f, false
		}
	}
	return operate(e.Op, args)
}

var rationalOps = []array.Opcode{array.Add, array.Sub, array.Mul, array.TrueDiv, array.Neg, array.Inv, array.Sqr}

// operate applies an operation to fractions.
func operate(op array.Opcode, args []fraction) (f fraction, ok bool) {
	one := fraction{value: big.NewRat(1, 1)}
	f = args[0]
	each := func(do func(a, b fraction) fraction) (fraction, bool) {
		for _, b := range args[1:] {
			f = do(f, b)
		}
		return f, true
	}
	multiply := func(a, b fraction) fraction {
		return fraction{new(big.Rat).Mul(a.value, b.value), a.above + b.above, a.below + b.below}
	}
	sum := func(do func(z, a, b *big.Rat) *big.Rat) func(a, b fraction) fraction {
		return func(a, b fraction) fraction {
			return fraction{do(new(big.Rat), a.value, b.value), max(a.above+b.below, b.above+a.below), a.below + b.below}
		}
	}
	invert := func(a fraction) fraction { return fraction{new(big.Rat).Inv(a.value), a.below, a.above} }
	switch op {
	case array.Add:
		return each(sum((*big.Rat).Add))
	case array.Sub:
		return each(sum((*big.Rat).Sub))
	case array.Mul:
		return each(multiply)
	case array.Neg:
		return sum((*big.Rat).Sub)(fraction{value: new(big.Rat)}, f), true
	case array.Sqr:
		return multiply(f, f), true
	case array.Inv:
		args = []fraction{one, f}
		f = one
	}
	if slices.ContainsFunc(args[1:], func(b fraction) bool { return b.value.Sign() == 0 }) {
		return f, false
	}
	return each(func(a, b fraction) fraction { return multiply(a, invert(b)) })
}
