package optdb

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/errlist"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/rewrite"
)

// Check reports faults of the database, and of the databases in it, that are not
// known at registration: names of databases that no query can write, and
// constraints against entries that do not exist.
func (d *store) Check() error { return errlist.Join(d.faults()) }

func (d *store) faults() []error {
	var faults []error
	for _, in := range d.databases() {
		if !validTag(in.name) {
			faults = append(faults, fmt.Errorf("optdb: %w: %q is not a name for a database", ErrName, in.name))
		}
		faults = append(faults, in.orderFaults(true)...)
	}
	return faults
}

// entryFaults finds faults of an entry among others: tags that are names, and
// in-place rewriters before position 50.
func (d *store) entryFaults(e *Entry) []error {
	var faults []error
	// Names of entries, names of databases and tags are one vocabulary: +x in a query must not mean one entry
	// in one place and a set of entries in another.
	if e.Name == d.name {
		faults = append(faults, d.fault(e.Name, ErrTagIsName, "the database has that name, which is a tag of all its entries"))
	}
	for _, t := range e.Tags {
		if t != e.Name && d.byName[t] != nil {
			faults = append(faults, d.fault(e.Name, ErrTagIsName, "%s", t))
		}
	}
	// The other way around: an entry that was here before may have the new name as a tag.
	for _, o := range d.byTag[e.Name] {
		if o != e {
			faults = append(faults, d.fault(o.Name, ErrTagIsName, "%s", e.Name))
		}
	}
	if !e.hasInplace() {
		return faults
	}
	// The position in the outermost database decides when it runs.
	for _, top := range d.tops(e) {
		if !top.db.driver.Kind().Placed || top.entry.Position >= PositionInplace {
			continue
		}
		if e.inplace() {
			faults = append(faults, d.inplaceFault(e, top))
		}
		if e.DB == nil {
			continue
		}
		// A database may be filled first and registered later, so nothing in it was compared with this
		// position.
		for _, in := range e.DB.base().databases() {
			for _, inner := range in.byNames() {
				if inner.DB == nil && inner.inplace() {
					faults = append(faults, in.inplaceFault(inner, top))
				}
			}
		}
	}
	return faults
}

func (d *store) inplaceFault(e *Entry, top home) error {
	if e == top.entry {
		return d.fault(e.Name, ErrInplace, "it is at %v in %s; if that belongs at 50 or later in another database, register it there first", e.Position, d.name)
	}
	return d.fault(e.Name, ErrInplace, "%s, which contains it, is at %v in %s", top.entry.Name, top.entry.Position, top.db.name)
}

// tops returns the entries of outermost databases that contain an entry of d.
func (d *store) tops(e *Entry) []home {
	todo := []home{{d, e}}
	var tops []home
	for len(todo) > 0 {
		h := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		// Each way up is followed: a database may be in several others, at another position in each.
		if len(h.db.within) == 0 {
			tops = append(tops, h)
		}
		todo = append(todo, h.db.within...)
	}
	return tops
}

// hasInplace reports whether the entry, or an entry inside it, works in place.
func (e *Entry) hasInplace() bool {
	return e.inplace() || e.DB != nil && slices.ContainsFunc(e.DB.base().databases(), func(in *store) bool {
		return slices.ContainsFunc(in.entries, (*Entry).inplace)
	})
}

// orderFaults finds constraints that do not hold. If all entries are registered,
// constraints against unknown entries are faults, too.
func (d *store) orderFaults(complete bool) []error {
	// Add asks at each registration. Without this, filling a database would sort it again for every entry.
	if !slices.ContainsFunc(d.entries, func(e *Entry) bool { return len(e.Before)+len(e.After) > 0 }) {
		return nil
	}
	_, faults := d.sorted()
	if complete {
		return faults
	}
	return slices.DeleteFunc(faults, func(err error) bool { return errors.Is(err, ErrUnknownEntry) })
}

// inplace reports whether the rewriter makes operations work in place: it has the
// tag, or its rewrite.Description says so.
func (e *Entry) inplace() bool {
	return slices.Contains(e.Tags, TagInplace) || rewrite.Outline(e.Rewriter).Destroys
}

func (d *store) byNames() []*Entry {
	list := slices.Clone(d.entries)
	slices.SortFunc(list, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// sorted returns the entries in the order in which they run: by position, then by
// constraints, then by name. It reports constraints that do not hold.
func (d *store) sorted() ([]*Entry, []error) {
	list := d.byNames()
	// The list comes sorted by name. A stable sort by position then leaves no trace of who registered first.
	slices.SortStableFunc(list, func(a, b *Entry) int { return cmp.Compare(a.Position, b.Position) })
	orders, faults := d.orders(list)
	// Constraints between different positions hold or are faults already, so only entries that share a position
	// are left to arrange.
	for start := 0; start < len(list); {
		end := start + 1
		for end < len(list) && list[end].Position == list[start].Position {
			end++
		}
		if rest := settle(list[start:end], orders); len(rest) > 0 {
			faults = append(faults, d.fault(rest[0].Name, ErrOrder, "the constraints contradict each other: %s", entryNames(rest)))
		}
		start = end
	}
	return list, faults
}

// An order is a constraint between two entries.
type order struct{ before, after *Entry }

// orders collects the constraints of the entries, and reports those that the
// positions contradict.
func (d *store) orders(list []*Entry) ([]order, []error) {
	var orders []order
	var faults []error
	for _, e := range list {
		for i, o := range append(slices.Clone(e.Before), e.After...) {
			other := d.byName[o.Name]
			if other == nil {
				faults = append(faults, d.fault(e.Name, ErrUnknownEntry, "its order is declared against %s%s", o.Name, didYouMean(o.Name, d.names())))
				continue
			}
			before, after, word := e, other, "before"
			if i >= len(e.Before) {
				before, after, word = other, e, "after"
			}
			if before.Position > after.Position || before == after {
				faults = append(faults, d.fault(e.Name, ErrOrder, "it is at %v and must run %s %s, which is at %v, because %s",
					e.Position, word, other.Name, other.Position, o.Reason))
				continue
			}
			orders = append(orders, order{before, after})
		}
	}
	return orders, faults
}

// settle sorts entries at one position, given in the order of names, by the
// constraints. It returns the entries of a cycle.
func settle(list []*Entry, orders []order) []*Entry {
	rest := slices.Clone(list)
	for n := 0; len(rest) > 0; n++ {
		// The first by name of those that wait for nothing, so that the order does not depend on that of the
		// constraints.
		next := slices.IndexFunc(rest, func(e *Entry) bool {
			return !slices.ContainsFunc(orders, func(o order) bool { return o.after == e && slices.Contains(rest, o.before) })
		})
		// Everything left waits for something left: the entries of a cycle, and what comes behind it.
		if next < 0 {
			return rest
		}
		list[n] = rest[next]
		rest = slices.Delete(rest, next, next+1)
	}
	return nil
}

func entryNames(list []*Entry) string {
	return strings.Join(lists.Map(list, func(e *Entry) string { return e.Name }), ", ")
}
