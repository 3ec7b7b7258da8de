package optdb

import (
	"fmt"
	"slices"
	"sort"

	"github.com/nnopt/nnopt/rewrite"
)

// PositionInplace is the position from which on rewriters may make operations
// work in place. The DestroyHandler, without which that would be unsafe, is
// attached right before it, because it makes every replacement dearer.
const PositionInplace = 50

// A Database is a [SequenceDB], an [EquilibriumDB], a [TopoDB] or a [GroupDB].
type Database interface {
	// Name returns the name that all entries of the database have as a tag.
	Name() string
	base() *db
}

// An Entry is what a database holds under a name.
type Entry struct {
	Name string
	// Doc says in a sentence what the entry does. It may be empty for a
	// database, and for a rewriter that is rewrite.Documented.
	Doc string
	// Rewriter is a rewrite.GraphRewriter or a rewrite.NodeRewriter, or a
	// Database, which may be given as DB just as well.
	Rewriter any
	DB       Database
	// Position is the place in a SequenceDB. In other databases entries are
	// tried in the order of their positions too, which are best left at 0.
	Position float64
	Tags     []string
	// Final and Cleanup concern a graph rewriter in an EquilibriumDB. A final
	// one runs at the end of each pass, a cleanup after everything that may
	// have changed the graph, any other one at the beginning of each pass.
	Final, Cleanup bool
	// Dialect is the dialect of the graphs that the entry is for, see
	// fgraph.DialectType. On graphs of another dialect the entry neither runs nor
	// appears in the profile, and nothing inside of it does if it is a database.
	// An entry without a dialect runs on every graph.
	Dialect string
	// Before and After are checked against the positions, and decide between
	// equal ones.
	Before, After []Constraint
}

// A Constraint names an entry that has to run before or after the one that
// declares it, and says why. Both entries are in the same database: to order
// entries of different databases, order the databases.
type Constraint struct{ Name, Reason string }

type kind uint8

const (
	sequence kind = iota
	equilibrium
	topo
	group
)

func (k kind) String() string {
	return [...]string{"SequenceDB", "EquilibriumDB", "TopoDB", "GroupDB"}[k]
}

// db is what the databases have in common.
type db struct {
	kind    kind
	name    string
	doc     string
	entries []*Entry // in the order of registering
	byName  map[string]*Entry
	within  []home // where the database is registered

	equilibrium rewrite.Equilibrium // its settings, without rules
	walk        rewrite.Walk
}

// A home is an entry for a database, and the database that has the entry.
type home struct {
	db    *db
	entry *Entry
}

func (d *db) base() *db { return d }

// Name returns the name of the database, which is a tag of all its entries.
func (d *db) Name() string { return d.name }

// Doc returns what Describe was given.
func (d *db) Doc() string { return d.doc }

// Describe documents the database with a sentence.
func (d *db) Describe(doc string) { d.doc = doc }

// Has reports whether there is an entry of that name.
func (d *db) Has(name string) bool { return d.byName[name] != nil }

// DatabaseOf returns the database of type D that is registered in another one
// under a name. The error says what there is instead.
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
		return none, d.fault(name, ErrUnknownEntry, "no database is called that%s", didYouMean(name, names))
	}
	found, ok := e.DB.(D)
	if !ok {
		return none, d.fault(name, ErrKind, "it is a %s", e.DB.base().kind)
	}
	return found, nil
}

// Add registers entries, all or none. All faults are returned together, but for
// a declared order against an entry that is still to come: that is found by
// Check and Build.
func (d *db) Add(entries ...Entry) error {
	var faults []error
	had := len(d.entries)
	for i := range entries {
		e := entries[i]
		own := d.prepare(&e)
		if d.byName[e.Name] != nil {
			own = append(own, d.fault(e.Name, ErrDuplicate, "an entry is registered twice; Replace swaps it"))
		}
		if len(own) == 0 {
			d.entries = append(d.entries, nil)
			d.put(len(d.entries)-1, &e)
		}
		faults = append(faults, own...)
	}
	for _, e := range d.entries[had:] {
		faults = append(faults, d.entryFaults(e)...)
	}
	if len(d.entries) > had {
		faults = append(faults, d.orderFaults(false)...)
	}
	if len(faults) > 0 {
		for i := range d.entries[had:] {
			d.put(had+i, nil)
		}
		d.entries = d.entries[:had]
	}
	return joined(faults)
}

// Replace puts an entry in the place of the one of the same name. It changes
// nothing if there is an error.
func (d *db) Replace(e Entry) error {
	have := d.byName[e.Name]
	if have == nil {
		return d.fault(e.Name, ErrUnknownEntry, "nothing to replace%s", didYouMean(e.Name, d.names()))
	}
	if faults := d.prepare(&e); len(faults) > 0 {
		return joined(faults)
	}
	at := slices.Index(d.entries, have)
	d.put(at, &e)
	faults := append(d.entryFaults(&e), d.orderFaults(false)...)
	if len(faults) > 0 {
		d.put(at, have)
	}
	return joined(faults)
}

// put makes e entry number i, in the place of what is there; both may be nil.
func (d *db) put(i int, e *Entry) {
	if old := d.entries[i]; old != nil {
		delete(d.byName, old.Name)
		if old.DB != nil {
			in := old.DB.base()
			in.within = slices.DeleteFunc(in.within, func(h home) bool { return h.entry == old })
		}
	}
	if d.entries[i] = e; e != nil {
		d.byName[e.Name] = e
		if e.DB != nil {
			in := e.DB.base()
			in.within = append(in.within, home{d, e})
		}
	}
}

// prepare checks what can be said about an entry by itself, and settles what it
// left open.
func (d *db) prepare(e *Entry) []error {
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
	switch {
	case e.DB != nil && e.Rewriter != nil:
		fault(ErrKind, "both a rewriter and a database")
	case e.DB != nil:
		if contains(e.DB.base(), d) {
			fault(ErrNested, "%s has %s in it", e.DB.Name(), d.name)
		}
		if e.Doc == "" {
			e.Doc = e.DB.base().doc
		}
	}
	if what := d.refuses(e); what != "" {
		fault(ErrKind, "%s", what)
		return faults
	}
	if e.Doc == "" {
		e.Doc = docOf(e.Rewriter)
	}
	if e.Doc == "" && e.DB == nil {
		fault(ErrNoDoc, "set Entry.Doc or have the rewriter implement rewrite.Documented")
	}
	return faults
}

// docOf returns the documentation of a rewriter.
func docOf(rewriter any) string {
	if d, ok := rewriter.(rewrite.Documented); ok {
		return d.RewriterDoc()
	}
	return ""
}

// refuses says why the database can't hold an entry, or nothing.
func (d *db) refuses(e *Entry) string {
	_, isGraph := e.Rewriter.(rewrite.GraphRewriter)
	_, isNode := e.Rewriter.(rewrite.NodeRewriter)
	if e.Final || e.Cleanup {
		switch {
		case e.Final && e.Cleanup:
			return "both final and cleanup"
		case d.kind != equilibrium || isNode && !isGraph || e.DB != nil && e.DB.base().kind == group:
			return "only a graph rewriter in an EquilibriumDB can be final or cleanup"
		}
	}
	switch {
	case e.DB != nil:
		isGroup := e.DB.base().kind == group
		if isGroup && d.kind == sequence {
			return fmt.Sprintf("the group %s can't stand in a SequenceDB, register it in a TopoDB or an EquilibriumDB", e.DB.Name())
		}
		if !isGroup && (d.kind == topo || d.kind == group) {
			return fmt.Sprintf("a %s holds node rewriters and groups, not the %s %s", d.kind, e.DB.base().kind, e.DB.Name())
		}
	case !isGraph && !isNode:
		return fmt.Sprintf("%T is neither a rewriter nor a database", e.Rewriter)
	case !isGraph && d.kind == sequence:
		return "a node rewriter can't stand in a SequenceDB, have it run by a rewrite.Walk or an EquilibriumDB"
	case !isNode && (d.kind == topo || d.kind == group):
		return fmt.Sprintf("a %s holds node rewriters, not a graph rewriter", d.kind)
	}
	return ""
}

func (d *db) fault(entry string, err error, format string, args ...any) error {
	return fmt.Errorf("optdb: %s/%s: %w: %s", d.name, entry, err, fmt.Sprintf(format, args...))
}

// tags returns all tags of an entry: its name, the name of the database, and its
// own.
func (d *db) tags(e *Entry) []string { return append([]string{e.Name, d.name}, e.Tags...) }

func (d *db) names() []string {
	names := make([]string, len(d.entries))
	for i, e := range d.entries {
		names[i] = e.Name
	}
	return names
}

// databases returns the database and all that are in it, each once, outer ones
// first and siblings by name.
func (d *db) databases() []*db {
	list := []*db{d}
	for i := 0; i < len(list); i++ {
		entries := slices.Clone(list[i].entries)
		sort.Slice(entries, func(a, b int) bool { return entries[a].Name < entries[b].Name })
		for _, e := range entries {
			if e.DB != nil && !slices.Contains(list, e.DB.base()) {
				list = append(list, e.DB.base())
			}
		}
	}
	return list
}

func contains(outer, inner *db) bool { return slices.Contains(outer.databases(), inner) }

// A SequenceDB holds graph rewriters and databases that run one after the other.
type SequenceDB struct{ db }

// NewSequenceDB returns an empty database.
func NewSequenceDB(name string) *SequenceDB { return &SequenceDB{newDB(sequence, name)} }

// Register adds an entry: a rewrite.GraphRewriter or a [Database]. The rewriter
// has to be a rewrite.Documented; Add takes the documentation with the entry.
func (d *SequenceDB) Register(name string, rewriterOrDB any, position float64, tags ...string) error {
	return d.Add(Entry{Name: name, Rewriter: rewriterOrDB, Position: position, Tags: tags})
}

// An EquilibriumDB holds node rewriters that are applied over and over again
// until none of them fires any more, and graph rewriters that run in each pass.
type EquilibriumDB struct{ db }

// NewEquilibriumDB returns an empty database.
func NewEquilibriumDB(name string) *EquilibriumDB {
	return &EquilibriumDB{newDB(equilibrium, name)}
}

// Configure sets how the rules are applied: the Order, IgnoreNewTrees and MaxUse
// of settings.
func (d *EquilibriumDB) Configure(settings rewrite.Equilibrium) *EquilibriumDB {
	d.equilibrium = settings
	return d
}

// Register adds an entry: a rewrite.NodeRewriter, a rewrite.GraphRewriter or a
// [Database]. The rewriter has to be a rewrite.Documented; Add takes the
// documentation with the entry.
func (d *EquilibriumDB) Register(name string, rewriterOrDB any, tags ...string) error {
	return d.Add(Entry{Name: name, Rewriter: rewriterOrDB, Tags: tags})
}

// A TopoDB holds node rewriters that are applied in one walk over the graph.
type TopoDB struct{ db }

// NewTopoDB returns an empty database.
func NewTopoDB(name string) *TopoDB { return &TopoDB{newDB(topo, name)} }

// Configure sets how the walk is done: the Order, VisitNew and MaxUse of
// settings.
func (d *TopoDB) Configure(settings rewrite.Walk) *TopoDB {
	d.walk = settings
	return d
}

// Register adds an entry: a rewrite.NodeRewriter or a [GroupDB].
func (d *TopoDB) Register(name string, rewriterOrDB any, tags ...string) error {
	return d.Add(Entry{Name: name, Rewriter: rewriterOrDB, Tags: tags})
}

// A GroupDB holds node rewriters that belong together. It has no driver: they
// join those of the TopoDB or EquilibriumDB that the group is registered in.
type GroupDB struct{ db }

// NewGroupDB returns an empty database.
func NewGroupDB(name string) *GroupDB { return &GroupDB{newDB(group, name)} }

// Register adds an entry: a rewrite.NodeRewriter or a [GroupDB].
func (d *GroupDB) Register(name string, rewriterOrDB any, tags ...string) error {
	return d.Add(Entry{Name: name, Rewriter: rewriterOrDB, Tags: tags})
}

func newDB(k kind, name string) db {
	return db{kind: k, name: name, byName: make(map[string]*Entry)}
}
