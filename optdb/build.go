package optdb

import (
	"strings"

	"github.com/nnopt/nnopt/rewrite"
)

// Build selects entries and makes an optimizer of them. It fails if the database
// has faults, and if a tag of the query is one that no entry has, unless the
// query is lenient; all faults are reported together. What is registered later
// does not change the optimizer. A query that selects nothing is legal, its
// optimizer does nothing.
func (d *db) Build(q Query) (*Optimizer, error) {
	var faults []error
	if err := d.Check(); err != nil {
		faults = append(faults, err)
	}
	faults = append(faults, d.unknownTags(q)...)
	choices := d.choose(view{q: q, include: q.tags(include), top: true, faults: &faults}, "", 0)
	if len(faults) > 0 {
		return nil, joined(flat(faults))
	}
	o := &Optimizer{name: optimizerName(q), query: q, db: d.name, class: d.kind, choices: choices, words: d.words()}
	o.root = d.driver(o.name, choices)
	return o, nil
}

// optimizerName returns the name that an optimizer has in the profile. For the
// modes it is Theano's.
func optimizerName(q Query) string {
	for _, mode := range Modes() {
		if m, _ := Mode(mode); m.Equal(q) {
			return "OPT_" + strings.ToUpper(mode)
		}
	}
	return q.String()
}

// driver makes the rewriter of a database from what was chosen in it.
func (d *db) driver(name string, choices []*choice) rewrite.GraphRewriter {
	switch d.kind {
	case sequence:
		s := &rewrite.Sequence{Name: name}
		for _, c := range choices {
			if c.taken {
				s.Members = append(s.Members, c.member())
			}
		}
		return s
	case equilibrium:
		q := d.equilibrium
		q.Name = name
		q.Rules = rules(choices)
		q.Globals, q.Final, q.Cleanup = nil, nil, nil
		for _, c := range choices {
			if !c.taken || c.isRule() {
				continue
			}
			list := &q.Globals
			if c.entry.Final {
				list = &q.Final
			} else if c.entry.Cleanup {
				list = &q.Cleanup
			}
			*list = append(*list, c.member())
		}
		q.Prepare()
		return &q
	case topo:
		w := d.walk
		w.Name = name
		w.Rules = rules(choices)
		w.Prepare()
		return &w
	}
	return idle{}
}

// member returns a chosen graph rewriter or database.
func (c *choice) member() rewrite.Member {
	if c.entry.DB != nil {
		return rewrite.Member{Name: c.entry.Name, Rewriter: c.entry.DB.base().driver(c.entry.Name, c.nested)}
	}
	return rewrite.Member{Name: c.entry.Name, Rewriter: c.entry.Rewriter.(rewrite.GraphRewriter)}
}

// isRule reports whether the choice contributes node rewriters.
func (c *choice) isRule() bool {
	if c.entry.DB != nil {
		return c.entry.DB.base().kind == group
	}
	_, isGraph := c.entry.Rewriter.(rewrite.GraphRewriter)
	return !isGraph
}

// rules returns the chosen node rewriters, those of groups among them.
func rules(choices []*choice) []rewrite.NodeRewriter {
	var list []rewrite.NodeRewriter
	for _, c := range choices {
		switch {
		case !c.taken || !c.isRule():
		case c.entry.DB != nil:
			list = append(list, rules(c.nested)...)
		default:
			list = append(list, c.entry.rule())
		}
	}
	return list
}

// words returns all names and tags, for suggestions.
func (d *db) words() []string {
	set := make(map[string]bool)
	for _, in := range d.databases() {
		for _, e := range in.entries {
			set[e.Name] = true
		}
	}
	return keys(set)
}

// flat takes apart errors that hold several.
func flat(faults []error) []error {
	var list []error
	for _, f := range faults {
		if many, ok := f.(interface{ WrappedErrors() []error }); ok {
			list = append(list, many.WrappedErrors()...)
		} else {
			list = append(list, f)
		}
	}
	return list
}

func (k kind) class() string {
	return [...]string{"SeqOptimizer", "EquilibriumOptimizer", "TopoOptimizer", "group"}[k]
}
