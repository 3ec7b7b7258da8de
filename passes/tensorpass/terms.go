package tensorpass

import (
	"cmp"
	"math"
	"slices"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A multiple is a term of a sum: a number times the product of other factors.
type multiple struct {
	number float64
	size   *variable // a number of sizes that is a factor besides, or nil
	core   []*variable
	term   *variable // the product, or nil if there is none
}

// multipleAt takes term i of a sum in a type apart. The number is the first factor, where the
// canonizer of products puts it.
func multipleAt(terms []*variable, i int, dtype array.DType) multiple {
	v := terms[i]
	a := elem(v, array.Mul)
	if a == nil || dtypeOf(v) != dtype {
		return multiple{number: 1, core: terms[i : i+1 : i+1]}
	}
	m := multiple{number: 1, core: a.Inputs(), term: v}
	if x, ok := uniform(m.core[0]); ok && x-x == 0 && x != 0 && m.core[0].IsConstant() && isScalar(m.core[0]) {
		m.number, m.core = x, m.core[1:]
	} else if dtype.IsFloat() && ofSizes(m.core[0]) {
		m.size, m.core = m.core[0], m.core[1:]
	}
	return m
}

// recurs reports whether the core may be that of other terms as well.
func (m multiple) recurs() bool {
	if m.term == nil {
		return !usedOnce(m.core[0])
	}
	return len(m.core) > 0 && (len(m.rarest().Clients()) > 1 || !usedOnce(m.term))
}

// rarest returns the factor of the core that has the fewest uses.
func (m multiple) rarest() *variable {
	return slices.MinFunc(m.core, func(a, b *variable) int {
		return cmp.Or(len(a.Clients())-len(b.Clients()), a.ID()-b.ID())
	})
}

// sameCore reports whether two multiples have the same factors, in any order. It compares long
// products only as they are.
func (m multiple) sameCore(o multiple) bool {
	if len(m.core) != len(o.core) || len(m.core) == 1 || len(m.core) > 8 {
		return slices.Equal(m.core, o.core)
	}
	for _, v := range m.core {
		is := func(w *variable) bool { return w == v }
		if count(m.core, is) != count(o.core, is) {
			return false
		}
	}
	return true
}

// count returns the number of variables in a list that f accepts.
func count(list []*variable, f func(*variable) bool) int {
	n := 0
	for _, v := range list {
		if f(v) {
			n++
		}
	}
	return n
}

// mayMerge reports whether some of the terms of a sum may be multiples of one product. It may be
// wrong only if it says so.
func mayMerge(in []*variable) bool {
	var buffer [8]multiple
	seen := buffer[:0]
	for i, v := range in {
		m := multipleAt(in, i, dtypeOf(v))
		if !m.recurs() {
			continue
		}
		if slices.ContainsFunc(seen, m.sameCore) || len(seen) == len(buffer) {
			return true
		}
		seen = append(seen, m)
	}
	return false
}

// largestExact bounds the integers whose sums float64s hold.
const largestExact = 1 << 52

// A likeTerms is the terms of a sum that are multiples of one product.
type likeTerms struct {
	multiple
	total   float64   // of the numbers
	sizes   *variable // the sum of all numbers in their order if some are of sizes, as a float64, or nil
	entries int
	freed   int // products that only these terms need
	repeats int // entries of the product of the first
	merged  bool
}

// ops returns the number of ops of the term that replaces them all.
func (l *likeTerms) ops() int {
	if l.sizes == nil && (l.total == 0 || math.Abs(l.total) == 1 && len(l.core) == 1) {
		return 0
	}
	return 1
}

// factors returns the factors that the number multiplies. A product with other uses is one factor.
func (l *likeTerms) factors() []*variable {
	if l.freed == 0 && l.term != nil && l.number == 1 && l.size == nil {
		return []*variable{l.term}
	}
	return l.core
}

// mergeTerms makes one term of several multiples of a product: 2*x + 3*x → 5*x, x*y - 3*x*y →
// -2*x*y. It does not where that takes more ops: x + x + y is one op, and 2*x + y two. A sum of an integer with itself
// stays as it is: adding is quicker. For floats it is not, and a factor of 2 meets others.
func mergeTerms(num, den []*variable, out *variable) ([]*variable, []*variable) {
	all := slices.Concat(num, den)
	if !mayMerge(all) {
		return num, den
	}
	groups, groupOf := groupTerms(all, len(num), dtypeOf(out))
	merges := false
	for i := range groups {
		g := &groups[i]
		g.merged = g.entries > 1 && math.Abs(g.total) <= largestExact && (g.freed >= g.ops() || g.entries == len(all) && (len(all) > 2 || isFloat(out)))
		merges = merges || g.merged
	}
	if !merges {
		return num, den
	}
	var newNum, newDen []*variable
	for i, v := range all {
		back := i >= len(num)
		if k := groupOf[i]; k >= 0 && groups[k].merged {
			g := &groups[k]
			if g.entries == 0 || g.sizes == nil && g.total == 0 {
				continue
			}
			g.entries = 0 // the others are part of it
			v, back = g.core[0], g.total == -1 && g.ops() == 0
			if g.ops() > 0 {
				k := number(g.total, out)
				if g.sizes != nil {
					k = castTo(g.sizes, dtypeOf(out))
				}
				v = computeAs(out, array.Mul, append([]*variable{k}, g.factors()...)...)
			}
		}
		if back {
			newDen = append(newDen, v)
		} else {
			newNum = append(newNum, v)
		}
	}
	return newNum, newDen
}

// groupTerms groups the terms of a sum in a type by their cores. All from the given one on are
// subtracted. It returns the index of each term's group, or -1 for a term that can't have others.
func groupTerms(all []*variable, subtracted int, dtype array.DType) (groups []likeTerms, groupOf []int) {
	groupOf = make([]int, len(all))
	places := make(map[*variable][]int) // groups by the rarest factor
	for i := range all {
		groupOf[i] = -1
		m := multipleAt(all, i, dtype)
		if !m.recurs() || dtype == array.Bool || math.Abs(m.number) > largestExact {
			continue
		}
		key := m.rarest()
		k := slices.IndexFunc(places[key], func(k int) bool { return groups[k].sameCore(m) })
		if k >= 0 {
			k = places[key][k]
		} else {
			k = len(groups)
			groups, places[key] = append(groups, likeTerms{multiple: m}), append(places[key], k)
		}
		g := &groups[k]
		groupOf[i] = k
		g.entries++
		switch {
		case m.term == nil:
		case usedOnce(m.term):
			g.freed++
		case m.term == g.term:
			if g.repeats++; g.repeats == len(m.term.Clients()) {
				g.freed++
			}
		}
		if i >= subtracted {
			m.number = -m.number
		}
		g.add(m)
	}
	return groups, groupOf
}

// add counts the number of one more term.
func (l *likeTerms) add(m multiple) {
	switch {
	case m.size != nil && l.sizes == nil:
		l.sizes = full(array.Float64, l.total)
		fallthrough
	case m.size != nil:
		op := array.Add
		if m.number < 0 {
			op = array.Sub
		}
		l.sizes = tensor.Map(op, l.sizes, castTo(stripPadding(m.size), array.Float64))
	case l.sizes != nil:
		l.sizes = tensor.Add(l.sizes, full(array.Float64, m.number))
	}
	l.total += m.number
}

// maxOfSizes bounds the operations of a number of sizes.
const maxOfSizes = 64

// ofSizes reports whether v is one number that is computed of sizes alone, such as the divisor of a mean.
// Where sizes are known it is a constant.
func ofSizes(v *variable) bool {
	if v.Owner() == nil || !isScalar(v) {
		return false
	}
	found := false
	todo := []*variable{v}
	for seen := 0; len(todo) > 0; seen++ {
		v, todo = todo[len(todo)-1], todo[:len(todo)-1]
		a, _, moves := owner[tensor.DimShuffleOp](v)
		if moves {
			todo = append(todo, a.Inputs()[0])
			continue
		}
		if _, ok := uniform(v); ok {
			continue
		}
		switch op, ok := elemOf(a); {
		case isSize(v):
			found = true
		case !ok || op == array.Abs || seen >= maxOfSizes: // absolute values are dropped first, as of constants
			return false
		default:
			todo = append(todo, a.Inputs()...)
		}
	}
	return found
}

// isSize reports whether v is a size of a tensor, or one that is known and becomes a float: a cast of a constant.
// What is 0 or 1 is nothing else in another run: such a size is part of a type.
func isSize(v *variable) bool {
	if _, ok := tensor.OpOf(v).(tensor.ShapeIOp); ok {
		return true
	}
	n := argument(v, array.Cast)
	if n == nil || !n.IsConstant() || dtypeOf(n) != array.Int64 || !isScalar(n) || !isFloat(v) {
		return false
	}
	size, ok := uniform(n)
	return ok && size > 1
}

// isFixed reports whether v is one number that is known when sizes are.
func isFixed(v *variable) bool {
	_, ok := uniform(v)
	return ok && isScalar(v) || ofSizes(v)
}

// constantsOfSizes is constants for lists with numbers of sizes: these and the constants become one scalar in
// front of num. It is computed by the steps in which calculate computes a constant, so that a function for
// all sizes has the bits of functions for each. Constants that are no scalars become one behind it. It reports
// false if there are no numbers of sizes.
func (z *canonizer) constantsOfSizes(num, den []*variable, out *variable) ([]*variable, []*variable, bool) {
	if !isFloat(out) || !slices.ContainsFunc(num, ofSizes) && !slices.ContainsFunc(den, ofSizes) {
		return nil, nil, false
	}
	numct, restNum := partition(num, isFixed)
	denct, restDen := partition(den, isFixed)
	total := full(dtypeOf(out), z.neutral)
	switch {
	case len(denct) == 0 && len(numct) == 1 && num[0] == numct[0]:
		total, numct = num[0], nil
	case len(numct) > 0:
		total, numct = castTo(stripPadding(numct[0]), dtypeOf(out)), numct[1:]
	}
	for _, v := range numct {
		total = tensor.Map(z.main, total, castTo(stripPadding(v), dtypeOf(out)))
	}
	for _, v := range denct {
		total = tensor.Map(z.inverse, total, castTo(stripPadding(v), dtypeOf(out)))
	}
	if slices.ContainsFunc(restNum, isFoldable) || slices.ContainsFunc(restDen, isFoldable) {
		restNum, restDen = z.constants(restNum, restDen, out)
	}
	// A number that is too long to be seen as one would be taken apart, and made again, for ever.
	return append([]*variable{total}, restNum...), restDen, ofSizes(total)
}

// divideByAbs rewrites x/|x| as the sign of x. It leaves integers alone: the absolute value of the
// smallest one is itself.
func divideByAbs(num, den []*variable, _ *variable) ([]*variable, []*variable) {
	for i := 0; i < len(den); i++ {
		a := elem(den[i], array.Abs)
		if a == nil || !isFloat(den[i]) {
			continue
		}
		if k := slices.Index(num, a.Inputs()[0]); k >= 0 {
			num, den = slices.Clone(num), slices.Delete(slices.Clone(den), i, i+1)
			num[k] = tensor.Map(array.Sgn, num[k])
			i--
		}
	}
	return num, den
}
