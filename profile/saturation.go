package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Saturation is what equality saturation did in a run, or in several that [Merge] adds up. A rule's
// Attempts are the matches that were new in a lap, and its counter "bans" says how often it matched
// too often to be applied.
type Saturation struct {
	Ended   []RuleCount `json:"ended"`   // reasons, with the number of runs
	Nodes   int         `json:"nodes"`   // of the e-graph at the end
	Classes int         `json:"classes"` // of equal ones
	GaveUp  int         `json:"gave_up,omitempty"`

	CostBefore float64 `json:"cost_before"` // of the applies that were admitted
	CostAfter  float64 `json:"cost_after"`

	Match   time.Duration `json:"match_ns"`
	Apply   time.Duration `json:"apply_ns"`
	Rebuild time.Duration `json:"rebuild_ns"`
	Extract time.Duration `json:"extract_ns"`

	Laps []SaturationLap `json:"laps,omitempty"`
}

// A SaturationLap is a round of matching all rules, applying them and finding what has become equal.
type SaturationLap struct {
	Nodes   int           `json:"nodes"` // after it
	Classes int           `json:"classes"`
	Matches int           `json:"matches"`
	Applied int           `json:"applied"` // matches that said something new
	Match   time.Duration `json:"match_ns"`
	Apply   time.Duration `json:"apply_ns"`
	Rebuild time.Duration `json:"rebuild_ns"`
	Banned  []RuleCount   `json:"banned,omitempty"` // rules that matched too often
}

// SetSaturation sets what equality saturation did. The record keeps s.
func (r *Recorder) SetSaturation(s *Saturation) {
	if r != nil {
		r.record.Saturation = s
	}
}

// time returns the time in the phases.
func (l *SaturationLap) time() time.Duration { return l.Match + l.Apply + l.Rebuild }

func (s *Saturation) clone() *Saturation {
	if s == nil {
		return nil
	}
	c := *s
	c.Ended, c.Laps = slices.Clone(s.Ended), slices.Clone(s.Laps)
	for i := range c.Laps {
		c.Laps[i].Banned = slices.Clone(c.Laps[i].Banned)
	}
	return &c
}

// merge adds another run, and returns the sum.
func (s *Saturation) merge(o *Saturation) *Saturation {
	if s == nil || o == nil {
		return cmp.Or(s, o.clone())
	}
	s.Ended = addCounts(s.Ended, o.Ended)
	s.Nodes, s.Classes, s.GaveUp = s.Nodes+o.Nodes, s.Classes+o.Classes, s.GaveUp+o.GaveUp
	s.CostBefore, s.CostAfter = s.CostBefore+o.CostBefore, s.CostAfter+o.CostAfter
	s.Match, s.Apply, s.Rebuild, s.Extract = s.Match+o.Match, s.Apply+o.Apply, s.Rebuild+o.Rebuild, s.Extract+o.Extract
	// A clone: laps that are appended would share their lists with o, and a third run is added to them.
	for i, l := range o.clone().Laps {
		if i == len(s.Laps) {
			s.Laps = append(s.Laps, l)
			continue
		}
		m := &s.Laps[i]
		m.Nodes, m.Classes, m.Matches, m.Applied = m.Nodes+l.Nodes, m.Classes+l.Classes, m.Matches+l.Matches, m.Applied+l.Applied
		m.Match, m.Apply, m.Rebuild = m.Match+l.Match, m.Apply+l.Apply, m.Rebuild+l.Rebuild
		m.Banned = addCounts(m.Banned, l.Banned)
	}
	return s
}

// addCounts adds counts to those of the same names.
func addCounts(list, more []RuleCount) []RuleCount {
	for _, c := range more {
		if i := slices.IndexFunc(list, func(h RuleCount) bool { return h.Name == c.Name }); i >= 0 {
			list[i].Count += c.Count
		} else {
			list = append(list, c)
		}
	}
	return list
}

// saturation writes the block of a saturation.
func (t *textWriter) saturation(r *Record, level int) {
	s, in := r.Saturation, indent(level)
	t.line("%s %s %s", in, r.Class, r.Name)
	in += "   "
	t.line("%stime %s for %d laps, ended by: %s", in, t.sec(r.Time), len(s.Laps), countsText(s.Ended))
	t.line("%snb nodes (start, end) %d %d", in, r.NodesBefore, r.NodesAfter)
	t.line("%stime matching %s, applying %s, rebuilding %s, extraction %s", in, t.sec(s.Match), t.sec(s.Apply), t.sec(s.Rebuild), t.sec(s.Extract))
	t.line("%s%d e-nodes, %d classes", in, s.Nodes, s.Classes)
	t.line("%scost (before, after) %.6g %.6g", in, s.CostBefore, s.CostAfter)
	if s.GaveUp > 0 {
		t.line("%s%d nodes had too many ways to match", in, s.GaveUp)
	}
	t.extra(r, in[1:])
	for i := range s.Laps {
		l := &s.Laps[i]
		fmt.Fprintf(t, "%s%2d - %s %d applied of %d matches - %d e-nodes, %d classes", in, i, t.sec(l.time()), l.Applied, l.Matches, l.Nodes, l.Classes)
		if len(l.Banned) > 0 {
			t.WriteString(" - banned " + countsText(l.Banned))
		}
		t.WriteByte('\n')
	}
	rules := slices.SortedStableFunc(slices.Values(r.Rules), func(a, b RuleRecord) int {
		return cmp.Or(cmp.Compare(b.Applied, a.Applied), cmp.Compare(b.Attempts, a.Attempts))
	})
	if len(rules) > 0 {
		t.line("%stimes applied - matches - name:", in)
	}
	for i := range rules {
		u := &rules[i]
		t.line("%s%d - %d - %s", in, u.Applied, u.Attempts, u.Name)
		t.ruleCounters(u, in)
	}
}

// countsText lists names, with counts unless they are 1.
func countsText(list []RuleCount) string {
	parts := make([]string, len(list))
	for i, c := range list {
		if parts[i] = c.Name; c.Count != 1 {
			parts[i] = fmt.Sprintf("%s (%d)", c.Name, c.Count)
		}
	}
	return strings.Join(parts, ", ")
}
