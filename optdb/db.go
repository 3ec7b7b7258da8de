package optdb

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/passes/saturate"
	"github.com/nnopt/nnopt/rewrite"
)

// PositionInplace is the first position at which rewriters may make operations
// work in place. That is unsafe without the DestroyHandler, which is attached
// right before this position because it makes every replacement more expensive.
const PositionInplace = 50

// A Database is a [SequenceDB], an [EquilibriumDB], a [SaturationDB], a [TopoDB] or a
// [GroupDB].
type Database interface {
	// Name returns the name of the database, which is a tag of all its entries.
	Name() string
	base() *db
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

type kind uint8

const (
	sequence kind = iota
	equilibrium
	topo
	group
	saturation
)

func (k kind) String() string {
	return [...]string{"SequenceDB", "EquilibriumDB", "TopoDB", "GroupDB", "SaturationDB"}[k]
}

// db is the common part of the databases.
type db struct {
	kind    kind
	name    string
	entries []*Entry // in the order of registration
	byName  map[string]*Entry
	within  []home // where the database is registered

	equilibrium rewrite.Equilibrium // its settings, without rules
	walk        rewrite.Walk
	saturation  saturate.Pass
}

// A home is an entry for a database, and the database that holds the entry.
type home struct {
	db    *db
	entry *Entry
}

func (d *db) base() *db { return d }

// Name returns the name of the database, which is a tag of all its entries.
func (d *db) Name() string { return d.name }

// Has reports whether the database has an entry of that name.
func (d *db) Has(name string) bool { return d.byName[name] != nil }

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
		return none, d.fault(name, ErrKind, "it is a %s", e.DB.base().kind)
	}
	return found, nil
}

// Add registers entries, all or none. It returns all faults together. Only Check
// and Build report a constraint that names an entry which is not registered yet.
func (d *db) Add(entries ...Entry) error {
	var faults []error
	had := len(d.entries)
	for i := range entries {
		e := entries[i]
		own := append(d.prepare(&e), d.document(&e)...)
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

// Replace replaces the entry of the same name. On an error it changes nothing.
func (d *db) Replace(e Entry) error {
	have := d.byName[e.Name]
	if have == nil {
		return d.fault(e.Name, ErrUnknownEntry, "nothing to replace%s", didYouMean(e.Name, d.names()))
	}
	if faults := append(d.prepare(&e), d.document(&e)...); len(faults) > 0 {
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

// put replaces entry number i with e. Both may be nil.
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

// prepare checks an entry, all but its documentation, and fills in its defaults.
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
		if slices.Contains(e.DB.base().databases(), d) {
			fault(ErrNested, "%s has %s in it", e.DB.Name(), d.name)
		}
	}
	if what := d.refuses(e); what != "" {
		fault(ErrKind, "%s", what)
	}
	return faults
}

// document fills in the documentation of an entry from its rewriter.
func (d *db) document(e *Entry) []error {
	if e.Doc != "" || e.DB != nil || d.refuses(e) != "" {
		return nil
	}
	if e.Doc = rewrite.Outline(e.Rewriter).Doc; e.Doc == "" {
		return []error{d.fault(e.Name, ErrNoDoc, "set Entry.Doc or have the rewriter implement rewrite.Describer")}
	}
	return nil
}

// refuses says why the database can't hold an entry. It returns "" if it can.
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
		if !isGroup && d.rulesOnly() {
			return fmt.Sprintf("a %s holds node rewriters and groups, not the %s %s", d.kind, e.DB.base().kind, e.DB.Name())
		}
		if d.saturates() {
			return e.DB.base().unreadable()
		}
	case !isGraph && !isNode:
		return fmt.Sprintf("%T is neither a rewriter nor a database", e.Rewriter)
	case !isGraph && d.kind == sequence:
		return "a node rewriter can't stand in a SequenceDB, have it run by a rewrite.Walk or an EquilibriumDB"
	case !isNode && d.rulesOnly():
		return fmt.Sprintf("a %s holds node rewriters, not a graph rewriter", d.kind)
	case d.saturates():
		if err := saturate.Check(e.Rewriter.(rewrite.NodeRewriter)); err != nil {
			return err.Error()
		}
	}
	return ""
}

// rulesOnly reports whether the database holds nothing but node rewriters, and groups of them.
func (d *db) rulesOnly() bool { return d.kind == topo || d.kind == group || d.kind == saturation }

// saturates reports whether the rules of the database must be text: it is a SaturationDB, or a
// group in one.
func (d *db) saturates() bool {
	return d.kind == saturation || d.kind == group && slices.ContainsFunc(d.within, func(h home) bool { return h.db.saturates() })
}

// unreadable says which rule of a group can't be used in saturation, or returns "".
func (d *db) unreadable() string {
	for _, e := range d.entries {
		if r, ok := e.Rewriter.(rewrite.NodeRewriter); ok {
			if err := saturate.Check(r); err != nil {
				return err.Error()
			}
		} else if why := e.DB.base().unreadable(); why != "" {
			return why
		}
	}
	return ""
}

func (d *db) fault(entry string, err error, format string, args ...any) error {
	return fmt.Errorf("optdb: %s/%s: %w: %s", d.name, fileio.Excerpt(entry, 0), err, fmt.Sprintf(format, args...))
}

// tags returns all tags of an entry: its name, the name of its database, and its
// own tags.
func (d *db) tags(e *Entry) []string { return append([]string{e.Name, d.name}, e.Tags...) }

func (d *db) names() []string {
	names := make([]string, len(d.entries))
	for i, e := range d.entries {
		names[i] = e.Name
	}
	return names
}

// databases returns the database and all databases in it, each once, outer ones
// first and siblings by name.
func (d *db) databases() []*db {
	list := []*db{d}
	for i := 0; i < len(list); i++ {
		for _, e := range list[i].byNames() {
			if e.DB != nil && !slices.Contains(list, e.DB.base()) {
				list = append(list, e.DB.base())
			}
		}
	}
	return list
}

// A SequenceDB holds graph rewriters and databases that run one after the other.
type SequenceDB struct{ db }

// NewSequenceDB returns an empty database.
func NewSequenceDB(name string) *SequenceDB { return &SequenceDB{newDB(sequence, name)} }

// Register adds a rewrite.GraphRewriter that describes itself, see
// rewrite.Describer, or a [Database]. To register any other rewriter, or a database
// with documentation, use Add.
func (d *SequenceDB) Register(name string, rewriterOrDB any, position float64, tags ...string) error {
	return d.Add(Entry{Name: name, Rewriter: rewriterOrDB, Position: position, Tags: tags})
}

// An EquilibriumDB holds node rewriters that are applied over and over until none
// of them fires, and graph rewriters that run in each of these passes.
type EquilibriumDB struct{ unordered }

// NewEquilibriumDB returns an empty database.
func NewEquilibriumDB(name string) *EquilibriumDB {
	return &EquilibriumDB{unordered{newDB(equilibrium, name)}}
}

// Configure sets how the rules are applied: the Order, IgnoreNewTrees and MaxUse
// of settings.
func (d *EquilibriumDB) Configure(settings rewrite.Equilibrium) *EquilibriumDB {
	d.equilibrium = settings
	return d
}

// A SaturationDB holds rules that are text, see package pattern, or groups of them. Instead of
// replacing, it collects what all of them say about a graph, and takes the cheapest form, see package
// saturate. Rules that are Go functions can't be registered.
type SaturationDB struct{ unordered }

// NewSaturationDB returns an empty database.
func NewSaturationDB(name string) *SaturationDB {
	return &SaturationDB{unordered{newDB(saturation, name)}}
}

// Configure sets the limits, those of settings.
func (d *SaturationDB) Configure(settings saturate.Pass) *SaturationDB {
	d.saturation = settings
	return d
}

// A TopoDB holds node rewriters, or groups of them, that are applied in one walk
// over the graph.
type TopoDB struct{ unordered }

// NewTopoDB returns an empty database.
func NewTopoDB(name string) *TopoDB { return &TopoDB{unordered{newDB(topo, name)}} }

// Configure sets how the graph is walked: the Order, VisitNew and MaxUse of
// settings.
func (d *TopoDB) Configure(settings rewrite.Walk) *TopoDB {
	d.walk = settings
	return d
}

// A GroupDB holds node rewriters that belong together. It has no driver: they
// join the rewriters of the TopoDB or EquilibriumDB that the group is registered
// in.
type GroupDB struct{ unordered }

// NewGroupDB returns an empty database.
func NewGroupDB(name string) *GroupDB { return &GroupDB{unordered{newDB(group, name)}} }

// unordered is a database whose entries need no position.
type unordered struct{ db }

// Register adds a rewriter that describes itself, see rewrite.Describer, or a
// [Database]. To register any other rewriter, or a database with documentation, use
// Add.
func (d *unordered) Register(name string, rewriterOrDB any, tags ...string) error {
	return d.Add(Entry{Name: name, Rewriter: rewriterOrDB, Tags: tags})
}

func newDB(k kind, name string) db {
	return db{kind: k, name: name, byName: make(map[string]*Entry)}
}
