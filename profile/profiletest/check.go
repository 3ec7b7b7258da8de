// Package profiletest checks the arithmetic of profiles, for tests of what records them.
package profiletest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nnopt/nnopt/profile"
)

// ErrInconsistent is the error that errors of [Check] wrap.
var ErrInconsistent = errors.New("profile: inconsistent record")

// Check checks the arithmetic of a record and its descendants: the counts of the
// passes add up to the applications of the rules, children and passes take no
// longer than their rewriter, no rule fired more often than it was tried, and no
// figure is negative. It returns all faults together. Each wraps [ErrInconsistent]
// and begins with the path of the record.
func Check(r *profile.Record) error {
	var faults []error
	var path []string
	for depth, c := range r.All() {
		path = append(path[:depth], "/"+c.Name)
		for _, f := range faultsOf(c) {
			faults = append(faults, fmt.Errorf("%w: %s: %s", ErrInconsistent, strings.Join(path, ""), f))
		}
	}
	return errors.Join(faults...)
}

func faultsOf(r *profile.Record) []string {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	children, own := time.Duration(0), r.Prepare
	for _, c := range r.Children {
		children += c.Time
		own -= c.Prepare
	}
	for _, p := range []struct {
		what string
		d    time.Duration
	}{
		{"validation", r.Validate}, {"callbacks", r.Callback}, {"sorting", r.Toposort}, {"the walk", r.Loop}, {"making rules", r.Prepare},
		{"passes", inPasses(r)}, {"children", children}, {"children and making rules outside of them", children + own},
	} {
		// Each of these is within the run. Their sum may be longer than it: validation and callbacks of
		// children are in the time of the children, and here once more.
		if p.d < 0 || p.d > r.Time {
			fault("%v in %s of %v in all", p.d, p.what, r.Time)
		}
	}
	if r.Time < 0 || r.NodesBefore < 0 || r.NodesAfter < 0 || r.Changed < 0 {
		fault("negative figure")
	}
	if r.NodesMax < r.NodesBefore || r.NodesMax < r.NodesAfter {
		fault("at most %d nodes, but %d before and %d after", r.NodesMax, r.NodesBefore, r.NodesAfter)
	}
	for i := range r.Rules {
		u := &r.Rules[i]
		if u.Time < 0 || u.Attempts < 0 || u.Applied < 0 || u.Refused < 0 || u.Created < 0 {
			fault("rule %s: negative figure", u.Name)
		}
		if u.Attempts > 0 && !u.Global && u.Applied+u.Refused > u.Attempts {
			fault("rule %s: %d applied and %d refused of %d attempts", u.Name, u.Applied, u.Refused, u.Attempts)
		}
	}
	return slices.Concat(faults, passFaults(r), saturationFaults(r))
}

// passFaults checks the passes of an equilibrium against its rules.
func passFaults(r *profile.Record) []string {
	if len(r.Passes) == 0 {
		return nil
	}
	var faults []string
	counts := make(map[string]int, len(r.Rules))
	for i := range r.Passes {
		p := &r.Passes[i]
		sum := 0
		for _, c := range p.Rules {
			counts[c.Name] += c.Count
			sum += c.Count
		}
		if sum != p.Applied {
			faults = append(faults, fmt.Sprintf("pass %d: %d applied, but its rules count %d", i, p.Applied, sum))
		}
		if p.Nodes > r.NodesMax {
			faults = append(faults, fmt.Sprintf("pass %d: %d nodes, but at most %d", i, p.Nodes, r.NodesMax))
		}
		if p.Global < 0 || p.Toposort < 0 || p.Global+p.Toposort > p.Time {
			faults = append(faults, fmt.Sprintf("pass %d: %v in graph rewriters and %v in sorting of %v",
				i, p.Global, p.Toposort, p.Time))
		}
	}
	// The passes say how often each rule fired, and the rules say it for all passes together.
	for i := range r.Rules {
		u := &r.Rules[i]
		if counts[u.Name] != u.Applied {
			faults = append(faults, fmt.Sprintf("rule %s: %d applied, but the passes count %d", u.Name, u.Applied, counts[u.Name]))
		}
		delete(counts, u.Name)
	}
	// What is left belongs to rules that the record does not list. The passes are walked once more, not the
	// map, so that the faults have the same order in each run.
	for i := range r.Passes {
		for _, c := range r.Passes[i].Rules {
			if counts[c.Name] != 0 {
				faults = append(faults, fmt.Sprintf("rule %s: counted by passes, but not among the rules", c.Name))
				delete(counts, c.Name)
			}
		}
	}
	return faults
}

// inPasses returns the time in passes.
func inPasses(r *profile.Record) (sum time.Duration) {
	for i := range r.Passes {
		sum += r.Passes[i].Time
	}
	return sum
}

// saturationFaults checks the figures of a saturation.
func saturationFaults(r *profile.Record) []string {
	s := r.Saturation
	if s == nil {
		return nil
	}
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if d := s.Match + s.Apply + s.Rebuild + s.Extract; d < 0 || d > r.Time {
		fault("%v in saturation of %v in all", d, r.Time)
	}
	// The costs are compared so that NaN is a fault, too.
	if s.Nodes < 0 || s.Classes < 0 || s.GaveUp < 0 || !(s.CostBefore >= 0) || !(s.CostAfter >= 0) {
		fault("saturation: negative figure")
	}
	// Extraction starts with what was there before, so it never returns anything dearer.
	if s.CostAfter > s.CostBefore {
		fault("saturation: it costs %v before, and %v after", s.CostBefore, s.CostAfter)
	}
	matches, applied := 0, 0
	for i := range s.Laps {
		l := &s.Laps[i]
		matches, applied = matches+l.Matches, applied+l.Applied
		if l.Nodes < 0 || l.Classes < 0 || l.Matches < 0 || l.Applied < 0 || l.Applied > l.Matches {
			fault("lap %d: %d applied of %d matches, %d nodes, %d classes", i, l.Applied, l.Matches, l.Nodes, l.Classes)
		}
	}
	// Each match is counted twice, by its lap and by its rule.
	for i := range r.Rules {
		matches, applied = matches-r.Rules[i].Attempts, applied-r.Rules[i].Applied
	}
	if matches != 0 || applied != 0 {
		fault("the laps count %d matches more than the rules, and %d more applied", matches, applied)
	}
	return faults
}
