package optdb

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/errlist"
	"github.com/nnopt/nnopt/rewrite"
)

// Build makes an optimizer of the entries that a query selects. It returns all
// faults of the database and of the query together; a tag that no entry has, and settings
// of an entry that the query leaves out, are faults unless the query is lenient. The optimizer of a
// query that selects nothing does nothing. Later changes of the database do not change the optimizer.
func (d *store) Build(q Query) (*Optimizer, error) {
	if !d.made() {
		return nil, fmt.Errorf("optdb: %w: %s", ErrKind, unmade)
	}
	tags, dbs := d.vocabulary(q)
	faults := append(d.faults(), q.unknown(tags, dbs)...)
	room := maxChoices
	for _, in := range d.databases() {
		room += 4 * len(in.entries) // a large database may be listed whole
	}
	// The decisions are made even if there are faults already, since they may show more of them.
	choices := d.choose(view{q: q, include: q.tags(include), avoid: q.tags(avoid), list: q.listed, top: true, faults: &faults, room: &room}, "", 0)
	// The choices were cut short, so what they would say of idle settings is not true.
	if room < 0 {
		return nil, errlist.Join(append(faults, fmt.Errorf("optdb: query %s: %w: it lists databases so often that it decides about more than %d entries", q.excerpt(), ErrSyntax, maxChoices)))
	}
	faults = append(faults, q.idleSettings(choices, tags)...)
	o := &Optimizer{name: optimizerName(q), query: q, database: d.name, driver: d.driver, choices: choices}
	if len(faults) == 0 {
		o.driver, faults = compiled(d.name, d.driver, choices)
	}
	if len(faults) > 0 {
		return nil, errlist.Join(faults)
	}
	return o, nil
}

// compiled returns the driver of a database after it has compiled the chosen rules, and compiles those
// of databases among the choices. It recurses as deep as databases are nested.
func compiled(name string, driver Driver, choices []*choice) (Driver, []error) {
	var faults []error
	for _, c := range choices {
		if c.taken && c.entry.DB != nil {
			var more []error
			// That of the choice, not of the database: the query may have changed its settings.
			c.driver, more = compiled(c.entry.DB.Name(), c.driver, c.nested)
			faults = append(faults, more...)
		}
	}
	if c, ok := driver.(Compiler); ok {
		d, err := c.Compile(rules(choices, ""))
		if err != nil {
			return driver, append(faults, fmt.Errorf("optdb: %s: %w", name, err))
		}
		driver = d
	}
	return driver, faults
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

// build returns the rewriter that a driver makes of choices for graphs of a dialect. It recurses as
// deep as databases are nested.
func build(driver Driver, name string, choices []*choice, dialect string) rewrite.GraphRewriter {
	s := Selection{Name: name, Rules: rules(choices, dialect)}
	for _, c := range choices {
		if !c.serves(dialect) || c.isRule() {
			continue
		}
		list := &s.Graphs
		if c.entry.Final {
			list = &s.final
		} else if c.entry.Cleanup {
			list = &s.cleanup
		}
		*list = append(*list, c.member(dialect))
	}
	return driver.Build(s)
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
	// A database with nothing for the dialect is left out as a whole, or it would be an empty line of the
	// profile.
	return slices.ContainsFunc(c.nested, func(n *choice) bool { return n.serves(dialect) })
}

// member returns a chosen graph rewriter, or the driver of a chosen database.
func (c *choice) member(dialect string) rewrite.Member {
	if c.entry.DB != nil {
		return rewrite.Member{Name: c.entry.Name, Rewriter: build(c.driver, c.entry.Name, c.nested, dialect)}
	}
	return rewrite.Member{Name: c.entry.Name, Rewriter: c.entry.Rewriter.(rewrite.GraphRewriter)}
}

// isRule reports whether the choice contributes node rewriters.
func (c *choice) isRule() bool {
	if c.entry.DB != nil {
		return c.entry.DB.base().isGroup()
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
