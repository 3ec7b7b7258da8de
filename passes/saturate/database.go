package saturate

import (
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// A DB holds rules that are text, see package pattern, or groups of them. Instead of replacing, it
// collects what all of them say about a graph, and takes the cheapest form, see [Pass]. Rules that
// are Go functions can't be registered. Its other methods are those of [optdb.DB].
type DB struct{ *optdb.DB }

// NewDB returns an empty database.
func NewDB(name string) *DB { return &DB{optdb.New(name, driver{})} }

// Configure sets the limits, those of settings.
func (d *DB) Configure(settings Pass) *DB {
	d.SetDriver(driver{settings})
	return d
}

// Register adds a rule that is text, or a group of them. To register any other rule, or a group
// with documentation, use Add.
func (d *DB) Register(name string, ruleOrGroup any, tags ...string) error {
	return d.Add(optdb.Entry{Name: name, Rewriter: ruleOrGroup, Tags: tags})
}

// A driver makes a pass with its settings.
type driver struct{ pass Pass }

// Kind says that rules are shared: most are also those of an equilibrium, and who names one there
// does not ask for saturation.
func (driver) Kind() optdb.Kind {
	return optdb.Kind{Name: "SaturationDB", Class: profile.ClassSaturation, Rules: true, Shared: true, CheckRule: Check}
}

func (d driver) Compile(rules []rewrite.NodeRewriter) (optdb.Driver, error) {
	p := d.pass.With(rules)
	return driver{p}, p.Prepare()
}

func (d driver) Build(s optdb.Selection) rewrite.GraphRewriter {
	p := d.pass
	if len(s.Rules) < len(p.Rules) { // otherwise they are compiled
		p = p.With(s.Rules)
		_ = p.Prepare() // as part of all rules, they are right
	}
	p.Name = s.Name
	return &p
}

func (d driver) Settings() []rewrite.Setting { return d.pass.Settings() }

func (d driver) Configured(name, value string) (rewrite.Configurable, error) {
	c, err := d.pass.Configured(name, value)
	if err != nil {
		return nil, err
	}
	return driver{*c.(*Pass)}, nil
}

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
