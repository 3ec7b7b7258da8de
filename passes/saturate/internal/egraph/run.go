package egraph

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Limits bound a saturation. Zero means no limit.
type Limits struct {
	Nodes int           // live nodes
	Laps  int           // rounds of matching and applying
	Time  time.Duration // all of it
}

// Backoff bans rules that match too often. A rule with more than Matches new matches in a lap is
// not applied, and is left out for some laps. Each ban of a rule doubles its bounds. The zero value
// bans nothing.
type Backoff struct {
	Matches int // 1000 is what egg uses
	Laps    int // 5 is what egg uses
}

// Options say how to saturate.
type Options struct {
	Limits  Limits
	Backoff Backoff
	// Done ends the saturation when it returns true. It is asked before each lap, and may be nil.
	Done func(*Graph) bool
}

// runner saturates a graph.
type runner struct {
	g      *Graph
	r      *Rules
	o      Options
	report *Report
	m      *matcher
	a      *applier
	last   []uint32 // by rule: the time up to which it was applied
	seen   []int    // by rule: the classes that its names have been matched with
	until  []int    // by rule: the lap in which its ban ends
	bans   []int
	lap    int
	over   string // the limit that was reached within a lap
}

// Saturate applies rules to the graph until nothing changes or a limit is reached, and reports what
// happened. If it returns an error of ctx, the graph must not be used any more.
func (g *Graph) Saturate(ctx context.Context, r *Rules, o Options) (*Report, error) {
	if r.lang != g.lang || r.ops > g.base {
		return nil, fmt.Errorf("%w: the graph was made before the rules, or over another language", ErrLanguage)
	}
	s := &runner{g: g, r: r, o: o, report: newReport(r), m: newMatcher(g, r), a: newApplier(g, r)}
	n := len(r.rules)
	s.last, s.seen, s.until, s.bans = make([]uint32, n), make([]int, n), make([]int, n), make([]int, n)
	defer g.brake(ctx)()
	if b := g.brakes; o.Limits.Time > 0 {
		defer time.AfterFunc(o.Limits.Time, func() { b.halt.Store(true) }).Stop()
	}
	g.room = min(o.Limits.Nodes, maxRoom)
	g.room += g.room / 8
	if g.inputs == 0 {
		g.inputs = len(g.nodes)
	}
	start := time.Now()
	g.delta.begin(g, r)
	for s.report.Reason == "" && s.settle() {
		// The goal is looked at only here, after the graph has been made congruent: within a lap,
		// classes that are known to be equal may not be united yet.
		if s.report.Reason = s.ends(); s.report.Reason == "" {
			s.round()
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.report.Nodes, s.report.Classes = g.Size()
	s.report.Time = time.Since(start)
	return s.report, nil
}

// maxRoom bounds the nodes for which there is room before they are there.
const maxRoom = 1 << 22

// settle makes the graph congruent and brings index and news up to date, which is not needed after
// the end. It returns false if it is cancelled.
func (s *runner) settle() bool {
	t := time.Now()
	ok := s.g.Rebuild() && s.g.refresh() && (s.over != "" || s.g.delta.advance(s.g))
	s.report.Rebuild += time.Since(t)
	if k := len(s.report.Laps); k > 0 {
		l := &s.report.Laps[k-1]
		l.Rebuild += time.Since(t)
		l.Nodes, l.Classes = s.g.Size()
	}
	return ok
}

// ends returns why there is no further lap, or "".
func (s *runner) ends() string {
	switch {
	case s.o.Done != nil && s.o.Done(s.g):
		return Goal
	case s.over != "":
		return s.over
	case s.quiet():
		return Saturated
	case s.o.Limits.Laps > 0 && s.lap >= s.o.Limits.Laps || s.lap >= maxLaps:
		return LapLimit
	}
	return s.full()
}

// full returns the limit that is reached, except for laps, or "".
func (s *runner) full() string {
	lim, g := &s.o.Limits, s.g
	switch {
	case lim.Nodes > 0 && g.live() >= lim.Nodes:
		return NodeLimit
	case g.halted():
		return TimeLimit
	}
	return ""
}

// maxLaps bounds laps, and so the times of which there is a list.
const maxLaps = 1 << 20

// quiet reports whether a further lap would change nothing. If there are bans, the next to end is
// ended.
func (s *runner) quiet() bool {
	if s.lap == 0 || s.report.Laps[s.lap-1].Changes > 0 {
		return false
	}
	// Nothing has changed, but rules are banned that might change something. Waiting for them in
	// laps without work is a waste, so time jumps to the end of the next ban.
	next := math.MaxInt
	for _, u := range s.until {
		if u > s.lap {
			next = min(next, u)
		}
	}
	if next == math.MaxInt {
		return true
	}
	for i, u := range s.until {
		if u > s.lap {
			s.until[i] = u - (next - s.lap)
		}
	}
	return false
}

// round is a lap: it matches all rules, then applies them.
func (s *runner) round() {
	s.report.Laps = append(s.report.Laps, Lap{})
	l := &s.report.Laps[s.lap]
	t := time.Now()
	// All rules see the same graph, and what they propose is applied afterwards. So what a lap
	// finds does not depend on the order of rules, and no rule keeps others from their turn by
	// making more and more for itself.
	s.match()
	l.Match = time.Since(t)
	s.report.GaveUp = s.m.gaveUp
	// Matching does not change the graph, but takes time and memory.
	s.over = s.full()
	t = time.Now()
	for id := range s.r.rules {
		if s.until[id] > s.lap {
			continue
		}
		l.Matches += s.m.count[id]
		s.report.Rules[id].Matches += s.m.count[id]
		// A rule that is banned is not applied to any of its matches. Applying the matches that fit
		// its bound would favour old nodes, and mark the others as seen.
		if s.m.over[id] {
			s.ban(id)
			l.Banned = append(l.Banned, id)
		} else if s.over == "" {
			l.Changes += s.apply(id)
		}
	}
	l.Apply = time.Since(t)
	s.report.Match += l.Match
	s.report.Apply += l.Apply
	s.lap++
}

// ban leaves a rule out.
func (s *runner) ban(id int) {
	s.until[id] = s.lap + 1 + s.o.Backoff.Laps<<min(s.bans[id], 20)
	s.bans[id]++
	s.report.Rules[id].Bans++
}

// match finds the new matches of the rules that are not banned. Cases of a symbol that look at the
// same nodes do so together.
func (s *runner) match() {
	m := s.m
	m.begin()
	for id := range s.r.rules {
		m.limit[id] = math.MaxInt
		if b := s.o.Backoff; b.Matches > 0 {
			m.limit[id] = b.Matches << min(s.bans[id], 30)
		}
	}
	active := func(c *caseInfo) bool { return s.until[c.rule] <= s.lap && !m.over[c.rule] }
	done := make([]bool, len(s.r.cases))
	for sym, p := range s.r.roots {
		if p == nil {
			continue
		}
		for _, id := range p.cases {
			c := &s.r.cases[id]
			if done[id] || !active(c) {
				continue
			}
			ok := m.symbol(Symbol(sym), c.log, s.last[c.rule], func(k int) bool {
				o := &s.r.cases[k]
				// Cases that start from the same log and time are matched in one walk over the
				// program of their symbol. Without bans these are all cases with the same log.
				same := active(o) && o.log == c.log && s.last[o.rule] == s.last[c.rule]
				done[k] = done[k] || same
				return same
			})
			if !ok {
				return
			}
		}
	}
	for _, id := range s.r.bare {
		if c := &s.r.cases[id]; active(c) {
			m.bareNames(id, s.seen[c.rule])
		}
	}
}

// apply applies a rule to its matches, and returns how often that changed the graph.
func (s *runner) apply(id int) int {
	g := s.g
	nodes := s.o.Limits.Nodes
	changes, tried := 0, 0
	for _, c := range s.r.rules[id].cases {
		stride := s.m.strides[c]
		for list := s.m.out[c]; len(list) > 0; list = list[stride:] {
			if tried++; tried%64 == 0 || nodes > 0 && g.live() >= nodes {
				// The limit of nodes is exact. Memory and time are looked at less often, because
				// that takes longer than applying a match.
				if s.over = s.full(); s.over != "" {
					break
				}
			}
			if s.a.apply(c, list[:stride]) {
				changes++
			}
		}
	}
	s.report.Rules[id].Applied += changes
	// What this lap makes has the next time. A rule that is banned keeps its time, and sees later
	// all that it has missed.
	s.last[id] = g.delta.now - 1
	s.seen[id] = len(g.delta.heights) // the classes of the last advance
	return changes
}
