package tensorpass

import "slices"

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
