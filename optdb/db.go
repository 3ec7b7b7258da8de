package optdb

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/errlist"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/rewrite"
)

// PositionInplace is the first position at which rewriters may make operations
// work in place. That is unsafe without the DestroyHandler, which is attached
// right before this position because it makes every replacement more expensive.
const PositionInplace = 50

// A Database is a [DB], or what has one embedded: a [SequenceDB], an [EquilibriumDB], a [TopoDB], a
// [GroupDB], or a kind from elsewhere.
type Database interface {
	// Name returns the name of the database, which is a tag of all its entries.
	Name() string
	base() *store
}

// An Entry is a rewriter, or a nested database, in a database.
type Entry struct {
	Name string
	// Doc says in a sentence what the entry does. It may be empty for a
	// database, and for a rewriter that describes itself, see rewrite.Describer.
	Doc string
	// Rewriter is a rewrite.GraphRewriter, a rewrite.NodeRewriter or a Database.
	// A Database may also be given as DB.
	Rewriter any
	DB       Database
	// Position is the place in a SequenceDB. Other databases try their entries
	// in the order of positions, too; there it is best left at 0.
	Position float64
	Tags     []string
	// Final and Cleanup are for graph rewriters in an EquilibriumDB. By default
	// they run at the beginning of each pass, final ones at its end, and cleanups
	// after everything that may have changed the graph.
	Final, Cleanup bool
	// Dialect is the dialect of the graphs that the entry is for, see
	// fgraph.DialectType. On graphs of another dialect the entry, with everything
	// in it if it is a database, neither runs nor appears in the profile. An entry
	// without a dialect runs on every graph.
	Dialect string
	// Before and After are checked against the positions, and order entries at
	// equal positions.
	Before, After []Constraint
}

// A Constraint names an entry that must run before or after the one that
// declares it, and says why. Both entries are in the same database: to order
// entries of different databases, order the databases.
type Constraint struct{ Name, Reason string }

// A DB holds entries. Its driver says which, and makes a rewriter of those that a query selects. All
// kinds of databases have the methods of a DB, and a method Register of their own.
type DB struct{ *store }

// New returns an empty database of the kind that the driver makes it.
func New(name string, driver Driver) *DB { return &DB{newStore(name, driver)} }

// A store is what all kinds of databases embed. It is not exported, so that "go doc" shows its methods
// with those of each kind.
type store struct {
	driver  Driver
	name    string
	entries []*Entry // in the order of registration
	byName  map[string]*Entry
	byTag   map[string][]*Entry
	within  []home // where the database is registered
}

func newStore(name string, driver Driver) *store {
	return &store{name: name, driver: driver, byName: make(map[string]*Entry), byTag: make(map[string][]*Entry)}
}

// SetDriver replaces the driver by one of the same kind with other settings. Optimizers that were
// built before keep theirs.
func (d *store) SetDriver(driver Driver) { d.driver = driver }

// A home is an entry for a database, and the database that holds the entry.
type home struct {
	db    *store
	entry *Entry
}

func (d *store) base() *store { return d }

// unmade says what is wrong with a database of which made is false: its zero value, or one without a driver.
const unmade = "the database is of no kind: make it with New and a driver, NewSequenceDB, NewEquilibriumDB, NewTopoDB or NewGroupDB"

func (d *store) made() bool { return d != nil && d.driver != nil }

// Name returns the name of the database, which is a tag of all its entries.
func (d *store) Name() string { return d.name }

// Has reports whether the database has an entry of that name.
func (d *store) Has(name string) bool { return d.byName[name] != nil }

// DatabaseOf returns the database of type D that is registered under a name in
// another database. If there is none, the error says what there is.
func DatabaseOf[D Database](in Database, name string) (D, error) {
	var none D
	d := in.base()
	e := d.byName[name]
	if e == nil || e.DB == nil {
		var names []string
		for _, e := range d.entries {
			if e.DB != nil {
				names = append(names, e.Name)
			}
		}
		return none, d.fault(name, ErrUnknownEntry, "no database has that name%s", didYouMean(name, names))
	}
	found, ok := e.DB.(D)
	if !ok {
		return none, d.fault(name, ErrKind, "it is a %s", e.DB.base().driver.Kind().Name)
	}
	return found, nil
}

// Add registers entries, all or none. It returns all faults together. Only Check
// and Build report a constraint that names an entry which is not registered yet.
func (d *store) Add(entries ...Entry) error {
	if !d.made() {
		return fmt.Errorf("optdb: %w: %s", ErrKind, unmade)
	}
	var faults []error
	had := len(d.entries)
	for i := range entries {
		e := entries[i]
		own := append(d.prepare(&e), d.document(&e)...)
		if d.byName[e.Name] != nil {
			own = append(own, d.fault(e.Name, ErrDuplicate, "an entry is registered twice; Replace swaps it, Remove makes room"))
		}
		if len(own) == 0 {
			d.entries = append(d.entries, nil)
			d.put(len(d.entries)-1, &e)
		}
		faults = append(faults, own...)
	}
	// Only when all are in: entries of one call are checked against each other, too.
	for _, e := range d.entries[had:] {
		faults = append(faults, d.entryFaults(e)...)
	}
	if len(d.entries) > had {
		faults = append(faults, d.orderFaults(false)...)
	}
	if len(faults) > 0 {
		// By put, not only by cutting the list, since the indexes by name and by tag know the new entries.
		for i := range d.entries[had:] {
			d.put(had+i, nil)
		}
		d.entries = d.entries[:had]
	}
	return errlist.Join(faults)
}

// Replace replaces the entry of the same name, which is in this database and not in one inside it. What
// the new entry leaves out stays as it is, except for the documentation: the tags, the position, the
// dialect, the order, and whether it is final or a cleanup. An empty list, as opposed to nil, leaves the
// entry without tags or constraints. On an error Replace changes nothing.
func (d *store) Replace(e Entry) error {
	have := d.byName[e.Name]
	if have == nil {
		return d.absent(e.Name, "nothing to replace")
	}
	// Before prepare, which no longer tells an empty list from none.
	e.keep(have)
	if faults := append(d.prepare(&e), d.document(&e)...); len(faults) > 0 {
		return errlist.Join(faults)
	}
	at := slices.Index(d.entries, have)
	d.put(at, &e)
	// The new entry is in its place by now, because faults are found among entries that are there.
	faults := append(d.entryFaults(&e), d.orderFaults(false)...)
	if len(faults) > 0 {
		d.put(at, have)
	}
	return errlist.Join(faults)
}

// keep takes over what an entry leaves out from the one that it replaces.
func (e *Entry) keep(have *Entry) {
	if e.Tags == nil {
		e.Tags = have.Tags
	}
	if e.Before == nil {
		e.Before = have.Before
	}
	if e.After == nil {
		e.After = have.After
	}
	if !e.Final && !e.Cleanup {
		e.Final, e.Cleanup = have.Final, have.Cleanup
	}
	e.Position, e.Dialect = cmp.Or(e.Position, have.Position), cmp.Or(e.Dialect, have.Dialect)
}

// Remove removes the entry of that name, which is in this database and not in one inside it. Constraints
// of other entries against it are removed, too. Optimizers that were built before keep the entry.
func (d *store) Remove(name string) error {
	if !d.Has(name) {
		return d.absent(name, "nothing to remove")
	}
	d.remove(name)
	against := func(c Constraint) bool { return c.Name == name }
	for i, e := range d.entries {
		if !slices.ContainsFunc(e.Before, against) && !slices.ContainsFunc(e.After, against) {
			continue
		}
		// Optimizers that were built before have the old entry.
		without := *e
		without.Before = slices.DeleteFunc(slices.Clone(e.Before), against)
		without.After = slices.DeleteFunc(slices.Clone(e.After), against)
		d.put(i, &without)
	}
	return nil
}

// remove removes an entry, but no constraint.
func (d *store) remove(name string) {
	at := slices.Index(d.entries, d.byName[name])
	d.put(at, nil)
	d.entries = slices.Delete(d.entries, at, at+1)
}

// absent returns the error for an entry that the database does not have, which says where it is.
func (d *store) absent(name, what string) error {
	var at []string
	for _, in := range d.databases() {
		if in != d && in.byName[name] != nil {
			at = append(at, in.name)
		}
	}
	if len(at) > 0 {
		return d.fault(name, ErrUnknownEntry, "%s here: it is in %s, see DatabaseOf", what, strings.Join(at, " and in "))
	}
	return d.fault(name, ErrUnknownEntry, "%s%s", what, didYouMean(name, d.Names()))
}

// put replaces entry number i with e. Both may be nil.
func (d *store) put(i int, e *Entry) {
	if old := d.entries[i]; old != nil {
		delete(d.byName, old.Name)
		for _, t := range old.Tags {
			d.byTag[t] = slices.DeleteFunc(d.byTag[t], func(e *Entry) bool { return e == old })
		}
		if old.DB != nil {
			in := old.DB.base()
			in.within = slices.DeleteFunc(in.within, func(h home) bool { return h.entry == old })
		}
	}
	if d.entries[i] = e; e != nil {
		d.byName[e.Name] = e
		for _, t := range e.Tags {
			d.byTag[t] = append(d.byTag[t], e)
		}
		if e.DB != nil {
			in := e.DB.base()
			in.within = append(in.within, home{d, e})
		}
	}
}

// prepare checks an entry, all but its documentation, and fills in its defaults.
func (d *store) prepare(e *Entry) []error {
	var faults []error
	fault := func(err error, format string, args ...any) {
		faults = append(faults, d.fault(e.Name, err, format, args...))
	}
	if !validTag(e.Name) {
		fault(ErrName, "%q is not a name", e.Name)
	}
	e.Tags = slices.Compact(slices.Sorted(slices.Values(e.Tags)))
	for _, t := range e.Tags {
		if !validTag(t) {
			fault(ErrName, "%q is not a tag", t)
		}
	}
	if !validPosition(e.Position) {
		fault(ErrPosition, "%v", e.Position)
	}
	if in, ok := e.Rewriter.(Database); ok && e.DB == nil {
		e.DB, e.Rewriter = in, nil
	}
	switch what := d.refuses(e); {
	case e.DB != nil && e.Rewriter != nil:
		fault(ErrKind, "both a rewriter and a database")
	case what != "":
		fault(ErrKind, "%s", what)
	case e.DB != nil:
		// All that recurses into databases relies on this to end.
		if slices.Contains(e.DB.base().databases(), d) {
			fault(ErrNested, "%s has %s in it", e.DB.Name(), d.name)
		}
	}
	return faults
}

// document fills in the documentation of an entry from its rewriter.
func (d *store) document(e *Entry) []error {
	if e.Doc != "" || e.DB != nil || d.refuses(e) != "" {
		return nil
	}
	if e.Doc = rewrite.Outline(e.Rewriter).Doc; e.Doc == "" {
		return []error{d.fault(e.Name, ErrNoDoc, "set Entry.Doc or have the rewriter implement rewrite.Describer")}
	}
	return nil
}

// refuses says why the database can't hold an entry. It returns "" if it can.
func (d *store) refuses(e *Entry) string {
	// First, because nothing else can be asked about what is nil.
	if e.DB != nil {
		if !reflect.Indirect(reflect.ValueOf(e.DB)).IsValid() || !e.DB.base().made() {
			return unmade
		}
	} else if err := rewrite.Check(e.Rewriter); err != nil && e.Rewriter != nil {
		return err.Error()
	}
	_, isGraph := e.Rewriter.(rewrite.GraphRewriter)
	_, isNode := e.Rewriter.(rewrite.NodeRewriter)
	isGroup := e.DB != nil && e.DB.base().isGroup()
	if e.Final && e.Cleanup {
		return "both final and cleanup"
	}
	_, passes := d.driver.(equilibrium)
	if (e.Final || e.Cleanup) && (!passes || isNode && !isGraph || isGroup) {
		return "only a graph rewriter in an EquilibriumDB can be final or cleanup"
	}
	kind := d.driver.Kind()
	switch {
	case isGroup && !kind.Rules:
		return fmt.Sprintf("the group %s can't be in a %s, register it in a TopoDB or an EquilibriumDB", e.DB.Name(), kind.Name)
	case e.DB != nil && !isGroup && !kind.Graphs:
		return fmt.Sprintf("a %s holds node rewriters and groups, not the %s %s", kind.Name, e.DB.base().driver.Kind().Name, e.DB.Name())
	case e.DB != nil:
		return d.refusesIn(e.DB.base())
	case !isGraph && !isNode:
		return fmt.Sprintf("%T is neither a rewriter nor a database", e.Rewriter)
	case !isGraph && !kind.Rules:
		return fmt.Sprintf("a node rewriter can't be in a %s, have it run by a rewrite.Walk or an EquilibriumDB", kind.Name)
	case !isNode && !kind.Graphs:
		return fmt.Sprintf("a %s holds node rewriters, not a graph rewriter", kind.Name)
	case isNode:
		return d.refusesRule(e.Rewriter.(rewrite.NodeRewriter))
	}
	return ""
}

// refusesRule says why a rule can't be in the database: its driver refuses it, or that of a
// database around it if it is a group.
func (d *store) refusesRule(r rewrite.NodeRewriter) string {
	if check := d.driver.Kind().CheckRule; check != nil {
		if err := check(r); err != nil {
			return err.Error()
		}
	}
	// A group runs nothing. Its rules end up in the databases around it, whose drivers have a say, too.
	if d.isGroup() {
		for _, h := range d.within {
			if why := h.db.refusesRule(r); why != "" {
				return why
			}
		}
	}
	return ""
}

// refusesIn says why a rule of a group, or of a group in it, can't be in the database.
func (d *store) refusesIn(in *store) string {
	if !in.isGroup() {
		return ""
	}
	for _, e := range in.entries {
		why := ""
		if r, ok := e.Rewriter.(rewrite.NodeRewriter); ok {
			why = d.refusesRule(r)
		} else {
			why = d.refusesIn(e.DB.base())
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// isGroup reports whether the rules of the database join those of the databases that it is in.
func (d *store) isGroup() bool {
	_, ok := d.driver.(group)
	return ok
}

// shared reports whether the database, or one that it is in if it is a group, shares its rules with
// others, see [Kind.Shared].
func (d *store) shared() bool {
	return d.driver.Kind().Shared || d.isGroup() && slices.ContainsFunc(d.within, func(h home) bool { return h.db.shared() })
}

func (d *store) fault(entry string, err error, format string, args ...any) error {
	return fmt.Errorf("optdb: %s/%s: %w: %s", d.name, fileio.Excerpt(entry, 0), err, fmt.Sprintf(format, args...))
}

// tags returns all tags of an entry: its name, the name of its database, and its
// own tags.
func (d *store) tags(e *Entry) []string { return append([]string{e.Name, d.name}, e.Tags...) }

func (d *store) names() []string {
	return lists.Map(d.entries, func(e *Entry) string { return e.Name })
}

// databases returns the database and all databases in it, each once, outer ones
// first and siblings by name.
func (d *store) databases() []*store {
	list := []*store{d}
	for i := 0; i < len(list); i++ {
		for _, e := range list[i].byNames() {
			if e.DB != nil && !slices.Contains(list, e.DB.base()) {
				list = append(list, e.DB.base())
			}
		}
	}
	return list
}
