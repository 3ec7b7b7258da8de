package saturate

import (
	"github.com/nnopt/nnopt/profile"
)

// record reports what happened.
func (s *run) record(after float64) {
	rec := s.h.Recorder()
	if !rec.Enabled() {
		return
	}
	r := s.report
	for _, rule := range r.Rules {
		if rule.Matches == 0 {
			continue
		}
		u := profile.RuleRecord{Name: rule.Name, Attempts: rule.Matches, Applied: rule.Applied}
		if rule.Bans > 0 {
			u.Counters = []profile.Counter{{Name: "bans", Value: float64(rule.Bans)}}
		}
		rec.AddRule(u)
	}
	sum := &profile.Saturation{
		Ended: []profile.RuleCount{{Name: r.Reason, Count: 1}}, Nodes: r.Nodes, Classes: r.Classes, GaveUp: r.GaveUp,
		CostBefore: s.in.cost, CostAfter: after, Match: r.Match, Apply: r.Apply, Rebuild: r.Rebuild, Extract: s.extract,
	}
	for _, l := range r.Laps {
		lap := profile.SaturationLap{
			Nodes: l.Nodes, Classes: l.Classes, Matches: l.Matches, Applied: l.Changes, Match: l.Match, Apply: l.Apply, Rebuild: l.Rebuild,
		}
		for _, id := range l.Banned {
			lap.Banned = append(lap.Banned, profile.RuleCount{Name: r.Rules[id].Name, Count: 1})
		}
		sum.Laps = append(sum.Laps, lap)
	}
	rec.SetSaturation(sum)
	if s.b.refused > 0 {
		rec.Count("other_types", float64(s.b.refused), "")
	}
}
