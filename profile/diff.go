package profile

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A difference compares a rewriter, one of its rules, or a counter of either in two
// runs.
type difference struct {
	Path    string      // names from the root down, joined by "/"
	Name    string      // the last name of the path
	Depth   int         // 0 for the root; for a rule, that of its rewriter
	Rule    string      // empty for the rewriter itself
	Counter string      // empty for the rewriter or the rule itself
	Unit    string      // of the counter
	Only    string      // "a" or "b" if only one run has it, or else empty
	A, B    measurement // zero if the run does not have it
}

// A measurement is the comparable part of a record, a rule or a counter.
type measurement struct {
	Time    time.Duration
	Nodes   int     // applies after the rewriter; applies created by the rule
	Changed int     // replacements made; applications of the rule
	Value   float64 // of the counter; otherwise 0
}

// diff compares two runs. It matches rewriters as [Merge] does, and rules by name. It
// returns all rewriters of both runs, parents before children, the rules that fired
// differently often or created a different number of nodes, and the counters that
// differ, except those of time.
func diff(a, b *Record) []difference { return match{a, b}.differences("", 0) }

// differences compares the records and their descendants.
func (m match) differences(path string, depth int) []difference {
	d := difference{Depth: depth}
	var a, b []*Record
	var counted [2][]Counter
	switch {
	case m.a == nil && m.b == nil:
		return nil
	case m.b == nil:
		d.Only = "a"
	case m.a == nil:
		d.Only = "b"
	}
	if m.b != nil {
		d.Name, d.B, b, counted[1] = m.b.Name, m.b.measurement(), m.b.Children, m.b.Counters
	}
	if m.a != nil {
		d.Name, d.A, a, counted[0] = m.a.Name, m.a.measurement(), m.a.Children, m.a.Counters
	}
	d.Path = path + d.Name
	list := append([]difference{d}, counterDifferences(d, counted)...)
	list = append(list, ruleDifferences(d, m)...)
	for _, pair := range matchChildren(a, b) {
		list = append(list, pair.differences(d.Path+"/", depth+1)...)
	}
	return list
}

func (r *Record) measurement() measurement {
	return measurement{Time: r.Time, Nodes: r.NodesAfter, Changed: r.Changed}
}

func ruleDifferences(of difference, m match) []difference {
	var list []difference
	var counted [][2][]Counter
	at := make(map[string]int)
	// Rules stand in the order of run a, and behind them those that only b has.
	add := func(rules []RuleRecord, only string, number int, side func(*difference) *measurement) {
		for i := range rules {
			u := &rules[i]
			k, ok := at[u.Name]
			if !ok {
				k = len(list)
				at[u.Name] = k
				list = append(list, difference{Path: of.Path, Name: of.Name, Depth: of.Depth, Rule: u.Name, Only: only})
				counted = append(counted, [2][]Counter{})
			} else {
				list[k].Only = ""
			}
			counted[k][number] = u.Counters
			*side(&list[k]) = measurement{Time: u.Time, Nodes: u.Created, Changed: u.Applied}
		}
	}
	if m.a != nil {
		add(m.a.Rules, "a", 0, func(d *difference) *measurement { return &d.A })
	}
	if m.b != nil {
		add(m.b.Rules, "b", 1, func(d *difference) *measurement { return &d.B })
	}
	var kept []difference
	for k, d := range list {
		// Times differ from run to run and say nothing about what a rule did.
		counters := counterDifferences(d, counted[k])
		if d.A.Changed != d.B.Changed || d.A.Nodes != d.B.Nodes || len(counters) > 0 {
			kept = append(append(kept, d), counters...)
		}
	}
	return kept
}

// counterDifferences compares the counters of a rewriter or rule.
func counterDifferences(of difference, counted [2][]Counter) []difference {
	var list []difference
	for number, counters := range counted {
		for _, c := range counters {
			k := slices.IndexFunc(list, func(d difference) bool { return d.Counter == c.Name && d.Unit == c.Unit })
			if k < 0 {
				k = len(list)
				list = append(list, difference{Path: of.Path, Name: of.Name, Depth: of.Depth, Rule: of.Rule, Counter: c.Name, Unit: c.Unit, Only: "ab"[number : number+1]})
			} else {
				list[k].Only = ""
			}
			if number == 0 {
				list[k].A.Value = c.Value
			} else {
				list[k].B.Value = c.Value
			}
		}
	}
	// As above, times are no difference.
	return slices.DeleteFunc(list, func(d difference) bool { return d.Unit == "s" || d.A == d.B })
}

// WriteDiff writes the comparison of two runs as a table: a line per rewriter, and
// below it the counters and the rules that differ.
func WriteDiff(w io.Writer, a, b *Record) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%12s %12s %8s %9s %9s %9s %9s  %s\n",
		"time a", "time b", "b/a", "nodes a", "nodes b", "changed a", "changed b", "name")
	for _, d := range diff(a, b) {
		name, in := d.Name, strings.Repeat("  ", d.Depth)
		if d.Rule != "" {
			name, in = d.Rule, in+"  . "
		}
		if d.Counter != "" {
			name, in = d.Counter, in+"  # "
		}
		if d.Only != "" {
			name += " (only " + d.Only + ")"
		}
		if d.Counter != "" {
			a, b := Counter{Value: d.A.Value, Unit: d.Unit}.Text(), Counter{Value: d.B.Value, Unit: d.Unit}.Text()
			switch d.Only {
			case "a":
				b = "-"
			case "b":
				a = "-"
			}
			fmt.Fprintf(out, "%54s %9s %9s  %s%s\n", "", a, b, in, name)
			continue
		}
		fmt.Fprintf(out, "%11.6fs %11.6fs %8s %9d %9d %9d %9d  %s%s\n", d.A.Time.Seconds(), d.B.Time.Seconds(),
			ratio(d.A.Time, d.B.Time), d.A.Nodes, d.B.Nodes, d.A.Changed, d.B.Changed, in, name)
	}
	return out.Flush()
}

func ratio(a, b time.Duration) string {
	if a <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(b)/float64(a))
}
