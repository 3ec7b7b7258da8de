package profile

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
)

// A Difference compares a rewriter, or one of its rules, in two runs.
type Difference struct {
	Path  string      // names from the root down, joined by "/"
	Name  string      // the last name of the path
	Depth int         // 0 for the root; for a rule, that of its rewriter
	Rule  string      // empty for the rewriter itself
	Only  string      // "a" or "b" if only one run has it, or else empty
	A, B  Measurement // zero if the run does not have it
}

// A Measurement is the comparable part of a record or of a rule.
type Measurement struct {
	Time    time.Duration
	Nodes   int // applies after the rewriter; applies created by the rule
	Changed int // replacements made; applications of the rule
}

// Diff compares two runs. It matches rewriters as [Merge] does, and rules by name. It
// returns all rewriters of both runs, parents before children, and the rules that
// fired differently often or created a different number of nodes.
func Diff(a, b *Record) []Difference { return match{a, b}.differences("", 0) }

// differences compares the records and their descendants.
func (m match) differences(path string, depth int) []Difference {
	d := Difference{Depth: depth}
	var a, b []*Record
	switch {
	case m.a == nil && m.b == nil:
		return nil
	case m.b == nil:
		d.Only = "a"
	case m.a == nil:
		d.Only = "b"
	}
	if m.b != nil {
		d.Name, d.B, b = m.b.Name, m.b.measurement(), m.b.Children
	}
	if m.a != nil {
		d.Name, d.A, a = m.a.Name, m.a.measurement(), m.a.Children
	}
	d.Path = path + d.Name
	list := append([]Difference{d}, ruleDifferences(d, m)...)
	for _, pair := range matchChildren(a, b) {
		list = append(list, pair.differences(d.Path+"/", depth+1)...)
	}
	return list
}

func (r *Record) measurement() Measurement {
	return Measurement{Time: r.Time, Nodes: r.NodesAfter, Changed: r.Changed}
}

func ruleDifferences(of Difference, m match) []Difference {
	var list []Difference
	at := make(map[string]int)
	add := func(rules []RuleRecord, only string, side func(*Difference) *Measurement) {
		for i := range rules {
			u := &rules[i]
			k, ok := at[u.Name]
			if !ok {
				k = len(list)
				at[u.Name] = k
				list = append(list, Difference{Path: of.Path, Name: of.Name, Depth: of.Depth, Rule: u.Name, Only: only})
			} else {
				list[k].Only = ""
			}
			*side(&list[k]) = Measurement{Time: u.Time, Nodes: u.Created, Changed: u.Applied}
		}
	}
	if m.a != nil {
		add(m.a.Rules, "a", func(d *Difference) *Measurement { return &d.A })
	}
	if m.b != nil {
		add(m.b.Rules, "b", func(d *Difference) *Measurement { return &d.B })
	}
	kept := list[:0]
	for _, d := range list {
		if d.A.Changed != d.B.Changed || d.A.Nodes != d.B.Nodes {
			kept = append(kept, d)
		}
	}
	return kept
}

// WriteDiff writes the comparison of two runs as a table: a line per rewriter, and
// below it the rules that fired differently.
func WriteDiff(w io.Writer, a, b *Record) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%12s %12s %8s %9s %9s %9s %9s  %s\n",
		"time a", "time b", "b/a", "nodes a", "nodes b", "changed a", "changed b", "name")
	for _, d := range Diff(a, b) {
		name, in := d.Name, strings.Repeat("  ", d.Depth)
		if d.Rule != "" {
			name, in = d.Rule, in+"  . "
		}
		if d.Only != "" {
			name += " (only " + d.Only + ")"
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
