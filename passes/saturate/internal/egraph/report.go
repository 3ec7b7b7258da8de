package egraph

import (
	"fmt"
	"strings"
	"time"
)

// Why a saturation ends.
const (
	Saturated = "saturated" // the rules have nothing more to say
	Goal      = "goal"      // Options.Done
	NodeLimit = "nodes"
	LapLimit  = "laps"
	TimeLimit = "time"
)

// A Report says what happened in a saturation.
type Report struct {
	Reason                      string // one of the constants above
	Laps                        []Lap
	Rules                       []RuleReport // in order
	Nodes, Classes              int
	GaveUp                      int // roots with too many ways to match
	Match, Apply, Rebuild, Time time.Duration
}

// A Lap is a round of matching and applying.
type Lap struct {
	Nodes, Classes        int // after it
	Matches, Changes      int
	Match, Apply, Rebuild time.Duration
	Banned                []int // numbers of rules that matched too often
}

// A RuleReport says what a rule did.
type RuleReport struct {
	Name    string
	Matches int // new matches, also those that were dropped by a ban
	Applied int // matches that changed the graph
	Bans    int
}

func newReport(r *Rules) *Report {
	p := &Report{Rules: make([]RuleReport, len(r.rules))}
	for i := range r.rules {
		p.Rules[i].Name = r.rules[i].name
	}
	return p
}

// String returns the report as a table, without rules that did not match.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ended: %s; %d laps, %d nodes, %d classes; %v: %v matching, %v applying, %v rebuilding\n",
		r.Reason, len(r.Laps), r.Nodes, r.Classes, r.Time.Round(time.Microsecond), r.Match.Round(time.Microsecond), r.Apply.Round(time.Microsecond), r.Rebuild.Round(time.Microsecond))
	b.WriteString("     lap    nodes  classes  matches  changes\n")
	for i, l := range r.Laps {
		fmt.Fprintf(&b, "%8d %8d %8d %8d %8d\n", i+1, l.Nodes, l.Classes, l.Matches, l.Changes)
	}
	b.WriteString(" matches  applied  bans  rule\n")
	for _, u := range r.Rules {
		if u.Matches > 0 {
			fmt.Fprintf(&b, "%8d %8d %5d  %s\n", u.Matches, u.Applied, u.Bans, u.Name)
		}
	}
	return b.String()
}
