package tensorpass

import (
	"context"
	"math"
	"slices"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A canonizer brings expressions of a commutative operation, its inverse and its reciprocal into a
// normal form: sums of add, sub and neg, or products of mul, true_div and inv. Such an expression
// is two lists of terms: a numerator and a denominator, or the terms that are added and those that
// are subtracted. Terms of both lists cancel, and one constant in front is left. Where nothing
// cancels, terms of one shape are one list if that saves ops.
//
// This is Theano's AlgebraicCanonizer, with three differences. It expands a term only if the term
// has a single use, as it would be computed twice otherwise; it expands shared terms on a second
// try, if something cancels then. It flattens what it can't simplify, so that rules find all
// factors of a product in one place. And it does not recurse, so that a sum of a million terms is
// an ordinary sum.
type canonizer struct {
	main, inverse, reciprocal array.Opcode
	useReciprocal             bool    // without a numerator, write the reciprocal rather than the inverse of neutral
	neutral                   float64 // the neutral element of main
	simplify                  func(num, den []*variable, out *variable) ([]*variable, []*variable)
	simplifies                func(op array.Opcode, in []*variable) bool // whether simplify may change what op makes of in
}

var (
	addCanonizer = canonizer{main: array.Add, inverse: array.Sub, reciprocal: array.Neg, useReciprocal: true, neutral: 0,
		simplify: mergeTerms, simplifies: func(_ array.Opcode, in []*variable) bool { return mayMerge(in) }}
	mulCanonizer = canonizer{main: array.Mul, inverse: array.TrueDiv, reciprocal: array.Inv, neutral: 1,
		simplify: divideByAbs, simplifies: func(op array.Opcode, _ []*variable) bool { return op == array.TrueDiv }}
	// To these, a quotient or a difference is a term.
	products = canonizer{main: array.Mul, inverse: array.NumOpcodes, reciprocal: array.NumOpcodes, neutral: 1}
	sums     = canonizer{main: array.Add, inverse: array.NumOpcodes, reciprocal: array.NumOpcodes}
)

// family returns the apply of v and its operation, if that is one of the canonizer's, and else nil.
func (z *canonizer) family(v *variable) (*apply, array.Opcode) {
	a := v.Owner()
	op, ok := elemOf(a)
	if ok && (op == z.main || op == z.inverse || op == z.reciprocal) && !(isFloat(v) && ofSizes(v)) {
		return a, op
	}
	return nil, 0
}

// outermost reports whether the result of n is not itself a term of an expression of the same kind.
func (z *canonizer) outermost(n *apply) bool {
	for v := n.Out(); ; {
		client := onlyClient(v)
		if client == nil {
			return true
		}
		if op, ok := client.Op().(tensor.DimShuffleOp); ok && op.PadsLeft(typeOf(v).NDim()) {
			v = client.Out()
			continue
		}
		a, _ := z.family(client.Out())
		return a == nil || dtypeOf(client.Out()) != dtypeOf(v)
	}
}

// maxShared bounds the terms that are looked at behind terms with other uses.
const maxShared = 256

// terms takes v apart.
func (z *canonizer) terms(v *variable) (num, den []*variable) {
	num, den, _ = z.split(v, false, math.MaxInt)
	return num, den
}

// few is terms for at most a number of terms. It reports false if there are more, and takes no
// longer than for that many.
func (z *canonizer) few(v *variable, most int) (num, den []*variable, ok bool) {
	num, den, _ = z.split(v, false, most)
	return num, den, len(num)+len(den) <= most
}

// split takes v apart, and stops when there are more than most terms. It expands terms with other
// uses only if shared is set, and reports whether it has met any.
func (z *canonizer) split(v *variable, shared bool, most int) (num, den []*variable, met bool) {
	type item struct {
		v    *variable
		back bool // in the denominator
	}
	dtype := dtypeOf(v)
	var buffer [16]item
	todo := append(buffer[:0], item{v: v})
	expanded := 0
	for len(todo) > 0 && len(num)+len(den)+len(todo) <= most {
		it := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		inner := it.v
		for inner != v { // look through padding
			s := stripPadding(inner)
			if s == inner {
				break
			}
			if !usedOnce(inner) {
				met = true
				if !shared {
					break
				}
			}
			inner = s
		}
		a, op := z.family(inner)
		if a != nil && dtypeOf(inner) != dtype {
			a = nil
		}
		if a != nil && inner != v && !usedOnce(inner) {
			met = true
			if !shared || expanded > maxShared {
				a = nil
			}
		}
		if a == nil {
			if it.back {
				den = append(den, it.v)
			} else {
				num = append(num, it.v)
			}
			continue
		}
		if shared {
			expanded += len(a.Inputs())
		}
		for i := len(a.Inputs()) - 1; i >= 0; i-- {
			todo = append(todo, item{a.Inputs()[i], it.back != (op == z.reciprocal || op == z.inverse && i == 1)})
		}
	}
	for _, it := range todo { // there are too many
		num = append(num, it.v)
	}
	return num, den, met
}

// cancel removes the terms of both lists, as often as they are in both, and reports whether there
// are any. Numbers of sizes are computed: where two sizes are known they may happen to be equal.
func cancel(num, den []*variable) ([]*variable, []*variable, bool) {
	if len(num) == 0 || len(den) == 0 {
		return num, den, false
	}
	taken := takeFrom(den)
	both, keep := partition(num, func(v *variable) bool { return taken(v) && !(isFloat(v) && ofSizes(v)) })
	if len(both) == 0 {
		return num, den, false
	}
	_, rest := partition(den, takeFrom(both))
	return keep, rest, true
}

// takeFrom returns a function that takes a variable out of a list, and reports whether it was
// there.
func takeFrom(list []*variable) func(*variable) bool {
	left := make(map[*variable]int, len(list))
	for _, v := range list {
		left[v]++
	}
	return func(v *variable) bool {
		if left[v] == 0 {
			return false
		}
		left[v]--
		return true
	}
}

// constants makes one constant of all, in front of num, and drops it if it is neutral. The lists
// stay as they are if the only constant is in front already.
func (z *canonizer) constants(num, den []*variable, out *variable) ([]*variable, []*variable) {
	found := slices.ContainsFunc(num, isFoldable) || slices.ContainsFunc(den, isFoldable)
	if !found && (z.useReciprocal || len(num) > 0) || z.inFront(num, den, out) {
		return num, den
	}
	numct, restNum := partition(num, isFoldable)
	denct, restDen := partition(den, isFoldable)
	a := z.calculate(numct, denct, out)
	if a == nil {
		return num, den
	}
	v, same := array.Uniform(a)
	neutral := same && v == z.neutral
	switch {
	case neutral && (z.useReciprocal || len(restNum) > 0 || len(restDen) == 0):
		return restNum, restDen
	case len(numct) == 1 && len(denct) == 0 && num[0] == numct[0]:
		return num, den // or else NaN + x would be rewritten for ever
	}
	return append([]*variable{tensor.Constant(a)}, restNum...), restDen
}

// inFront reports whether the only constant is the first term, has the type of the result and is
// not neutral.
func (z *canonizer) inFront(num, den []*variable, out *variable) bool {
	if len(num) == 0 || !isFoldable(num[0]) || slices.ContainsFunc(num[1:], isFoldable) || slices.ContainsFunc(den, isFoldable) {
		return false
	}
	a := tensor.ConstantOf(num[0])
	if a.DType() != dtypeOf(out) {
		return false
	}
	for i := range a.Len() {
		if a.Float(i) != z.neutral {
			return true
		}
	}
	return a.Len() == 0
}

// calculate combines constants in the element type of the result. It returns nil if they do not
// fit.
func (z *canonizer) calculate(num, den []*variable, out *variable) *array.Array {
	dtype := dtypeOf(out)
	if a := z.fold(dtype, num, den); a != nil {
		return a
	}
	total := tensor.Constant(array.Full(dtype, z.neutral))
	combine := func(op array.Opcode, list []*variable) bool {
		for _, v := range list {
			c := tensor.Constant(tensor.ConstantOf(v).Cast(dtype))
			sum, err := tensor.Try(func() *variable { return tensor.Map(op, total, c) })
			if err != nil {
				return false
			}
			out, err := tensor.Fold(context.Background(), sum.Owner())
			if err != nil {
				return false
			}
			total = tensor.Constant(out[0])
		}
		return true
	}
	if !combine(z.main, num) || !combine(z.inverse, den) {
		return nil
	}
	return tensor.ConstantOf(total)
}

// fold is calculate for constants of one element each. It returns nil if an argument is anything else.
func (z *canonizer) fold(dtype array.DType, num, den []*variable) *array.Array {
	data := func(list []*variable) []*array.Array {
		return lists.Map(list, tensor.ConstantOf)
	}
	total, ok := array.Fold(z.main, dtype, z.neutral, data(num))
	if !ok || len(den) == 0 {
		return total
	}
	if dtype == array.Int64 { // a float64, as Fold starts with, has fewer digits
		return nil
	}
	v, _ := array.Uniform(total)
	rest, ok := array.Fold(z.inverse, dtype, v, data(den))
	if !ok {
		return nil
	}
	if rest.NDim() < total.NDim() {
		total.SetFloat(0, rest.Float(0))
		return total
	}
	return rest
}

// join makes an expression of the lists.
func (z *canonizer) join(num, den []*variable, out *variable) *variable {
	product := func(list []*variable) *variable {
		switch len(list) {
		case 0:
			return number(z.neutral, out)
		case 1:
			return list[0]
		}
		return computeAs(out, z.main, list...)
	}
	switch {
	case len(den) == 0:
		return product(num)
	case len(num) == 0 && z.useReciprocal:
		return computeAs(out, z.reciprocal, product(den))
	}
	return computeAs(out, z.inverse, product(num), product(den))
}

// simplified cancels terms of the lists, and makes one constant.
func (z *canonizer) simplified(num, den []*variable, out *variable) ([]*variable, []*variable) {
	num, den, _ = cancel(num, den)
	if n, d, ok := z.constantsOfSizes(num, den, out); ok {
		num, den = n, d
	} else {
		num, den = z.constants(num, den, out)
	}
	if z.simplify != nil {
		num, den = z.simplify(num, den, out)
	}
	return num, den
}

// settled reports whether n has its normal form, as far as is seen without taking it apart: no term
// is of the same kind, and only the first may be a constant.
func (z *canonizer) settled(n *apply) bool {
	in := n.Inputs()
	switch op, _ := elemOf(n); {
	case op == z.inverse && in[0] == in[1], op == z.reciprocal, z.simplifies(op, in):
		return false
	}
	for i, v := range in {
		if i > 0 && (v.IsConstant() || isFloat(n.Out()) && ofSizes(v)) || z.reaches(v) {
			return false
		}
	}
	return !in[0].IsConstant() || z.inFront(in[:1], nil, n.Out())
}

// reaches reports whether v is of the canonizer's family, or what v pads is.
func (z *canonizer) reaches(v *variable) bool {
	for {
		if a, _ := z.family(v); a != nil {
			return true
		}
		s := stripPadding(v)
		if s == v {
			return false
		}
		v = s
	}
}

// isFoldable reports whether v is a constant that is small enough to compute with.
func isFoldable(v *variable) bool {
	a := tensor.ConstantOf(v)
	return a != nil && !a.IsCSR() && a.Len() <= maxFolded
}

// transform is the rule of the canonizer.
func (z *canonizer) transform(c *rewrite.Context, n *apply) (result, error) {
	out := n.Out()
	if z.nested(out, onlyClient(out)) || z.settled(n) || isFloat(out) && ofSizes(out) {
		return c.Miss("it is a term of a larger expression of the same kind, or nothing cancels, the constants are one already, and it is flat"), nil
	}
	if z.outermost(n) {
		oldNum, oldDen, met := z.split(out, false, math.MaxInt)
		num, den := z.simplified(oldNum, oldDen, out)
		changed := !slices.Equal(num, oldNum) || !slices.Equal(den, oldDen)
		if !changed && met {
			oldNum, oldDen, _ = z.split(out, true, math.MaxInt)
			if num, den, changed = cancel(oldNum, oldDen); changed {
				num, den = z.simplified(num, den, out)
			}
		}
		if changed {
			return replace(c, n, z.join(num, den, out), slices.Concat(oldNum, oldDen, n.Inputs())...)
		}
	}
	num, den, saves := z.flat(n)
	if !saves {
		return c.Miss("nothing cancels, the constants are one already, and a flat expression would have as many ops"), nil
	}
	return replace(c, n, z.join(num, den, out), n.Inputs()...)
}

// nested reports whether v is a term of client that can be expanded without computing more: client
// is its only reader, of the same family, and computes elements of the same type and in the same
// number. client may be nil.
func (z *canonizer) nested(v *variable, client *apply) bool {
	if client == nil || !usedOnce(v) {
		return false
	}
	outer, _ := z.family(client.Out())
	return outer != nil && dtypeOf(client.Out()) == dtypeOf(v) && samePattern(client.Out(), v)
}

// flat takes an apply and the terms nested in it apart, and reports whether their lists can be
// computed in fewer ops, or a sum in as many in the normal form: a difference of sums.
func (z *canonizer) flat(n *apply) (num, den []*variable, saves bool) {
	if len(n.Inputs()) > 1 && !slices.ContainsFunc(n.Inputs(), func(v *variable) bool {
		a, _ := z.family(v)
		return a != nil && z.nested(v, n)
	}) {
		return nil, nil, false // it is flat
	}
	type item struct {
		a    *apply
		back bool // in the denominator
		next int  // the input that comes next
	}
	ops, normal := 0, true
	var buffer [16]item
	open := append(buffer[:0], item{a: n})
	for len(open) > 0 {
		it := &open[len(open)-1]
		if it.next == len(it.a.Inputs()) {
			open = open[:len(open)-1]
			ops++
			continue
		}
		v, i := it.a.Inputs()[it.next], it.next
		it.next++
		_, op := z.family(it.a.Out())
		back := it.back != (op == z.reciprocal || op == z.inverse && i == 1)
		a, _ := z.family(v)
		switch {
		case a != nil && z.nested(v, it.a):
			inner, _ := elemOf(a)
			normal = normal && inner == z.main && op != z.main
			open = append(open, item{a: a, back: back})
		case back:
			den = append(den, v)
		default:
			num = append(num, v)
		}
	}
	if !z.useReciprocal && len(den) > 1 { // a product of divisors may overflow, and dividing one by one not
		return num, den, false
	}
	least := z.numOps(num, den)
	return num, den, least < ops || z.useReciprocal && least == ops && !normal
}

// numOps returns the number of ops that join makes.
func (z *canonizer) numOps(num, den []*variable) int {
	ops := 0
	for _, list := range [][]*variable{num, den} {
		if len(list) > 1 {
			ops++
		}
	}
	if len(den) > 0 {
		ops++
	}
	return ops
}
