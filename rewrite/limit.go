package rewrite

import (
	"cmp"
	"fmt"
	"slices"
)

// defaultMaxUse is Theano's default of [Equilibrium.MaxUse].
const defaultMaxUse = 8

// limit ends a run in which rules undo each other, or make the graph larger and larger. Shortly before,
// it starts a log of events, to show the cycle.
type limit struct {
	ratio  float64
	start  int // applies when the run began
	nodes  int
	most   int // how often a rule may fire
	events []logged
}

// logged is an event, and the number of applies of the graph after it.
type logged struct {
	Event
	nodes int
}

// logLength is the length of the log. Cycles of up to half that length are recognized.
const logLength = 64

func newLimit(opts *Options, own float64, nodes int) *limit {
	l := &limit{ratio: cmp.Or(own, opts.MaxUse, defaultMaxUse), start: max(nodes, 1)}
	l.raise(nodes)
	return l
}

// maxGrowth bounds how far a growing graph raises the limit. Without it, rules that double the
// graph in every pass would never reach the limit.
const maxGrowth = 8

// raise adapts the limit to a graph that has grown.
func (l *limit) raise(nodes int) {
	if nodes = min(max(nodes, 1), maxGrowth*l.start); nodes > l.nodes {
		l.nodes = nodes
		l.most = int(min(l.ratio*float64(nodes), 1<<40))
	}
}

// logs reports whether to log the next event of r.
func (l *limit) logs(r *ruleState) bool { return len(l.events) > 0 || r.applied >= l.most-logLength }

func (l *limit) log(ev Event, nodes int) {
	if ev.Rule == "" {
		return
	}
	// The older half is dropped, so that at least logLength events are there whenever the limit is
	// reached.
	if len(l.events) == 2*logLength {
		copy(l.events, l.events[logLength:])
		l.events = l.events[:logLength]
	}
	// The text is enough, and the log must not keep applies alive.
	ev.Apply, ev.Pairs = nil, nil
	l.events = append(l.events, logged{ev, nodes})
}

// logMember logs that a graph rewriter changed the graph, which may be part of the cycle.
func (l *limit) logMember(name string, before, after int) {
	if len(l.events) > 0 {
		l.log(Event{Rule: name, Before: fmt.Sprintf("graph of %d applies", before), After: fmt.Sprintf("of %d", after)}, after)
	}
}

// exceeded returns a [MaxUseError] if a rule fired too often, or nil.
func (l *limit) exceeded(rule, place string, r *ruleState) error {
	if r.applied <= l.most {
		return nil
	}
	err := &MaxUseError{Rule: rule, place: place, uses: r.applied, nodes: l.nodes, MaxUse: l.ratio}
	err.show(l.events)
	return err
}

// show sets what the error says about the last events.
func (e *MaxUseError) show(events []logged) {
	n, repeats := lap(events)
	at := len(events) - n
	if e.Repeats = repeats; repeats {
		e.grown = max(0, events[len(events)-1].nodes-events[at-1].nodes)
	}
	// Terms that have grown for long look alike, because few of their levels are shown. The first round has
	// the smallest ones.
	for e.grown > 0 && at >= n && slices.EqualFunc(events[at-n:at], events[len(events)-n:], sameRule) {
		at -= n
	}
	for _, ev := range events[at : at+n] {
		e.Lap = append(e.Lap, ev.Event)
	}
}

// sameRule reports whether events are of one rule.
func sameRule(a, b logged) bool { return a.Rule == b.Rule }

// lap returns the length of the shortest sequence that occurs twice at the end of events, and true; or else
// that of the last few events.
func lap(events []logged) (n int, repeats bool) {
	same := func(a, b logged) bool {
		return a.Rule == b.Rule && a.Before == b.Before && a.After == b.After && a.nodes == b.nodes
	}
	// First look for a cycle whose graphs repeat, the proof that rules undo each other; then for
	// one of the same rules on a graph that grows. Its texts may repeat, too, because they show three
	// levels of applies only, so the size of the graph tells.
	for _, equal := range []func(a, b logged) bool{same, sameRule} {
		for n := 1; 2*n <= len(events); n++ {
			last, before := events[len(events)-n:], events[len(events)-2*n:len(events)-n]
			if slices.EqualFunc(last, before, equal) {
				return n, true
			}
		}
	}
	const few = 8
	return min(few, len(events)), false
}
