package rewrite

import "slices"

// tally counts visits, from which it follows how often each rule was asked: a thousand counters
// need not be touched for one apply.
type tally struct {
	visits []int // for each list of rules; nil: nothing is recorded
	stops  map[stop]int
}

// stop is a rule with which visits ended, so that the rules after it in the list were not asked.
type stop struct{ list, rule int }

func (t *tally) visit(l *ruleList) {
	if t.visits != nil {
		t.visits[l.at]++
	}
}

func (t *tally) stop(l *ruleList, rule int) {
	if t.visits != nil {
		t.stops[stop{l.at, rule}]++
	}
}

// attempts returns how often each rule was asked, be it that a sieve excluded it.
func (t *tally) attempts(set *ruleSet) []int {
	counts := make([]int, len(set.rules))
	for at, l := range set.lists {
		for _, i := range l.rules {
			counts[i] += t.visits[at]
		}
	}
	// A visit that ended early asked only the rules up to the one that fired.
	for s, n := range t.stops {
		rules := set.lists[s.list].rules
		at, _ := slices.BinarySearch(rules, s.rule)
		for _, i := range rules[at+1:] {
			counts[i] -= n
		}
	}
	return counts
}
