package optdb

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/passes/saturate"
	"github.com/nnopt/nnopt/rewrite"
)

// Build makes an optimizer of the entries that a query selects. It returns all
// faults of the database and of the query together; a tag that no entry has, and settings
// of an entry that the query leaves out, are faults unless the query is lenient. The optimizer of a query that selects nothing
// does nothing. Later changes of the database do not change the optimizer.
func (d *db) Build(q Query) (*Optimizer, error) {
	tags, dbs := d.vocabulary(q)
	faults := append(d.faults(), q.unknown(tags, dbs)...)
	choices := d.choose(view{q: q, include: q.tags(include), list: q.listed, top: true, faults: &faults}, "", 0)
	faults = append(faults, q.idleSettings(choices, tags)...)
	o := &Optimizer{name: optimizerName(q), query: q, db: *d, choices: choices}
	if len(faults) == 0 {
		faults = o.db.compile(choices)
	}
	if len(faults) > 0 {
		return nil, joined(faults)
	}
	return o, nil
}

// compile compiles the rules of a SaturationDB and of those among the choices in it. It recurses as deep
// as databases are nested.
func (d *db) compile(choices []*choice) []error {
	if d.kind == saturation {
		p := d.saturation
		p.Rules = rules(choices, "")
		if err := p.Prepare(); err != nil {
			return []error{fmt.Errorf("optdb: %s: %w", d.name, err)}
		}
		d.saturation = p
		return nil
	}
	var faults []error
	for _, c := range choices {
		if c.taken && c.entry.DB != nil {
			faults = append(faults, c.inner.compile(c.nested)...)
		}
	}
	return faults
}

// optimizerName returns the name of an optimizer in the profile: Theano's for a
// mode.
func optimizerName(q Query) string {
	for _, mode := range []string{ModeFastRun, ModeFastCompile, ModeDebug, ModeNone} {
		if m, _ := Mode(mode); m.Equal(q) {
			return "OPT_" + strings.ToUpper(mode)
		}
	}
	return q.String()
}

// driver makes the rewriter that applies choices in the database to graphs of a
// dialect.
func (d *db) driver(name string, choices []*choice, dialect string) rewrite.GraphRewriter {
	switch d.kind {
	case sequence:
		s := &rewrite.Sequence{Name: name}
		for _, c := range choices {
			if c.serves(dialect) {
				s.Members = append(s.Members, c.member(dialect))
			}
		}
		lookAhead(s)
		return s
	case equilibrium:
		q := d.equilibrium
		q.Name = name
		q.Rules = rules(choices, dialect)
		q.Globals, q.Final, q.Cleanup = nil, nil, nil
		for _, c := range choices {
			if !c.serves(dialect) || c.isRule() {
				continue
			}
			list := &q.Globals
			if c.entry.Final {
				list = &q.Final
			} else if c.entry.Cleanup {
				list = &q.Cleanup
			}
			*list = append(*list, c.member(dialect))
		}
		q.Prepare()
		return &q
	case saturation:
		p := d.saturation
		if list := rules(choices, dialect); len(list) < len(p.Rules) { // otherwise they are compiled
			p = p.With(list)
			_ = p.Prepare() // as part of all rules, they are right
		}
		p.Name = name
		return &p
	case topo:
		w := d.walk
		w.Name = name
		w.Rules = rules(choices, dialect)
		w.Prepare()
		return &w
	}
	return idle{}
}

// lookAhead tells the saturations in a sequence what runs before and after them.
func lookAhead(s *rewrite.Sequence) {
	for i, m := range s.Members {
		if p, ok := m.Rewriter.(*saturate.Pass); ok {
			p.Later = &rewrite.Sequence{Name: s.Name, Members: s.Members[i+1:]}
			for _, before := range s.Members[:i] {
				p.Earlier = append(p.Earlier, before.Rewriter)
			}
		}
	}
}

// serves reports whether a choice runs anything on graphs of a dialect. It
// recurses as deep as databases are nested.
func (c *choice) serves(dialect string) bool {
	switch {
	case !c.taken || dialect != "" && c.dialect != "" && c.dialect != dialect:
		return false
	case c.entry.DB == nil:
		return true
	}
	return slices.ContainsFunc(c.nested, func(n *choice) bool { return n.serves(dialect) })
}

// member returns a chosen graph rewriter, or the driver of a chosen database.
func (c *choice) member(dialect string) rewrite.Member {
	if c.entry.DB != nil {
		return rewrite.Member{Name: c.entry.Name, Rewriter: c.inner.driver(c.entry.Name, c.nested, dialect)}
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

// rules returns the chosen node rewriters, including those of groups.
func rules(choices []*choice, dialect string) []rewrite.NodeRewriter {
	var list []rewrite.NodeRewriter
	for _, c := range choices {
		switch {
		case !c.serves(dialect) || !c.isRule():
		case c.entry.DB != nil:
			list = append(list, rules(c.nested, dialect)...)
		default:
			list = append(list, c.entry.rule())
		}
	}
	return list
}

func (k kind) class() string {
	return [...]string{"SeqOptimizer", "EquilibriumOptimizer", "TopoOptimizer", "group", saturate.Class}[k]
}
