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
	Depth int         // 0 for the root; a rule has the depth of its rewriter
	Rule  string      // the rule, or empty for the rewriter itself
	Only  string      // "a" or "b" where only one run has it, otherwise empty
	A, B  Measurement // zero where that run does not have it
}

// A Measurement is the part of a record or a rule that can be compared.
type Measurement struct {
	Time    time.Duration
	Nodes   int // applies after the rewriter; applies created by the rule
	Changed int // replacements made; applications of the rule
}

// Diff compares two runs, matching rewriters as [Merge] does and rules by name.
// Every rewriter of either run is reported, parents before children; a rule is
// reported where it fired differently often or created differently many nodes.
func Diff(a, b *Record) []Difference {
	type item struct {
		path  string
		depth int
		m     match
	}
	var list []Difference
	stack := []item{{"", 0, match{a, b}}}
	for len(stack) > 0 {
		it := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		d, ok := it.m.difference()
		if !ok {
			continue
		}
		d.Path, d.Depth = it.path+d.Name, it.depth
		list = append(list, d)
		list = append(list, ruleDifferences(d, it.m)...)
		var ca, cb []*Record
		if it.m.a != nil {
			ca = it.m.a.Children
		}
		if it.m.b != nil {
			cb = it.m.b.Children
		}
		pairs := matchChildren(ca, cb)
		for i := len(pairs) - 1; i >= 0; i-- {
			stack = append(stack, item{d.Path + "/", it.depth + 1, pairs[i]})
		}
	}
	return list
}

// difference returns the comparison of the rewriters, without its path and depth.
func (m match) difference() (Difference, bool) {
	var d Difference
	switch {
	case m.a == nil && m.b == nil:
		return d, false
	case m.b == nil:
		d.Only = "a"
	case m.a == nil:
		d.Only = "b"
	}
	if m.b != nil {
		d.Name, d.B = m.b.Name, m.b.measurement()
	}
	if m.a != nil {
		d.Name, d.A = m.a.Name, m.a.measurement()
	}
	return d, true
}

func (r *Record) measurement() Measurement {
	return Measurement{Time: r.Time, Nodes: r.NodesAfter, Changed: r.Changed}
}

func ruleDifferences(of Difference, m match) []Difference {
	var list []Difference
	at := make(map[string]int)
	add := func(rules []Rule, only string, side func(*Difference) *Measurement) {
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

// WriteDiff writes the comparison of two runs as a table: a line for each
// rewriter, and below it the rules that fired differently.
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
