package rewrite

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// asker finds the rules to ask about an apply, in one run. Others would propose nothing: inputs of
// the apply don't meet their needs, or a sieve excludes them.
type asker struct {
	dispatch
	*memory
	g      *fgraph.FunctionGraph
	frozen bool   // the driver has frozen the graph
	all    bool   // ask all rules that track the op
	kinds  []kind // nil as long as nothing is sifted
	sifts  []Sift // by kind, once something was sifted
	found  []int
	ask    []int
}

// newAsker returns the asker of a run. frozen tells that the driver has frozen the graph.
func newAsker(set *ruleSet, opts *Options, g *fgraph.FunctionGraph, frozen bool) asker {
	a := asker{dispatch: dispatch{ruleSet: set}, memory: set.memory(), g: g, frozen: frozen}
	a.all = opts != nil && (opts.AskAll || opts.WhyNot != nil)
	if !a.all {
		a.kinds = a.siever.get(a.ruleSet, 0)
	}
	return a
}

// factsOf returns what is known about the op of an apply.
func (a *asker) factsOf(n *fgraph.Apply) facts {
	if n.Graph() != a.g { // it is part of a proposal
		return a.of(n.Op())
	}
	// Equal ops have one number in a graph, so what is known about an op is found in a slice,
	// without hashing the op again at each of its applies.
	at := a.g.OpNumber(n)
	if at >= len(a.facts) {
		a.facts = append(a.facts, make([]facts, at+1-len(a.facts)+max(32, len(a.facts)/4))...)
	}
	f := &a.facts[at]
	if f.list == nil {
		*f = a.of(n.Op())
	}
	return *f
}

// signsOf returns what the inputs of an apply may be.
func (a *asker) signsOf(n *fgraph.Apply) sign {
	inputs := n.Inputs()
	// Too many to look at, or none to look at: unknown meets every need, so every rule is asked.
	if len(inputs) == 0 || len(inputs) > maxSeen {
		return unknown
	}
	s := anything | count(len(inputs))
	if len(inputs) > 2 || len(inputs) == 2 && (inputs[0] == inputs[1]) {
		s |= same // or it may be
	}
	for _, v := range inputs {
		switch {
		case v == nil:
		case v.Owner() != nil:
			if s |= a.factsOf(v.Owner()).sign; s&through != 0 && s&number == 0 && a.seesConstant(v.Owner()) {
				s |= number
			}
		case v.IsConstant():
			if s&constant != 0 {
				s |= same // or it may be
			}
			s |= constant | number
		}
	}
	return s
}

// seesConstant reports whether an input of an apply is a constant, or is computed by an op that is
// seen through.
func (a *asker) seesConstant(n *fgraph.Apply) bool {
	return slices.ContainsFunc(n.Inputs(), func(v *fgraph.Variable) bool {
		return v != nil && (v.IsConstant() || v.Owner() != nil && a.factsOf(v.Owner()).sign&through != 0)
	})
}

// rulesFor returns the list of rules that track the op of n, and those of them that have to be
// asked, in order. The latter is valid until the next call.
func (a *asker) rulesFor(n *fgraph.Apply) (*ruleList, []int) {
	l := a.factsOf(n).list
	if a.all || !l.selects {
		return l, l.rules
	}
	// Two filters, each cheaper than what it saves. Needs compare bits of what the inputs are with
	// bits that a rule needs, and leave few rules in nearly all graphs. The sieve, which follows
	// paths of patterns, is asked only where more than a few are left, or where looking at the
	// needs of very many rules one by one would cost more.
	s := a.signsOf(n)
	many := a.kinds != nil && len(l.prospects)-len(l.plain) > maxListed
	if !many {
		hopeful := a.meet(l.prospects, s)
		if hopeful > 0 && a.kinds == nil {
			// Attempts that a sieve might have saved are counted, and it is made when they have
			// cost as much as making it.
			a.kinds = a.siever.get(a.ruleSet, hopeful)
			return l, a.ask
		}
		if hopeful <= maxAsked {
			return l, a.ask
		}
	}
	if a.meet(l.plain, s); many && l.hopes&s == 0 {
		return l, a.ask
	}
	if !a.sift(n) {
		a.all = true
		return l, l.rules
	}
	// A sieve knows neither which rules track this op, nor all that they need.
	for _, i := range a.found {
		if at, tracked := slices.BinarySearch(l.rules, i); tracked && l.prospects[at].meets(s) {
			a.ask = append(a.ask, i)
		}
	}
	slices.Sort(a.ask)
	a.ask = slices.Compact(a.ask)
	return l, a.ask
}

// meet sets a.ask to the rules whose needs are met, and returns how many of them are sifted.
func (a *asker) meet(prospects []prospect, s sign) (hopeful int) {
	a.ask = a.ask[:0]
	for i := range prospects {
		if p := &prospects[i]; p.meets(s) {
			a.ask = append(a.ask, p.rule)
			if p.sifted {
				hopeful++
			}
		}
	}
	return hopeful
}

// sift sets a.found to the rules that the sieves leave. It returns false if a sieve panics or tries
// to change the graph. Its rules are asked then, and the driver can tell which of them is to blame.
func (a *asker) sift(n *fgraph.Apply) (ok bool) {
	if !a.frozen {
		a.g.Freeze()
	}
	// A sieve runs code of rules: comparisons of ops and numbers. If that panics, the rules are
	// asked one by one, so that the error names the one to blame and not the sieve.
	defer func() {
		if !ok {
			_ = recover()
		}
		if !a.frozen && a.g.Thaw() {
			ok = false
		}
	}()
	if a.sifts == nil {
		a.sifts = make([]Sift, len(a.kinds))
		for i, k := range a.kinds {
			if k.begin != nil {
				a.sifts[i] = k.begin()
			}
		}
	}
	a.found = a.found[:0]
	for i, sift := range a.sifts {
		rules := a.kinds[i].rules
		if sift == nil {
			a.found = append(a.found, rules...)
			continue
		}
		from := len(a.found)
		a.found = sift(n, a.found)
		for j, at := range a.found[from:] {
			a.found[from+j] = rules[at]
		}
	}
	return true
}
