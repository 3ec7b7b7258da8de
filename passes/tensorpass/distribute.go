package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// divisionCost is the number of multiplications that a division costs. It is Theano's figure.
const divisionCost = 1.5

// A pair is a product: its factors and its divisors.
type pair struct{ num, den []*variable }

// cost is that of the product, and 1 for a single factor. A numerator that is empty is a factor of 1.
func (p pair) cost() float64 {
	return float64(max(len(p.num), 1)) + float64(divisionCost*float64(len(p.den)))
}

// maxDistributed bounds the factors and terms that the distributor looks at, as it takes cubic
// time.
const maxDistributed = 24

func greedyDistribute(c *rewrite.Context, n *apply) (result, error) {
	out := n.Out()
	if !isFloat(out) {
		return none, nil
	}
	if !slices.ContainsFunc(n.Inputs(), func(v *variable) bool { return addCanonizer.reaches(v) || mulCanonizer.reaches(v) }) {
		return c.Miss("no factor is a sum or a product"), nil
	}
	num, den, ok := mulCanonizer.few(out, maxDistributed)
	if !ok || len(num)+len(den) < 2 {
		return c.Miss("it has too many factors, or just one"), nil
	}
	changed := false
	distribute := func(list, other *[]*variable) {
		for i := 0; i < len(*list); i++ {
			factor := (*list)[i]
			if !isSum(factor, out) {
				continue
			}
			if sum, num, den, ok := attemptDistribution(factor, without(*list, i), *other, out); ok {
				changed = true
				at := 0 // the place of the sum among the factors that are left
				for _, v := range (*list)[:i] {
					if at < len(num) && num[at] == v {
						at++
					}
				}
				*list, *other = slices.Insert(num, at, sum), den
				i = at
			}
		}
	}
	distribute(&num, &den)
	distribute(&den, &num)
	if !changed {
		return c.Miss("no factor is worth distributing"), nil
	}
	return replace(c, n, mulCanonizer.join(num, den, out), n.Inputs()...)
}

// isSum reports whether a factor of out is a sum with a single use.
func isSum(factor, out *variable) bool {
	inner := stripPadding(factor)
	a, _ := addCanonizer.family(inner)
	return a != nil && usedOnce(factor) && usedOnce(inner) && dtypeOf(inner) == dtypeOf(out)
}

// attemptDistribution multiplies factors into a sum, as far as that saves operations. It returns
// the new sum and the factors that are left.
func attemptDistribution(old *variable, num, den []*variable, out *variable) (sum *variable, restNum, restDen []*variable, ok bool) {
	inner := stripPadding(old)
	if onePlusExp(inner) { // stabilize makes a sigmoid of exp(x)/(1 + exp(x))
		return nil, nil, nil, false
	}
	pos, neg := addCanonizer.terms(inner)
	if len(pos)+len(neg) < 2 || len(pos)+len(neg) > maxDistributed {
		return nil, nil, nil, false
	}
	pairs := make([]pair, 0, len(pos)+len(neg))
	for _, t := range slices.Concat(pos, neg) {
		p := pair{num: []*variable{t}}
		if dtypeOf(t) == dtypeOf(out) { // else it stays in the type in which it is computed
			p.num, p.den = mulCanonizer.terms(t)
		}
		pairs = append(pairs, p)
	}
	changed := false
	try := func(list []*variable, asNum bool) []*variable {
		left := make([]*variable, 0, len(list))
		for _, f := range list {
			if v, ok := uniform(f); ok && v == 1 || special(f) {
				left = append(left, f) // a 1 only makes a numerator; special factors change each term as they change the sum
			} else if better, ok := distributed(pairs, f, asNum, out); ok {
				pairs, changed = better, true
			} else {
				left = append(left, f)
			}
		}
		return left
	}
	num, den = try(num, true), try(den, false)
	if !changed {
		return nil, nil, nil, false
	}
	products := lists.Map(pairs, func(p pair) *variable { return mulCanonizer.join(p.num, p.den, out) })
	return addCanonizer.join(products[:len(pos)], products[len(pos):], out), num, den, true
}

// special reports whether a factor is a constant with an element that is zero or not finite. As a
// divisor of terms it makes NaN where the product is a number: 0/(x + y) is 1/(x/0 + y/0).
func special(f *variable) bool {
	a := tensor.ConstantOf(f)
	if a == nil {
		return false
	}
	for i := range a.Len() {
		if v := a.Float(i); v == 0 || v-v != 0 {
			return true
		}
	}
	return false
}

// distributed multiplies each product by a factor, or divides it, and reports whether that saves
// operations.
func distributed(pairs []pair, f *variable, asNum bool, out *variable) ([]pair, bool) {
	score := 1.0
	if !asNum {
		score = divisionCost
	}
	better := make([]pair, len(pairs))
	for i, p := range pairs {
		num, den := slices.Clone(p.num), slices.Clone(p.den)
		if asNum {
			num = append(num, f)
		} else {
			den = append(den, f)
		}
		num, den = mulCanonizer.simplified(num, den, out)
		better[i] = pair{num, den}
		score += p.cost() - better[i].cost()
	}
	return better, score > 0
}
