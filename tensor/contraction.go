package tensor

import (
	"math"
	"math/bits"
	"slices"
)

// maxOrdered bounds the number of operands of which the best order is found by trying all. More
// operands are multiplied one after the other.
const maxOrdered = 8

// multiply multiplies terms, a pair at a time. It tries all orders: the cheapest way to make the
// product of a set of terms is the cheapest pair of ways to make the products of two parts.
func (e *einsum) multiply(terms []term) term {
	if len(terms) > maxOrdered {
		// To try all orders of n terms takes 3ⁿ steps.
		head := e.pairs(terms[:maxOrdered], terms[maxOrdered:])
		return e.multiply(append([]term{head}, terms[maxOrdered:]...))
	}
	return e.pairs(terms, nil)
}

// pairs multiplies at most maxOrdered terms. Later ones will be multiplied with the product.
func (e *einsum) pairs(terms, later []term) term {
	o := newOrdering(e, terms, later)
	all := 1<<len(terms) - 1
	// In the order of numbers, all parts of a set come before the set.
	for set := 1; set <= all; set++ {
		o.find(set)
	}
	return o.make(all)
}

// An ordering has, for each set of terms as bits, the cheapest way to make their product. Sets of
// labels are bits, too.
type ordering struct {
	e       *einsum
	terms   []term
	labels  []label // by bit
	sizes   []float64
	outside uint64   // what the result and later terms use
	own     []uint64 // the labels of each term
	cost    []float64
	left    []int // one of the two parts
}

// unknownSize is assumed for sizes that types don't tell.
const unknownSize = 32

func newOrdering(e *einsum, terms, later []term) *ordering {
	n := 1 << len(terms)
	o := &ordering{e: e, terms: terms, cost: make([]float64, n), left: make([]int, n)}
	for _, t := range terms {
		var own uint64
		for d, l := range t.labels {
			k := slices.Index(o.labels, l)
			if k < 0 {
				k = len(o.labels)
				o.labels, o.sizes = append(o.labels, l), append(o.sizes, unknownSize)
			}
			own |= 1 << k
			if s := TypeOf(t.v).Dim(d); s != Unknown {
				o.sizes[k] = float64(s)
			}
		}
		o.own = append(o.own, own)
	}
	o.outside = o.bits(e.output)
	// What later terms use must not be summed yet.
	for _, t := range later {
		o.outside |= o.bits(t.labels)
	}
	return o
}

func (o *ordering) bits(labels []label) (set uint64) {
	for _, l := range labels {
		if k := slices.Index(o.labels, l); k >= 0 {
			set |= 1 << k
		}
	}
	return set
}

// union returns the labels of all terms of a set.
func (o *ordering) union(set int) (all uint64) {
	for i, own := range o.own {
		if set>>i&1 != 0 {
			all |= own
		}
	}
	return all
}

// used returns the labels that something other than a set of terms uses.
func (o *ordering) used(set int) uint64 {
	return o.outside | o.union((1<<len(o.terms)-1)&^set)
}

// result returns the labels of the product of a set of terms.
func (o *ordering) result(set int) uint64 { return o.union(set) & o.used(set) }

// find finds the cheapest way for a set whose parts have been found.
func (o *ordering) find(set int) {
	if set&(set-1) == 0 {
		return
	}
	o.cost[set] = math.Inf(1)
	for part := (set - 1) & set; part > 0; part = (part - 1) & set {
		rest := set &^ part
		if part < rest {
			continue // the same two parts
		}
		steps := 1.0
		// Each combination of the labels of both factors is a multiplication.
		for all := o.result(part) | o.result(rest); all != 0; all &= all - 1 {
			steps *= o.sizes[bits.TrailingZeros64(all)]
		}
		// The first way is taken in any case: if all costs are infinite, none is less than another.
		if c := o.cost[part] + o.cost[rest] + steps; c < o.cost[set] || o.left[set] == 0 {
			o.cost[set], o.left[set] = c, rest
		}
	}
}

// make returns the product of a set.
func (o *ordering) make(set int) term {
	if set&(set-1) == 0 {
		return o.terms[bits.TrailingZeros(uint(set))]
	}
	var used []label
	for all := o.used(set); all != 0; all &= all - 1 {
		used = append(used, o.labels[bits.TrailingZeros64(all)])
	}
	left := o.left[set]
	return o.e.product(o.make(left), o.make(set&^left), used)
}
