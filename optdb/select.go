package optdb

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
)

// A choice is the decision of a query about an entry.
type choice struct {
	entry  *Entry
	db     *store
	path   string // names from the outermost database's entry down, joined by "/"
	depth  int
	taken  bool
	why    string // for people
	nested []*choice
	// dialect is that of the entry, or else of the innermost database around it that
	// has one.
	dialect  string
	driver   Driver    // of the database, if the entry is one, with its settings
	settings []setting // changed by the query
	listed   bool      // the pipeline gives settings, so a term of the query does not count
	sub      *Query    // the subquery for the database, if there is one
}

// maxChoices bounds the entries that a query decides about, those of a database as often as it is
// listed. The standard database has 504.
const maxChoices = 1 << 16

// A view is a query applied to a database, with what the databases around it
// contribute.
type view struct {
	q         Query
	include   []string
	avoid     []string // tags that q and the queries around it avoid
	inherited []string // tags of the entries around the database
	dialect   string   // of the database
	top       bool     // q is for this database itself: its cutoff and extras apply
	early     bool     // the database runs before PositionInplace
	out       string   // why nothing in the database is selected; empty: it is entered
	list      pipeline // of the entries; nil: none
	all       bool     // a pipeline lists the database without saying what in it
	faults    *[]error // of extras
	room      *int     // for choices, see maxChoices
}

// choose decides about all entries of a database, in the order in which they run.
// It recurses as deep as databases are nested.
func (d *store) choose(v view, path string, depth int) []*choice {
	// A pipeline may list a database over and over, and each time decides about all entries in it. So a
	// short text could ask for any amount of memory. The room is taken before anything is copied.
	if *v.room -= len(d.entries); *v.room < 0 {
		return nil
	}
	entries, _ := d.sorted()
	items := make([]*item, len(entries))
	if v.list != nil {
		entries, items = d.arranged(v.list)
		*v.faults = append(*v.faults, d.listFaults(v.list)...)
	}
	list := make([]*choice, 0, len(entries))
	for i, e := range entries {
		c := &choice{entry: e, db: d, path: path + e.Name, depth: depth, dialect: cmp.Or(e.Dialect, v.dialect)}
		c.taken, c.why = d.decide(v, e, items[i])
		c.enter(v, items[i])
		list = append(list, c)
	}
	if !v.top {
		return list
	}
	for _, x := range d.extras(v, path, depth) {
		// Behind all entries at the same position. What a pipeline leaves out stands at the end, in no order
		// that counts, so the search first passes over that.
		at := len(list)
		for at > 0 && (!list[at-1].taken && v.list != nil || list[at-1].entry.Position > x.entry.Position) {
			at--
		}
		list = slices.Insert(list, at, x)
	}
	return list
}

// extras turns the extras of a query into choices.
func (d *store) extras(v view, path string, depth int) []*choice {
	var list []*choice
	for i, x := range v.q.extras {
		e := &Entry{Name: x.name, Rewriter: x.rewriter, Position: x.position, Doc: "Added by the query."}
		faults := d.prepare(e)
		if d.byName[e.Name] != nil || slices.ContainsFunc(v.q.extras[:i], func(o extra) bool { return o.name == x.name }) {
			faults = append(faults, d.fault(e.Name, ErrDuplicate, "the query adds it"))
		}
		if (v.early || d.driver.Kind().Placed && depth == 0 && e.Position < PositionInplace) && e.hasInplace() {
			faults = append(faults, d.fault(e.Name, ErrInplace, "the query adds it"))
		}
		if *v.faults = append(*v.faults, faults...); len(faults) > 0 {
			continue
		}
		c := &choice{entry: e, db: d, path: path + e.Name, depth: depth, dialect: v.dialect, taken: v.out == "", why: "added by the query"}
		if !c.taken {
			c.why = v.out
		}
		c.enter(v, nil)
		list = append(list, c)
	}
	return list
}

// decide applies a query to one entry, which it of the pipeline names. For a database
// it decides whether to enter it; required tags concern only the entries inside.
func (d *store) decide(v view, e *Entry, it *item) (bool, string) {
	tags := d.tags(e)
	if v.out != "" {
		return false, v.out
	}
	// Exclusions come first. They win over all that selects, so they are also the reason to give.
	for _, t := range v.q.tags(exclude) {
		if slices.Contains(tags, t) {
			return false, "excluded by -" + t
		}
	}
	if t, ok := v.avoids(e, tags, it); ok {
		return false, fmt.Sprintf("left out by ~%s, since the query names neither it nor the tag", t)
	}
	if v.top && v.q.hasCut && !(e.Position < v.q.cutoff) {
		return false, fmt.Sprintf("its position %s is not below the cutoff %s", formatPosition(e.Position), formatPosition(v.q.cutoff))
	}
	by := ""
	switch {
	case it != nil:
		by = "the pipeline lists it"
	case v.all:
		by = "the pipeline lists its database"
	case v.list != nil:
		return false, "the pipeline does not list it"
	default:
		i := slices.IndexFunc(v.include, func(t string) bool { return slices.Contains(tags, t) })
		if i < 0 {
			return false, noTag(v, tags)
		}
		by = "selected by +" + v.include[i]
	}
	if e.DB == nil {
		for _, t := range v.q.tags(require) {
			if !slices.Contains(tags, t) && !slices.Contains(v.inherited, t) {
				return false, fmt.Sprintf("it lacks the required tag &%s, its tags are %s", t, strings.Join(tags, " "))
			}
		}
	}
	return true, by
}

// avoids returns a tag for which an entry is left out because nothing in the query names it.
func (v view) avoids(e *Entry, tags []string, it *item) (tag string, ok bool) {
	if it != nil || v.all || slices.Contains(v.include, e.Name) {
		return "", false
	}
	i := slices.IndexFunc(v.avoid, func(t string) bool {
		return slices.Contains(tags, t) && !slices.Contains(v.include, t) && !slices.Contains(v.q.tags(require), t)
	})
	if i < 0 {
		return "", false
	}
	return v.avoid[i], true
}

func noTag(v view, tags []string) string {
	if len(v.include) == 0 {
		return "the query includes nothing"
	}
	return fmt.Sprintf("no tag of +%s, its tags are %s", fileio.Excerpt(strings.Join(v.include, " +"), 0), strings.Join(tags, " "))
}

// enter applies settings, and decides about the entries of a nested database. A database
// that is not selected by its own tags is entered for the entries in it that the
// query names.
func (c *choice) enter(v view, it *item) {
	settings := v.q.settingsOf(c.entry)
	if it != nil && it.settings != nil {
		settings, c.listed = it.settings, true
	}
	if c.entry.DB == nil {
		*v.faults = append(*v.faults, c.configure(settings)...)
		return
	}
	// Before the settings, which replace it by one that has them.
	c.driver = c.entry.DB.base().driver
	*v.faults = append(*v.faults, c.configure(settings)...)
	inner := view{
		inherited: append(slices.Clone(v.inherited), c.db.tags(c.entry)...), dialect: c.dialect, faults: v.faults, room: v.room,
		avoid: v.avoid, early: v.early || c.depth == 0 && c.db.driver.Kind().Placed && c.entry.Position < PositionInplace,
	}
	var own bool
	// If there are both a subquery and entries that a pipeline lists in the database, the list counts.
	if inner.q, own = v.q.subFor(c.entry); own && (it == nil || it.nested == nil) {
		inner.include = inner.q.tags(include)
		inner.list = inner.q.listed
		inner.top = true
		c.sub = &inner.q
		inner.avoid = append(slices.Clone(v.avoid), inner.q.tags(avoid)...)
	} else if v.list != nil || v.all {
		inner.all = it == nil || it.nested == nil
		if it != nil {
			inner.list = it.nested
		}
	} else {
		inner.include = v.include
	}
	// A query that names an entry gets it, without naming the database around it, which nobody has to know. But
	// a pipeline lists all that it wants.
	if !c.taken {
		if v.list != nil || v.all {
			inner.out = fmt.Sprintf("%s, which contains it, is not selected: %s", c.entry.Name, c.why)
		} else if named := c.named(v, inner.include); len(named) > 0 {
			inner.include = named
			c.taken, c.why = true, "entered for +"+strings.Join(named, " +")
		} else {
			inner.out = fmt.Sprintf("%s, which contains it, is not selected: %s", c.entry.Name, c.why)
		}
	}
	// Even if the database is left out: Explain then says of each entry in it why.
	c.nested = c.entry.DB.base().choose(inner, c.path+"/", c.depth+1)
	// Otherwise its driver would run, and have a line in the profile, for nothing.
	if c.taken && !slices.ContainsFunc(c.nested, func(n *choice) bool { return n.taken }) {
		c.taken, c.why = false, c.why+", but nothing in it is selected"
	}
}

// named returns the included tags that name entries in a database, if the database
// may be entered for them although its tags do not select it.
func (c *choice) named(v view, included []string) []string {
	d := c.db
	tags := d.tags(c.entry)
	if v.out != "" || slices.ContainsFunc(v.q.tags(exclude), func(t string) bool { return slices.Contains(tags, t) }) ||
		v.top && v.q.hasCut && !(c.entry.Position < v.q.cutoff) {
		return nil
	}
	var names []string
	for _, t := range included {
		for _, in := range c.entry.DB.base().databases() {
			if in.byName[t] != nil && !slices.Contains(names, t) && !(in.shared() && c.elsewhere(t)) {
				names = append(names, t)
			}
		}
	}
	return names
}

// elsewhere reports whether a database beside the one of a choice has an entry of that name. A rule
// of a database that shares its rules, such as one for saturation, does not open that database.
func (c *choice) elsewhere(name string) bool {
	for _, in := range c.db.databases() {
		if in.byName[name] != nil && !in.shared() {
			return true
		}
	}
	return false
}

// subFor returns the query for the database of an entry. A subquery may name the
// entry or the database.
func (q Query) subFor(e *Entry) (Query, bool) {
	if sub, ok := q.sub(e.Name); ok {
		return sub, true
	}
	return q.sub(e.DB.Name())
}

// vocabulary returns all tags, names among them, and the names of all databases that a
// query may use. Extras of the query count as entries.
func (d *store) vocabulary(q Query) (tags, dbs map[string]bool) {
	// A mode is a query of every database, even of one in which no entry has its tag.
	tags = map[string]bool{ModeFastRun: true, ModeFastCompile: true, TagInplace: true}
	dbs = make(map[string]bool)
	for _, in := range append(d.databases(), q.added(tags, dbs)...) {
		tags[in.name] = true
		for _, e := range in.entries {
			tags[e.Name] = true
			for _, t := range e.Tags {
				tags[t] = true
			}
			if e.DB != nil {
				dbs[e.Name], dbs[e.DB.Name()] = true, true
			}
		}
	}
	return tags, dbs
}

// added returns the databases among the extras of a query and its subqueries. It
// adds the names of all extras to tags and dbs.
func (q Query) added(tags, dbs map[string]bool) []*store {
	var list []*store
	for _, x := range q.extras {
		tags[x.name] = true
		if in, ok := x.rewriter.(Database); ok {
			dbs[x.name], dbs[in.Name()] = true, true
			list = append(list, in.base().databases()...)
		}
	}
	for _, s := range q.subs {
		list = append(list, s.q.added(tags, dbs)...)
	}
	return list
}

// unknown returns an error for every tag that no entry has, and every subquery for a
// database that does not exist.
func (q Query) unknown(tags, dbs map[string]bool) []error {
	var faults []error
	if by := q.tags(include); q.listed != nil && len(by) > 0 {
		faults = append(faults, fmt.Errorf("optdb: query %s: %w: +%s beside a pipeline, which lists all that it includes", q.excerpt(), ErrSyntax, fileio.Excerpt(by[0], 0)))
	}
	if q.lenient {
		return faults
	}
	for _, s := range q.settings {
		if !tags[s.entry] {
			faults = append(faults, fmt.Errorf("optdb: query %s: %w: settings of %s%s", q.excerpt(), ErrUnknownEntry, fileio.Excerpt(s.entry, 0), didYouMean(s.entry, keys(tags))))
		}
	}
	for _, t := range q.terms {
		if !tags[t.tag] {
			faults = append(faults, fmt.Errorf("optdb: query %s: %w %c%s%s", q.excerpt(), ErrUnknownTag, t.sign, fileio.Excerpt(t.tag, 0), didYouMean(t.tag, keys(tags))))
		}
	}
	for _, s := range q.subs {
		if !dbs[s.db] {
			faults = append(faults, fmt.Errorf("optdb: query %s: %w: no database is named %s%s", q.excerpt(), ErrUnknownEntry, fileio.Excerpt(s.db, 0), didYouMean(s.db, keys(dbs))))
		}
		faults = append(faults, s.q.unknown(tags, dbs)...)
	}
	if q.hasCut && math.IsNaN(q.cutoff) {
		faults = append(faults, fmt.Errorf("optdb: query %s: %w: the cutoff", q.excerpt(), ErrPosition))
	}
	return faults
}

func keys(set map[string]bool) []string {
	return slices.Sorted(maps.Keys(set))
}
