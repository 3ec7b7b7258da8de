package optdb

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"

	"github.com/nnopt/nnopt/rewrite"
)

// A pipeline lists entries instead of selecting them by tags.
type pipeline []item

// An item is an entry of a pipeline.
type item struct {
	name     string
	settings []setting
	nested   pipeline // in a database; nil: everything in it
}

// setting is a name with a value.
type setting struct{ name, value string }

// settings are those of a query for an entry.
type settings struct {
	entry string
	list  []setting
}

// ParsePipeline reads a pipeline, a query that lists the entries to run instead of
// selecting them by tags:
//
//	useless, canonicalize{max-use=8}, specialize(local_mul_to_sqr, local_neg_neg), canonicalize
//
// An item is the name of an entry, with settings of the entry in braces, and, for a
// database, the entries in it in parentheses; without them it is the whole
// database. Entries run in the order of the list and may be repeated. An order that
// contradicts a [Constraint] between two of them is an error of Build, with the reason.
//
// [Optimizer.Pipeline] prints an optimizer in this form. In the text of a query a
// pipeline is in brackets, and other terms can be added: "debug [useless,
// canonicalize] -inplace".
func ParsePipeline(text string) (Query, error) {
	p := parser{text: text}
	items, err := p.items(0)
	if err != nil {
		return Query{}, err
	}
	if p.at < len(text) {
		return Query{}, p.fault(p.at, "unexpected %q", text[p.at])
	}
	return Query{listed: items}, nil
}

// Set returns the query that changes a setting of the selected entries of that name,
// see [rewrite.Configurable]. In text it is a term: canonicalize{max-use=8}.
func (q Query) Set(entry, name, value string) Query {
	q.settings = slices.Clone(q.settings)
	for i := range q.settings {
		if s := &q.settings[i]; s.entry == entry {
			// Queries are values, so another one may have the same list.
			s.list = slices.DeleteFunc(slices.Clone(s.list), func(g setting) bool { return g.name == name })
			s.list = append(s.list, setting{name, value})
			return q
		}
	}
	q.settings = append(q.settings, settings{entry, []setting{{name, value}}})
	return q
}

// settingsOf returns the settings of the query for an entry.
func (q Query) settingsOf(e *Entry) []setting {
	for _, s := range q.settings {
		if s.entry == e.Name {
			return s.list
		}
	}
	return nil
}

// items reads items up to the end of the text or a closing bracket.
func (p *parser) items(depth int) (pipeline, error) {
	items := pipeline{}
	for {
		p.space()
		if p.at == len(p.text) || p.text[p.at] == ')' || p.text[p.at] == ']' {
			return items, nil
		}
		it, err := p.item(depth)
		if err != nil {
			return nil, err
		}
		items = append(items, it)
		p.space()
		switch {
		case p.at == len(p.text) || p.text[p.at] == ')' || p.text[p.at] == ']':
			return items, nil
		case p.text[p.at] != ',':
			return nil, p.fault(p.at, "unexpected %q, passes are separated by commas", p.text[p.at])
		}
		p.at++
	}
}

func (p *parser) item(depth int) (it item, err error) {
	start := p.at
	if it.name, err = p.tag(); err != nil {
		return it, p.fault(start, "unexpected %q where the name of a pass should be", p.text[start])
	}
	if p.peek('{') {
		if it.settings, err = p.settings(); err != nil {
			return it, err
		}
	}
	if !p.peek('(') {
		return it, nil
	}
	if depth == maxNesting {
		return it, p.fault(p.at, "more than %d databases inside each other", maxNesting)
	}
	p.at++
	if it.nested, err = p.items(depth + 1); err != nil {
		return it, err
	}
	if !p.peek(')') {
		return it, p.fault(p.at, "no \")\" after %s(", it.name)
	}
	p.at++
	return it, nil
}

// settings reads settings in braces.
func (p *parser) settings() ([]setting, error) {
	var list []setting
	p.at++ // "{"
	for {
		p.space()
		if p.peek('}') {
			p.at++
			return list, nil
		}
		start := p.at
		name, err := p.tag()
		if err != nil || !p.peek('=') {
			return nil, p.fault(start, "a setting is name=value")
		}
		p.at++
		from := p.at
		for p.at < len(p.text) && !isSpace(p.text[p.at]) && !strings.ContainsRune(",}", rune(p.text[p.at])) {
			p.at++
		}
		if slices.ContainsFunc(list, func(g setting) bool { return g.name == name }) {
			return nil, p.fault(start, "a second value of %s", name)
		}
		list = append(list, setting{name, p.text[from:p.at]})
		p.space()
		if p.peek(',') {
			p.at++
		} else if !p.peek('}') {
			return nil, p.fault(p.at, "no \"}\" after the settings")
		}
	}
}

// peek reports whether c comes next.
func (p *parser) peek(c byte) bool { return p.at < len(p.text) && p.text[p.at] == c }

// print writes the items in the form that ParsePipeline reads. It recurses as deep as
// they are nested.
func (l pipeline) print(b *strings.Builder) {
	for i, it := range l {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(it.name)
		printSettings(b, it.settings)
		if it.nested != nil {
			b.WriteByte('(')
			it.nested.print(b)
			b.WriteByte(')')
		}
	}
}

func printSettings(b *strings.Builder, list []setting) {
	for i, g := range list {
		b.WriteString([2]string{"{", ", "}[min(i, 1)])
		b.WriteString(g.name + "=" + g.value)
	}
	if len(list) > 0 {
		b.WriteByte('}')
	}
}

// Pipeline returns what the optimizer runs as a list that [ParsePipeline] reads. From
// the same database the list builds an optimizer that does the same. A database of
// which everything runs in its usual order is printed as its name alone. Rewriters
// that the query added are listed too, but no database knows them.
func (o *Optimizer) Pipeline() string {
	var b strings.Builder
	listOf(o.choices).print(&b)
	return b.String()
}

// listOf returns the pipeline of what was taken. It recurses as deep as databases
// are nested.
func listOf(choices []*choice) pipeline {
	list := pipeline{}
	for _, c := range choices {
		if !c.taken {
			continue
		}
		it := item{name: c.entry.Name, settings: c.settings}
		if c.entry.DB != nil && !c.whole() {
			it.nested = listOf(c.nested)
		}
		list = append(list, it)
	}
	return list
}

// whole reports whether everything in a database runs, as it does by default.
func (c *choice) whole() bool {
	entries, _ := c.entry.DB.base().sorted()
	// Rewriters that the query adds, and entries that a pipeline repeats, make the lists differ.
	if len(entries) != len(c.nested) {
		return false
	}
	for i, n := range c.nested {
		if !n.taken || n.entry.Name != entries[i].Name || len(n.settings) > 0 || n.entry.DB != nil && !n.whole() {
			return false
		}
	}
	return true
}

// arranged returns the entries of the database in the order of a pipeline, with the
// items that name them, and then those that it leaves out, with nil.
func (d *store) arranged(l pipeline) ([]*Entry, []*item) {
	var entries []*Entry
	var items []*item
	for i := range l {
		if e := d.byName[l[i].name]; e != nil {
			entries, items = append(entries, e), append(items, &l[i])
		}
	}
	// What is left out is decided about as well, so that Explain can say why it does not run.
	rest, _ := d.sorted()
	for _, e := range rest {
		if !slices.Contains(entries, e) {
			entries, items = append(entries, e), append(items, nil)
		}
	}
	return entries, items
}

// listFaults returns an error for each item that is not in the database, and for each
// order that contradicts a constraint.
func (d *store) listFaults(l pipeline) []error {
	var faults []error
	fault := func(name string, err error, format string, args ...any) {
		faults = append(faults, d.fault(name, err, format, args...))
	}
	place := make(map[string][2]int) // of the first and the last item of that name
	for i, it := range l {
		if at, ok := place[it.name]; ok {
			place[it.name] = [2]int{at[0], i}
		} else {
			place[it.name] = [2]int{i, i}
		}
	}
	for i, it := range l {
		e := d.byName[it.name]
		if e == nil {
			fault(it.name, ErrUnknownEntry, "the pipeline lists it%s", didYouMean(it.name, d.names()))
			continue
		}
		// An entry may be listed several times. It is enough if the first one of those that must come before it
		// does, and if the last one of those that must come behind it does.
		for _, o := range e.After {
			if at, ok := place[o.Name]; ok && at[0] > i {
				fault(it.name, ErrOrder, "in the pipeline it must run after %s, because %s", o.Name, o.Reason)
			}
		}
		for _, o := range e.Before {
			if at, ok := place[o.Name]; ok && at[1] < i {
				fault(it.name, ErrOrder, "in the pipeline it must run before %s, because %s", o.Name, o.Reason)
			}
		}
		if it.nested != nil && e.DB == nil {
			fault(it.name, ErrKind, "the pipeline lists entries in it, but it is no database")
		}
	}
	return faults
}

// configure applies settings to the rewriter of a choice, or to its database.
func (c *choice) configure(list []setting) []error {
	if len(list) == 0 {
		return nil
	}
	conf := c.configurable()
	if conf == nil {
		return []error{c.db.fault(c.entry.Name, ErrSetting, "%s: it has no settings", fileio.Excerpt(list[0].name, 0))}
	}
	var faults []error
	for _, g := range list {
		names := lists.Map(conf.Settings(), func(s rewrite.Setting) string { return s.Name })
		if !slices.Contains(names, g.name) {
			faults = append(faults, c.db.fault(c.entry.Name, ErrSetting, "%s%s; it has %s", fileio.Excerpt(g.name, 0), didYouMean(g.name, names), strings.Join(names, ", ")))
			continue
		}
		next, err := conf.Configured(g.name, g.value)
		if err != nil {
			faults = append(faults, c.db.fault(c.entry.Name, ErrSetting, "%s: %s", g.name, shortValue(err.Error(), g.value)))
			continue
		}
		conf = next
	}
	c.settings = list
	if c.entry.DB == nil {
		// The entry belongs to the database, where other queries find it: the choice gets one of its own.
		e := *c.entry
		e.Rewriter = conf
		c.entry = &e
		return faults
	}
	c.driver = conf.(Driver)
	return faults
}

// shortValue returns a message about a value with an excerpt of it.
func shortValue(message, value string) string {
	if short := fileio.Excerpt(value, 0); short != value {
		return strings.ReplaceAll(message, value, short)
	}
	return message
}

// configurable returns the rewriter of a choice, or the driver of its database, if it
// has settings.
func (c *choice) configurable() rewrite.Configurable {
	if c.entry.DB == nil {
		conf, _ := c.entry.Rewriter.(rewrite.Configurable)
		return conf
	}
	conf, _ := c.driver.(rewrite.Configurable)
	return conf
}
