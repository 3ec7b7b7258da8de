package optdb

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/rewrite"
)

// Check reports all faults of the database and of those in it together: those of
// registering, tags that are names of entries, positions of in-place rewriters,
// and orders that are not kept.
func (d *db) Check() error {
	var faults []error
	for _, in := range d.databases() {
		faults = append(faults, in.faults...)
		faults = append(faults, in.tagFaults()...)
		_, order := in.sorted()
		faults = append(faults, order...)
	}
	if d.kind == sequence {
		faults = append(faults, d.inplaceFaults()...)
	}
	return joined(faults)
}

// tagFaults finds tags that are names. The name of the database counts as a tag.
func (d *db) tagFaults() []error {
	var faults []error
	for _, e := range d.byNames() {
		if e.Name == d.name {
			faults = append(faults, d.fault(e.Name, ErrTagIsName, "the database has that name, which is a tag of all its entries"))
		}
		for _, t := range e.Tags {
			if t != e.Name && d.byName[t] != nil {
				faults = append(faults, d.fault(e.Name, ErrTagIsName, "%s", t))
			}
		}
	}
	return faults
}

// inplaceFaults finds in-place rewriters before position 50. What counts is the
// position in the outermost database, since that is when they run.
func (d *db) inplaceFaults() []error {
	var faults []error
	for _, e := range d.byNames() {
		if e.Position >= PositionInplace {
			continue
		}
		if e.inplace() {
			faults = append(faults, d.fault(e.Name, ErrInplace, "it is at %v", e.Position))
		}
		if e.DB == nil {
			continue
		}
		for _, in := range e.DB.base().databases() {
			for _, inner := range in.byNames() {
				if inner.DB == nil && inner.inplace() {
					faults = append(faults, in.fault(inner.Name, ErrInplace, "%s, which has it, is at %v in %s", e.Name, e.Position, d.name))
				}
			}
		}
	}
	return faults
}

// inplace reports whether the rewriter makes operations work in place: it has the
// tag, or says so as a rewrite.Inplacer.
func (e *Entry) inplace() bool {
	in, ok := e.Rewriter.(rewrite.Inplacer)
	return ok && in.Inplace() || slices.Contains(e.Tags, TagInplace)
}

func (d *db) byNames() []*Entry {
	list := slices.Clone(d.entries)
	slices.SortFunc(list, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// sorted returns the entries in the order in which they run: by position, then
// as declared, then by name. It reports declared orders that are not kept.
func (d *db) sorted() ([]*Entry, []error) {
	list := d.byNames()
	slices.SortStableFunc(list, func(a, b *Entry) int { return cmp.Compare(a.Position, b.Position) })
	orders, faults := d.orders(list)
	for start := 0; start < len(list); {
		end := start + 1
		for end < len(list) && list[end].Position == list[start].Position {
			end++
		}
		if rest := settle(list[start:end], orders); len(rest) > 0 {
			faults = append(faults, d.fault(rest[0].Name, ErrOrder, "the declared orders contradict each other: %s", entryNames(rest)))
		}
		start = end
	}
	return list, faults
}

// An order is a declared one between two entries.
type order struct{ before, after *Entry }

// orders collects what the entries declare and finds what the positions
// contradict.
func (d *db) orders(list []*Entry) ([]order, []error) {
	var orders []order
	var faults []error
	for _, e := range list {
		for i, o := range append(slices.Clone(e.Before), e.After...) {
			other := d.byName[o.Name]
			if other == nil {
				faults = append(faults, d.fault(e.Name, ErrUnknownEntry, "it is ordered against %s%s", o.Name, didYouMean(o.Name, d.names())))
				continue
			}
			before, after, word := e, other, "before"
			if i >= len(e.Before) {
				before, after, word = other, e, "after"
			}
			if before.Position > after.Position || before == after {
				faults = append(faults, d.fault(e.Name, ErrOrder, "it is at %v and has to run %s %s, which is at %v, because %s",
					e.Position, word, other.Name, other.Position, o.Reason))
				continue
			}
			orders = append(orders, order{before, after})
		}
	}
	return orders, faults
}

// settle sorts entries at one position, which are sorted by name, by the declared
// orders. It returns those that are in a cycle.
func settle(list []*Entry, orders []order) []*Entry {
	rest := slices.Clone(list)
	for n := 0; len(rest) > 0; n++ {
		next := slices.IndexFunc(rest, func(e *Entry) bool {
			return !slices.ContainsFunc(orders, func(o order) bool { return o.after == e && slices.Contains(rest, o.before) })
		})
		if next < 0 {
			return rest
		}
		list[n] = rest[next]
		rest = slices.Delete(rest, next, next+1)
	}
	return nil
}

func entryNames(list []*Entry) string {
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name
	}
	return strings.Join(names, ", ")
}
