package rewrite

import "fmt"

// DefaultMaxUse is how often a rule may fire in one run of a driver that says
// nothing else, as a multiple of the number of applies. It is Theano's.
const DefaultMaxUse = 8

// limit ends a run in which rules undo each other. Near the end it keeps a log of
// what fires, so that it can show what goes round.
type limit struct {
	ratio  float64
	start  int // applies when the run began
	nodes  int
	most   int // a rule that fired more often is stopped
	events []Event
}

// logLength is how many events are kept: laps of up to half that length are
// recognised.
const logLength = 64

func newLimit(opts *Options, own float64, nodes int) *limit {
	l := &limit{ratio: own}
	if l.ratio == 0 {
		l.ratio = opts.MaxUse
	}
	if l.ratio == 0 {
		l.ratio = DefaultMaxUse
	}
	l.start = max(nodes, 1)
	l.raise(nodes)
	return l
}

// mostGrowth bounds how much the growth of a graph raises the limit. Rules that
// double the graph in every pass would otherwise never get there.
const mostGrowth = 8

// raise adapts the limit to a graph that has grown.
func (l *limit) raise(nodes int) {
	if nodes = min(max(nodes, 1), mostGrowth*l.start); nodes > l.nodes {
		l.nodes = nodes
		l.most = int(min(l.ratio*float64(nodes), 1<<40))
	}
}

// logs reports whether the next event of r is to be kept.
func (l *limit) logs(r *ruleState) bool { return len(l.events) > 0 || r.applied >= l.most-logLength }

func (l *limit) log(ev Event) {
	if ev.Rule == "" {
		return
	}
	if len(l.events) == 2*logLength {
		copy(l.events, l.events[logLength:])
		l.events = l.events[:logLength]
	}
	ev.Apply, ev.Pairs = nil, nil
	l.events = append(l.events, ev)
}

// logMember notes that a graph rewriter changed the graph, if rules are noted. It
// may be what undoes them.
func (l *limit) logMember(name string, before, after int) {
	if len(l.events) > 0 {
		l.log(Event{Rule: name, Before: fmt.Sprintf("graph of %d applies", before), After: fmt.Sprintf("of %d", after)})
	}
}

// exceeded returns a [MaxUseError] if r fired too often.
func (l *limit) exceeded(r *ruleState) error {
	if r.applied <= l.most {
		return nil
	}
	err := &MaxUseError{Rule: r.name, Uses: r.applied, Nodes: l.nodes, MaxUse: l.ratio}
	err.Lap, err.Repeats = lap(l.events)
	return err
}

// lap returns the shortest sequence that events end with twice in a row.
func lap(events []Event) ([]Event, bool) {
	same := func(a, b Event) bool { return a.Rule == b.Rule && a.Before == b.Before && a.After == b.After }
	alike := func(a, b Event) bool { return a.Rule == b.Rule }
	for _, equal := range []func(a, b Event) bool{same, alike} {
		for n := 1; 2*n <= len(events); n++ {
			last, before := events[len(events)-n:], events[len(events)-2*n:len(events)-n]
			repeats := true
			for i := range last {
				if !equal(last[i], before[i]) {
					repeats = false
					break
				}
			}
			if repeats {
				return last, true
			}
		}
	}
	const few = 8
	return events[max(0, len(events)-few):], false
}
