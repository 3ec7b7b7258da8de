package pattern

import "github.com/nnopt/nnopt/rewrite"

// CountedSift returns a function that sifts rules, and one that returns how many steps it has made.
func CountedSift(rules []rewrite.NodeRewriter) (sift rewrite.Sift, steps func() int) {
	t := rules[0].(*Substitution).sieve(rules)
	s := &sifting{sieve: t, found: make([]int32, len(t.knots))}
	return s.sift, func() int { return s.total }
}
