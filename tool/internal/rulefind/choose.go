package rulefind

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/nnopt/nnopt/pattern"
)

// picks is how many candidates become rules before the others are asked whether they follow.
const picks = 16

// tail is the part of the candidates of which a set of few has no rules for those that follow by cases.
const tail = 8

// maxAlone bounds the candidates that are asked about one by one, each of which takes 20 ms.
const maxAlone = 2000

// choose finds rules from which candidates follow. To check a rule takes a hundred times as long as to derive a
// candidate, so the rules of which most candidates are instances come first, and each time some are found, all
// candidates are asked again.
func (s *search) choose(ctx context.Context, list []*candidate) (err error) {
	for left, how := list, manyPairs; ; {
		if left, err = underived(ctx, s.d, how, s.rules, left); err != nil {
			return err
		}
		if s.o.Rules > 0 && tail*len(left) <= len(list) {
			if left, err = s.uncased(ctx, s.rules, left); err != nil {
				return err
			}
		}
		s.o.Progress(fmt.Sprintf("round %d: %d rules, %d candidates left of %d, %d checked, %d refuted", s.result.Rounds, len(s.result.Found), len(left), len(list), s.result.Checked, s.result.Refuted))
		switch {
		case s.late():
			return nil
		case len(left) == 0 && (how.Nodes == onePair.Nodes || len(list) > maxAlone):
			return nil
		case len(left) == 0:
			// Of many pairs together some follow only because terms of others are there.
			left, how = slices.DeleteFunc(slices.Clone(list), s.refuted), onePair
			continue
		case s.full():
			return nil
		}
		if left, err = s.pick(ctx, left); err != nil {
			return err
		}
	}
}

// full reports whether there are as many rules as there may be.
func (s *search) full() bool { return s.most > 0 && len(s.result.Found) >= s.most }

// pick makes rules of some candidates, and returns the others, without those that follow from these rules.
func (s *search) pick(ctx context.Context, left []*candidate) ([]*candidate, error) {
	n, window, part := picks, 256, 4
	if s.o.Rules > 0 {
		// Where there may be few rules, none goes to a small candidate that has few instances.
		n, window, part = min(n, s.most-len(s.result.Found)), 1024, 2
	}
	done := make(map[*candidate]bool)
	rules := slices.Clone(s.rules)
	var chosen []*candidate
	g := s.newGains(left, window)
	for len(chosen) < n && !s.late() {
		c := g.best(part)
		if c == nil {
			break
		}
		done[c] = true
		ok, err := s.choice(ctx, c, rules)
		if err != nil {
			return nil, err
		}
		if ok {
			rules, chosen = append(rules, c.rule), append(chosen, c)
			g.cover(c)
		}
	}
	chosen, err := independent(ctx, s, s.rules, chosen, func(c *candidate) theorem { return c.theorem })
	if err == nil {
		_, err = s.accept(ctx, chosen)
	}
	// What followed from one that is refuted is still among those that are left.
	return slices.DeleteFunc(left, func(c *candidate) bool { return done[c] || s.refuted(c) }), err
}

// reduce drops rules that follow from others, large and dear ones first.
func (s *search) reduce(ctx context.Context) error {
	slices.SortStableFunc(s.result.Found, func(a, b Found) int { return cmp.Or(a.weight-b.weight, cmp.Compare(a.cost, b.cost)) })
	least, err := independent(ctx, s, s.given, slices.Clone(s.result.Found), func(f Found) theorem { return f.theorem })
	if err != nil {
		return err
	}
	s.result.Found = least
	s.rules = slices.Clone(s.given)
	for _, f := range least {
		s.rules = append(s.rules, f.rule)
	}
	return nil
}

// share counts the candidates that the rules derive, or estimates from some that are drawn, together or else alone. Of
// those that they do not, some are wrong, which more values than those that tell terms apart show.
func (s *search) share(ctx context.Context, list []*candidate) error {
	list = slices.DeleteFunc(slices.Clone(list), s.refuted)
	total := weigh(list)
	some := s.sample(list, 0, maxAlone)
	each := total / max(weigh(some), 1)
	left, err := underived(ctx, s.d, manyPairs, s.rules, some)
	if err != nil {
		return err
	}
	if left, err = underived(ctx, s.d, onePair, s.rules, left); err != nil {
		return err
	}
	left = slices.DeleteFunc(left, func(c *candidate) bool { return c.same })
	saturated := weigh(left)
	if left, err = s.uncased(ctx, s.rules, left); err != nil {
		return err
	}
	s.result.ByCases = int(float64(each * (saturated - weigh(left))))
	s.result.Derived = int(total - float64(each*weigh(left)))
	s.result.Candidates = int(total - float64(each*weigh(slices.DeleteFunc(left, func(c *candidate) bool { return s.plausible(ctx, c) }))))
	s.result.Drawn = len(some) < len(list) || total > float64(len(list))
	return nil
}

func weigh(list []*candidate) (n float64) {
	for _, c := range list {
		n += c.weight
	}
	return n
}

// gains say which candidates are instances of which.
type gains struct {
	list   []*candidate
	covers [][]int32
	gone   []bool
	taken  []bool
}

// newGains compares the first of a list, a window of them, with all of it.
func (s *search) newGains(list []*candidate, window int) *gains {
	g := &gains{list: list, gone: make([]bool, len(list)), taken: make([]bool, min(len(list), window))}
	roots := make(map[string][]int32)
	for i, c := range list {
		op := root(c.rewrite.In.Expr)
		roots[op] = append(roots[op], int32(i))
	}
	for _, c := range list[:len(g.taken)] {
		var covers []int32
		for _, i := range roots[root(c.rewrite.In.Expr)] {
			if c == list[i] || s.instance(c, list[i]) {
				covers = append(covers, i)
			}
		}
		g.covers = append(g.covers, covers)
	}
	return g
}

func root(e pattern.Expr) string {
	if c, ok := e.(*pattern.Call); ok {
		return c.Op
	}
	return ""
}

// best takes the first of the candidates, which is the smallest, of which a part as many are instances that no other
// one covers as of any.
func (g *gains) best(part int) *candidate {
	left, most := make([]int, len(g.covers)), 0
	for k, covers := range g.covers {
		if g.taken[k] {
			continue
		}
		for _, i := range covers {
			if !g.gone[i] {
				left[k]++
			}
		}
		most = max(most, left[k])
	}
	if most == 0 {
		return nil
	}
	k := slices.IndexFunc(left, func(n int) bool { return part*n >= most })
	g.taken[k] = true
	return g.list[k]
}

// cover marks the instances of a candidate.
func (g *gains) cover(c *candidate) {
	for _, i := range g.covers[slices.Index(g.list, c)] {
		g.gone[i] = true
	}
}

// instance reports whether the left side of d is one of the left sides of c, with terms for variables.
func (s *search) instance(c, d *candidate) bool {
	bound := make(map[pattern.Name]pattern.Expr, len(c.vars))
	if !s.matches(c.rewrite.In.Expr, d.rewrite.In.Expr, bound) {
		return false
	}
	// Where a guard asks for a variable, one is known to satisfy it only if it has the same guard.
	for i := range c.vars {
		name, ok := bound[pattern.Name(c.name(i))].(pattern.Name)
		if ok && c.guarded>>i&1 == 1 && !d.isGuarded(name) {
			return false
		}
	}
	return true
}

func (c *candidate) isGuarded(name pattern.Name) bool {
	for i := range c.vars {
		if c.name(i) == string(name) {
			return c.guarded>>i&1 == 1
		}
	}
	return false
}

// matches matches a pattern with an expression.
func (s *search) matches(p, e pattern.Expr, bound map[pattern.Name]pattern.Expr) bool {
	switch p := p.(type) {
	case pattern.Name:
		if old := bound[p]; old != nil {
			return same(old, e)
		}
		bound[p] = e
		return true
	case *pattern.Call:
		call, ok := e.(*pattern.Call)
		if !ok || call.Op != p.Op || len(call.Args) != len(p.Args) {
			return false
		}
		trial := maps.Clone(bound)
		if s.matchArgs(p.Args, call.Args, trial) {
			maps.Copy(bound, trial)
			return true
		}
		return len(p.Args) == 2 && s.space.commutes[p.Op] && s.matchArgs(p.Args, []pattern.Expr{call.Args[1], call.Args[0]}, bound)
	}
	return p == e
}

func (s *search) matchArgs(p, e []pattern.Expr, bound map[pattern.Name]pattern.Expr) bool {
	for i, a := range p {
		if !s.matches(a, e[i], bound) {
			return false
		}
	}
	return true
}

// same reports whether expressions are the same.
func same(a, b pattern.Expr) bool {
	x, ok := a.(*pattern.Call)
	y, too := b.(*pattern.Call)
	if !ok || !too {
		return a == b
	}
	return x == y || x.Op == y.Op && slices.EqualFunc(x.Args, y.Args, same)
}
