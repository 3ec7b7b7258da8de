package tune

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// Promises lists the tags of passes that may change results: the order of sums, the precision, or what is
// infinite, NaN or nearly too large. An entry with one of them is tried only if it is allowed.
func Promises() []string {
	return []string{"int16", "int8", "limits", "overflow", "reassoc", "unsafe_nan"}
}

// A Choice is something that a query can say and another one not.
type Choice struct {
	Term string // in a query: "-merge2", "+winograd", "canonicalize{max-use=4}"
	// Asks lists the tags that have to be allowed, but are not.
	Asks []string
	// Changes says that an entry has a tag of [Promises]: outputs may differ, by no more than is allowed.
	// All other choices keep their bits.
	Changes bool
	// Fired is how often the entry made a rewrite; negative for an entry that is not selected.
	Fired int

	entry, setting, value string // for a setting
}

// apply returns a query with the choice.
func (c *Choice) apply(q optdb.Query) optdb.Query {
	switch {
	case c.setting != "":
		return q.Set(c.entry, c.setting, c.value)
	case c.Term[0] == '-':
		return q.Excluding(c.Term[1:])
	}
	return q.Including(c.Term[1:])
}

// choices lists what can be tried for the optimizer of a query: what it leaves out, settings, and what it
// has, in the order of the database. all are the entries of the database, fired says how often each made a
// rewrite.
func choices(db *optdb.SequenceDB, opt *optdb.Optimizer, dialects, allowed []string, fired map[string]int) []*Choice {
	l := lister{db: db, opt: opt, allowed: allowed, fired: fired, dialects: dialects, has: make(map[string]bool), known: make(map[string]bool)}
	all := db.Outline()
	for i := range all {
		if e := &all[i]; opt.Selected(e.Path) {
			l.has[e.Path] = true
			l.taken = append(l.taken, e)
		} else {
			l.leftOut = append(l.leftOut, e)
		}
	}
	l.additions()
	l.settings()
	l.removals()
	return l.list
}

// A lister makes the list of choices.
type lister struct {
	db                *optdb.SequenceDB
	opt               *optdb.Optimizer
	dialects, allowed []string
	fired             map[string]int
	taken, leftOut    []*optdb.Listing
	has               map[string]bool // paths of entries that are selected
	known             map[string]bool // terms
	list              []*Choice
}

// add adds a choice for entries, unless they are for other graphs or it is there.
func (l *lister) add(c *Choice, entries ...*optdb.Listing) {
	serves := func(e *optdb.Listing) bool {
		return !e.Database && (e.Dialect == "" || slices.Contains(l.dialects, e.Dialect))
	}
	if l.known[c.Term] || !slices.ContainsFunc(entries, serves) {
		return
	}
	l.known[c.Term] = true
	for _, e := range entries {
		if serves(e) {
			c.Asks = append(c.Asks, l.asks(e.Tags)...)
			c.Changes = c.Changes || slices.ContainsFunc(e.Tags, func(tag string) bool { return slices.Contains(Promises(), tag) })
		}
	}
	slices.Sort(c.Asks)
	c.Asks = slices.Compact(c.Asks)
	l.list = append(l.list, c)
}

// asks lists the tags of an entry that are promises and not allowed. Of precisions one is enough: an entry
// with several is part of each.
func (l *lister) asks(tags []string) (asks []string) {
	precise := func(tag string) bool { return tag == "int8" || tag == "int16" }
	one := slices.ContainsFunc(tags, func(tag string) bool { return precise(tag) && slices.Contains(l.allowed, tag) })
	for _, tag := range tags {
		if slices.Contains(Promises(), tag) && !slices.Contains(l.allowed, tag) && !(one && precise(tag)) {
			asks = append(asks, tag)
		}
	}
	return asks
}

// additions lists entries that are left out, and then tags, with which something more is selected.
func (l *lister) additions() {
	var terms, tags []string
	closed, tried := " ", make(map[string]bool)
	for _, e := range l.leftOut {
		if strings.HasPrefix(e.Path, closed+"/") { // it comes with its database
			continue
		}
		if e.Database {
			closed = e.Path
		}
		terms, tags = append(terms, e.Name), append(tags, e.Tags...)
		tried[e.Dialect] = true // which is a tag, too, but of no kind of passes
	}
	terms = append(terms, tags...)
	for _, term := range terms {
		if tried[term] {
			continue
		}
		tried[term] = true
		// What a term selects, only the database knows: the entry alone, with the databases around it, or
		// what is in a database; or nothing, where the query excludes it.
		with, err := l.db.Build(l.opt.Query().Including(term))
		if err != nil {
			continue
		}
		var more []*optdb.Listing
		for _, e := range l.leftOut {
			if with.Selected(e.Path) {
				more = append(more, e)
			}
		}
		l.add(&Choice{Term: "+" + term, Fired: -1}, more...)
	}
}

// settings lists other values of settings: half and twice a number, the opposite of a truth value. Other
// texts have no neighbours that could be named.
func (l *lister) settings() {
	for _, e := range l.taken {
		for _, s := range e.Settings {
			for _, v := range neighbours(s) {
				c := &Choice{Term: fmt.Sprintf("%s{%s=%s}", e.Name, s.Name, v), Fired: l.fired[e.Name], entry: e.Name, setting: s.Name, value: v}
				l.add(c, l.within(e)...)
			}
		}
	}
}

// within returns an entry and, of a database, the selected entries in it.
func (l *lister) within(e *optdb.Listing) []*optdb.Listing {
	list := []*optdb.Listing{e}
	for _, in := range l.taken {
		if e.Database && strings.HasPrefix(in.Path, e.Path+"/") {
			list = append(list, in)
		}
	}
	return list
}

func neighbours(s rewrite.Setting) []string {
	if s.Value == "true" || s.Value == "false" {
		return []string{strconv.FormatBool(s.Value != "true")}
	}
	if n, err := strconv.Atoi(s.Value); err == nil && n > 0 && n < 1<<30 {
		list := []string{strconv.Itoa(2 * n)}
		if n > 1 {
			list = append(list, strconv.Itoa(n/2))
		}
		return list
	}
	if x, err := strconv.ParseFloat(s.Value, 64); err == nil && x > 0 && x < 1e300 {
		return []string{strconv.FormatFloat(2*x, 'g', -1, 64), strconv.FormatFloat(x/2, 'g', -1, 64)}
	}
	return nil
}

// removals lists entries that are selected.
func (l *lister) removals() {
	for _, e := range l.taken {
		if !e.Database {
			l.add(&Choice{Term: "-" + e.Name, Fired: l.fired[e.Name]}, e)
		}
	}
}

// firings returns how often each entry made a rewrite, by its name, from what optimizers recorded.
func firings(records []*profile.Record) map[string]int {
	fired := make(map[string]int)
	for _, root := range records {
		for _, r := range root.All() {
			fired[r.Name] += r.Changed
			for i := range r.Rules {
				if rule := &r.Rules[i]; rule.Name != r.Name { // a walk with one rule goes by its name
					fired[rule.Name] += rule.Applied
				}
			}
		}
	}
	return fired
}
