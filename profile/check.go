package profile

import (
	"errors"
	"fmt"
	"time"
)

// ErrInconsistent is wrapped by every fault that [Record.Check] finds.
var ErrInconsistent = errors.New("profile: inconsistent record")

// Check holds the record and its descendants against their own arithmetic: the
// counts of all passes add up to what the rules applied, the time of children
// and passes is within that of their rewriter, no rule fired more often than it
// was tried, no figure is negative. All faults are reported together; each wraps
// [ErrInconsistent] and begins with the path of the record.
func (r *Record) Check() error {
	type item struct {
		path string
		r    *Record
	}
	var faults []error
	stack := []item{{"", r}}
	for len(stack) > 0 && r != nil {
		it := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		path := it.path + "/" + it.r.Name
		for _, f := range it.r.faults() {
			faults = append(faults, fmt.Errorf("%w: %s: %s", ErrInconsistent, path, f))
		}
		for i := len(it.r.Children) - 1; i >= 0; i-- {
			stack = append(stack, item{path, it.r.Children[i]})
		}
	}
	return errors.Join(faults...)
}

func (r *Record) faults() []string {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	parts := []struct {
		what string
		d    time.Duration
	}{
		{"validation", r.Validate}, {"callbacks", r.Callback}, {"sorting", r.Toposort}, {"the walk", r.Loop},
		{"passes", r.passSum()}, {"children", r.childSum()},
	}
	for _, p := range parts {
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
	return append(faults, r.passFaults()...)
}

// passFaults compares the passes of an equilibrium with its rules.
func (r *Record) passFaults() []string {
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
	for i := range r.Rules {
		u := &r.Rules[i]
		if counts[u.Name] != u.Applied {
			faults = append(faults, fmt.Sprintf("rule %s: %d applied, but the passes count %d", u.Name, u.Applied, counts[u.Name]))
		}
		delete(counts, u.Name)
	}
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

func (r *Record) passSum() time.Duration {
	var sum time.Duration
	for i := range r.Passes {
		sum += r.Passes[i].Time
	}
	return sum
}

func (r *Record) childSum() time.Duration {
	var sum time.Duration
	for _, c := range r.Children {
		sum += c.Time
	}
	return sum
}
