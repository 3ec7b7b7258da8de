package tensorpass

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A canonizer brings what is built of one commutative operation, its inverse and its reciprocal into a normal form: sums of add, sub and
// neg, or products of mul, true_div and inv. A sum or product is two lists of terms, those that count and those that are taken back; what
// stands in both is gone, and the constants are one, in front.
//
// This is Theano's AlgebraicCanonizer, with two differences. It goes through a term only if nothing else uses it, as it would be computed
// twice otherwise; a second look through shared terms is taken if that lets something cancel. And it does not recurse, so that a sum of
// a million terms is an ordinary sum.
type canonizer struct {
	main, inverse, reciprocal array.Opcode
	useReciprocal             bool    // 0/x is written as a reciprocal rather than as the inverse of the neutral element
	neutral                   float64 // of main
	simplify                  func(num, den []*vari) ([]*vari, []*vari)
}

var (
	addCanonizer = canonizer{main: array.Add, inverse: array.Sub, reciprocal: array.Neg, useReciprocal: true, neutral: 0}
	mulCanonizer = canonizer{main: array.Mul, inverse: array.TrueDiv, reciprocal: array.Inv, neutral: 1, simplify: divideByAbs}
	products     = canonizer{main: array.Mul, inverse: array.NumOpcodes, reciprocal: array.NumOpcodes, neutral: 1} // takes quotients for terms
)

// family returns the apply of v and its operation, if it is one of the canonizer's.
func (z *canonizer) family(v *vari) (*apply, array.Opcode) {
	a := v.Owner()
	op, ok := elemOf(a)
	if ok && (op == z.main || op == z.inverse || op == z.reciprocal) {
		return a, op
	}
	return nil, 0
}

// outermost reports whether the result of n is not itself a term of what is about to be brought into normal form.
func (z *canonizer) outermost(n *apply) bool {
	v := n.Out()
	for {
		if len(v.Clients()) != 1 || v.Clients()[0].Apply == nil {
			return true
		}
		client := v.Clients()[0].Apply
		if op, ok := client.Op().(tensor.DimShuffleOp); ok && op.PadsLeft(typ(v).NDim()) {
			v = client.Out()
			continue
		}
		a, _ := z.family(client.Out())
		return a == nil || typ(client.Out()).DType() != typ(v).DType()
	}
}

// mostShared bounds how many terms are looked at behind terms that are used elsewhere, too.
const mostShared = 256

// terms takes v apart.
func (z *canonizer) terms(v *vari) (num, den []*vari) {
	num, den, _ = z.split(v, false, math.MaxInt)
	return num, den
}

// few is terms that gives up where there are more than most of them, and reports whether there are not. It takes no longer than that, whatever v is.
func (z *canonizer) few(v *vari, most int) (num, den []*vari, ok bool) {
	num, den, _ = z.split(v, false, most)
	return num, den, len(num)+len(den) <= most
}

// split takes v apart, unless there are more than most terms. It goes through terms that are used elsewhere only if shared is set, and reports
// whether it has met any.
func (z *canonizer) split(v *vari, shared bool, most int) (num, den []*vari, met bool) {
	type item struct {
		v    *vari
		back bool // taken back
	}
	dtype := typ(v).DType()
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
			if !alone(inner) {
				met = true
				if !shared {
					break
				}
			}
			inner = s
		}
		a, op := z.family(inner)
		if a != nil && typ(inner).DType() != dtype {
			a = nil
		}
		if a != nil && inner != v && !alone(inner) {
			met = true
			if !shared || expanded > mostShared {
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
	for _, it := range todo { // there are too many, of which these are some
		num = append(num, it.v)
	}
	return num, den, met
}

// cancel removes what stands in both lists, as often as it stands in both.
func cancel(num, den []*vari) ([]*vari, []*vari, bool) {
	if len(num) == 0 || len(den) == 0 {
		return num, den, false
	}
	count := make(map[*vari]int, len(den))
	for _, v := range den {
		count[v]++
	}
	gone := make(map[*vari]int)
	keep := make([]*vari, 0, len(num))
	for _, v := range num {
		if count[v] > gone[v] {
			gone[v]++
		} else {
			keep = append(keep, v)
		}
	}
	if len(gone) == 0 {
		return num, den, false
	}
	rest := make([]*vari, 0, len(den))
	for _, v := range den {
		if gone[v] > 0 {
			gone[v]--
		} else {
			rest = append(rest, v)
		}
	}
	return keep, rest, true
}

// constants puts all constants into one, in front of num; it is left out if it is neutral. Where there is but one, in front already,
// the lists stay as they are.
func (z *canonizer) constants(num, den []*vari, out *vari) ([]*vari, []*vari) {
	found := slices.ContainsFunc(num, isFoldable) || slices.ContainsFunc(den, isFoldable)
	if !found && (z.useReciprocal || len(num) > 0) || z.inFront(num, den, out) {
		return num, den
	}
	var numct, denct, restNum, restDen []*vari
	split := func(list []*vari, ct, rest *[]*vari) {
		for _, v := range list {
			if isFoldable(v) {
				*ct = append(*ct, v)
			} else {
				*rest = append(*rest, v)
			}
		}
	}
	split(num, &numct, &restNum)
	split(den, &denct, &restDen)
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
		return num, den // also what keeps NaN + x from going round
	}
	return append([]*vari{tensor.Constant(a)}, restNum...), restDen
}

// inFront reports whether the only constant is the first term, has the type of the result and is not neutral: it stays where it is.
func (z *canonizer) inFront(num, den []*vari, out *vari) bool {
	if len(num) == 0 || !isFoldable(num[0]) || slices.ContainsFunc(num[1:], isFoldable) || slices.ContainsFunc(den, isFoldable) {
		return false
	}
	a := tensor.ConstantOf(num[0])
	if a.DType() != typ(out).DType() {
		return false
	}
	for i := range a.Len() {
		if a.Float(i) != z.neutral {
			return true
		}
	}
	return a.Len() == 0
}

// calculate combines constants in the type of elements of the result, nil if they do not fit.
func (z *canonizer) calculate(num, den []*vari, out *vari) *array.Array {
	dtype := typ(out).DType()
	if a := z.fold(dtype, num, den); a != nil {
		return a
	}
	total := tensor.Constant(array.Full(dtype, z.neutral))
	combine := func(op array.Opcode, list []*vari) bool {
		for _, v := range list {
			c := tensor.Constant(tensor.ConstantOf(v).Cast(dtype))
			e, err := tensor.Try(func() *vari { return tensor.Map(op, total, c) })
			if err != nil {
				return false
			}
			a, err := eval(e)
			if err != nil {
				return false
			}
			total = tensor.Constant(a)
		}
		return true
	}
	if !combine(z.main, num) || !combine(z.inverse, den) {
		return nil
	}
	return tensor.ConstantOf(total)
}

// fold combines constants of one element each; nil if there are others.
func (z *canonizer) fold(dtype array.DType, num, den []*vari) *array.Array {
	data := func(list []*vari) []*array.Array {
		all := make([]*array.Array, len(list))
		for i, v := range list {
			all[i] = tensor.ConstantOf(v)
		}
		return all
	}
	total, ok := array.Fold(z.main, dtype, z.neutral, data(num))
	if !ok || len(den) == 0 {
		return total
	}
	if dtype == array.Int64 { // start below is a float64, which holds fewer digits
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

// join makes an expression of the lists again.
func (z *canonizer) join(num, den []*vari, out *vari) *vari {
	product := func(list []*vari) *vari {
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

// simplified returns the lists without what cancels and with the constants in one.
func (z *canonizer) simplified(num, den []*vari, out *vari) ([]*vari, []*vari) {
	num, den, _ = cancel(num, den)
	num, den = z.constants(num, den, out)
	if z.simplify != nil {
		num, den = z.simplify(num, den)
	}
	return num, den
}

// settled reports whether n is seen to have its normal form without being taken apart: no term is of the same kind, and none a constant
// but the first.
func (z *canonizer) settled(n *apply) bool {
	in := n.Inputs()
	switch op, _ := elemOf(n); {
	case op == z.inverse && (z.simplify != nil || in[0] == in[1]), op == z.reciprocal:
		return false
	}
	for i, v := range in {
		if i > 0 && v.IsConstant() {
			return false
		}
		for inner := v; ; {
			if a, _ := z.family(inner); a != nil {
				return false
			}
			s := stripPadding(inner)
			if s == inner {
				break
			}
			inner = s
		}
	}
	return !in[0].IsConstant() || z.inFront(in[:1], nil, n.Out())
}

// isFoldable reports whether v is a constant that is small enough to be computed with.
func isFoldable(v *vari) bool {
	a := tensor.ConstantOf(v)
	return a != nil && !a.IsCSR() && a.Len() <= mostFolded
}

// transform is the rule of the canonizer.
func (z *canonizer) transform(c *rewrite.Context, n *apply) (result, error) {
	if !z.outermost(n) {
		return c.Miss("it is a term of a larger expression of the same kind"), nil
	}
	if z.settled(n) {
		return c.Miss("nothing cancels, and the constants are one already"), nil
	}
	out := n.Out()
	oldNum, oldDen, met := z.split(out, false, math.MaxInt)
	num, den := z.simplified(oldNum, oldDen, out)
	if slices.Equal(num, oldNum) && slices.Equal(den, oldDen) {
		cancelled := false
		if met {
			oldNum, oldDen, _ = z.split(out, true, math.MaxInt)
			num, den, cancelled = cancel(oldNum, oldDen)
		}
		if !cancelled {
			return c.Miss("nothing cancels, and the constants are one already"), nil
		}
		num, den = z.simplified(num, den, out)
	}
	return replace(c, n, z.join(num, den, out), slices.Concat(oldNum, oldDen, n.Inputs())...)
}

// divideByAbs makes the sign of x of x/|x|. Not of integers: the absolute value of the smallest one is itself.
func divideByAbs(num, den []*vari) ([]*vari, []*vari) {
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

// addCanonize is local_add_canonizer.
func addCanonize() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_add_canonizer", Doc: "sums are flat, with their constants in one: x + 1 - (x - y) → 1 + y; x - x → 0, also where x is NaN or infinite",
		On: on(array.Add, array.Sub, array.Neg), Fn: addCanonizer.transform,
	}
}

// mulCanonize is local_mul_canonizer.
func mulCanonize() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_mul_canonizer", Doc: "products are flat, with their constants in one: 2*x/(4*x*y) → 0.5/y; x/x → 1, also where x is zero, NaN or infinite",
		On: on(array.Mul, array.TrueDiv, array.Inv), Fn: mulCanonizer.transform,
	}
}
