package optdb

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Query says which entries of a database to select. It is a value: every
// method returns a new query and leaves its receiver as it was, so that queries
// can be derived from one another, shared and stored. The zero Query selects
// nothing.
//
// An entry is selected when it carries one of the included tags, all the
// required ones and none of the excluded ones. Its name is one of its tags, and
// so is the name of its database. What is in a nested database is selected only
// if that is selected too, or if the name of the entry is included: a tag of
// the entry does not open the database.
type Query struct {
	terms   []term // in the order given, without duplicates
	subs    []subquery
	extras  []Extra
	cutoff  float64
	hasCut  bool
	lenient bool
	debug   bool
}

type sign byte

const (
	include sign = '+'
	require sign = '&'
	exclude sign = '-'
)

type term struct {
	sign sign
	tag  string
}

type subquery struct {
	db string
	q  Query
}

// An Extra is a rewriter that a query brings along. It joins the database that
// the query is for, at its position and whatever the tags say. That of a subquery
// is the nested database.
type Extra struct {
	Name     string
	Rewriter any // as in Entry
	Position float64
}

// Include returns the query that selects the entries with any of the tags.
func Include(tags ...string) Query { return Query{}.Including(tags...) }

// Including returns the query that also selects the entries with any of the tags.
func (q Query) Including(tags ...string) Query { return q.with(include, tags) }

// Requiring returns the query that selects only entries with all of the tags.
// An entry of a nested database may also have a tag through its database.
func (q Query) Requiring(tags ...string) Query { return q.with(require, tags) }

// Excluding returns the query that selects no entry with any of the tags, and
// nothing inside of a database with one of them.
func (q Query) Excluding(tags ...string) Query { return q.with(exclude, tags) }

// Subquery returns the query that selects from the nested database of that name
// by sub, instead of by itself. Whether the database is entered at all is still
// up to q.
func (q Query) Subquery(db string, sub Query) Query {
	q.subs = slices.Clone(q.subs)
	for i := range q.subs {
		if q.subs[i].db == db {
			q.subs[i].q = sub
			return q
		}
	}
	q.subs = append(q.subs, subquery{db, sub})
	return q
}

// Cutoff returns the query that selects only entries at positions below the
// given one. It concerns the database that is queried; nested ones have
// positions of their own, and a subquery its own cutoff.
func (q Query) Cutoff(position float64) Query {
	q.cutoff, q.hasCut = position, true
	return q
}

// With returns the query that also runs a rewriter, or a database, which is not in
// the database.
func (q Query) With(name string, rewriter any, position float64) Query {
	q.extras = append(slices.Clone(q.extras), Extra{name, rewriter, position})
	return q
}

// Lenient returns the query for which a tag that no entry has is not an error.
// It serves queries that are written for databases with plug-ins.
func (q Query) Lenient() Query {
	q.lenient = true
	return q
}

// Empty reports whether the query can't select anything.
func (q Query) Empty() bool {
	return len(q.extras) == 0 && !slices.ContainsFunc(q.terms, func(t term) bool { return t.sign == include })
}

// Debugging reports whether the query began as [ModeDebug].
func (q Query) Debugging() bool { return q.debug }

// Equal reports whether the queries print alike and bring along the same
// rewriters by name and position.
func (q Query) Equal(o Query) bool { return q.String() == o.String() }

// String returns the query in the form that [ParseQuery] reads:
//
//	+fast_run -inplace &nnet3 canonicalize(+fast_run -local_add_canonizer) <49 ?
//
// The query that is empty prints as "none". Rewriters that a query brings along
// print as [name@position], which can't be read back.
func (q Query) String() string {
	var b strings.Builder
	q.print(&b)
	if b.Len() == 0 {
		return ModeNone
	}
	return b.String()
}

// print recurses into subqueries, which nest as deep as their author wrote them.
func (q Query) print(b *strings.Builder) {
	start := b.Len()
	space := func() {
		if b.Len() > start {
			b.WriteByte(' ')
		}
	}
	if q.debug {
		b.WriteString(ModeDebug)
	}
	for _, t := range q.terms {
		if q.debug && t == (term{include, ModeFastRun}) {
			continue
		}
		space()
		b.WriteByte(byte(t.sign))
		b.WriteString(t.tag)
	}
	for _, s := range q.subs {
		space()
		b.WriteString(s.db)
		b.WriteByte('(')
		s.q.print(b)
		b.WriteByte(')')
	}
	for _, e := range q.extras {
		space()
		fmt.Fprintf(b, "[%s@%s]", e.Name, formatPosition(e.Position))
	}
	if q.hasCut {
		space()
		b.WriteString("<" + formatPosition(q.cutoff))
	}
	if q.lenient {
		space()
		b.WriteByte('?')
	}
}

func (q Query) with(s sign, tags []string) Query {
	q.terms = slices.Clone(q.terms)
	for _, tag := range tags {
		t := term{s, tag}
		if !slices.Contains(q.terms, t) {
			q.terms = append(q.terms, t)
		}
	}
	return q
}

// tags returns the tags with that sign.
func (q Query) tags(s sign) []string {
	var tags []string
	for _, t := range q.terms {
		if t.sign == s {
			tags = append(tags, t.tag)
		}
	}
	return tags
}

// sub returns the query for a nested database: its subquery, or the query itself
// without what concerns the outer database only.
func (q Query) sub(db string) (Query, bool) {
	for i := range q.subs {
		if q.subs[i].db == db {
			return q.subs[i].q, true
		}
	}
	q.extras, q.hasCut, q.cutoff = nil, false, 0
	return q, false
}

func formatPosition(p float64) string { return strconv.FormatFloat(p, 'g', -1, 64) }

func validPosition(p float64) bool { return !math.IsNaN(p) && !math.IsInf(p, 0) }

// The names of the modes: queries that have a name.
const (
	ModeFastRun     = "fast_run"
	ModeFastCompile = "fast_compile"
	ModeNone        = "none"

	// ModeDebug is fast_run under observation: the graph is checked after every pass, and what is executed is checked
	// against what it declares. Who has values at hand compares those as well, see rewrite.Bisect.
	ModeDebug = "debug"
)

// TagInplace marks rewriters that make operations work in place.
const TagInplace = "inplace"

// Modes returns the names of the modes.
func Modes() []string { return []string{ModeFastRun, ModeFastCompile, ModeDebug, ModeNone} }

// Mode returns the query of a mode and whether there is one of that name.
func Mode(name string) (Query, bool) {
	switch name {
	case ModeFastRun, ModeFastCompile:
		return Include(name), true
	case ModeDebug:
		q := Include(ModeFastRun)
		q.debug = true
		return q, true
	case ModeNone:
		return Query{}, true
	}
	return Query{}, false
}
