package optdb

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
)

// A Query selects entries of a database. It is a value: every method returns a
// new query and leaves its receiver unchanged, so that queries can be derived from
// one another, shared and stored. The zero Query selects nothing.
//
// An entry is selected if it has one of the included tags, all required tags and
// none of the excluded ones. Its name is one of its tags, and so is the name of
// its database. An entry of a nested database is selected only if the database is
// selected too, or if the entry is included by name: a tag of the entry does not
// open the database.
//
// Avoided tags are excluded unless the query names the entry or the tag, see [Query.Avoiding].
//
// A pipeline, see [ParsePipeline], selects by name instead: what it lists is selected
// unless the query excludes it or requires other tags.
type Query struct {
	terms   []term // in the order given, without duplicates
	subs    []subquery
	extras  []extra
	cutoff  float64
	hasCut  bool
	lenient bool
	debug   bool

	listed   pipeline // nil: entries are selected by their tags
	settings []settings
}

type sign byte

const (
	include sign = '+'
	require sign = '&'
	exclude sign = '-'
	avoid   sign = '~'
)

type term struct {
	sign sign
	tag  string
}

type subquery struct {
	db string
	q  Query
}

// An extra is a rewriter that a query adds to the database it is for, regardless of tags.
// A subquery is for the nested database.
type extra struct {
	name     string
	rewriter any // as in Entry
	position float64
}

// Include returns the query that selects the entries with any of the tags.
func Include(tags ...string) Query { return Query{}.Including(tags...) }

// Including returns the query that also selects the entries with any of the tags.
func (q Query) Including(tags ...string) Query { return q.with(include, tags) }

// Requiring returns the query that selects only entries with all of the tags.
// An entry of a nested database also has the tags of its database.
func (q Query) Requiring(tags ...string) Query { return q.with(require, tags) }

// Excluding returns the query that selects no entry with any of the tags, and
// nothing in a database with one of them. It drops the settings of entries with
// these names.
func (q Query) Excluding(tags ...string) Query {
	q.settings = slices.DeleteFunc(slices.Clone(q.settings), func(s settings) bool { return slices.Contains(tags, s.entry) })
	return q.with(exclude, tags)
}

// Avoiding returns the query that selects entries with any of the tags only if it names them: by the
// name of the entry, by including or requiring the tag, or in a pipeline. It is for what a program
// leaves out unless its user asks for it, and holds in subqueries, too.
func (q Query) Avoiding(tags ...string) Query { return q.with(avoid, tags) }

// Subquery returns the query that applies sub, instead of itself, to the nested
// database of that name. The query still decides whether the database is entered.
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
// given one. It does not apply to nested databases, which have positions of their
// own; a subquery can have its own cutoff.
func (q Query) Cutoff(position float64) Query {
	q.cutoff, q.hasCut = position, true
	return q
}

// With returns the query that also runs a rewriter, or a database, that is not
// registered, at the given position, regardless of tags. In a subquery it
// joins the nested database.
func (q Query) With(name string, rewriter any, position float64) Query {
	q.extras = append(slices.Clone(q.extras), extra{name, rewriter, position})
	return q
}

// Lenient returns the query for which a tag that no entry has is not an error, nor are
// settings of an entry that is left out. It is for queries of databases with plug-ins.
func (q Query) Lenient() Query {
	q.lenient = true
	return q
}

// Empty reports whether the query can't select anything.
func (q Query) Empty() bool {
	return len(q.extras) == 0 && len(q.listed) == 0 && !slices.ContainsFunc(q.terms, func(t term) bool { return t.sign == include })
}

// Listed reports whether the query is a pipeline, which lists all that it selects.
func (q Query) Listed() bool { return q.listed != nil }

// Debugging reports whether the query was derived from [ModeDebug].
func (q Query) Debugging() bool { return q.debug }

// Equal reports whether the queries print alike.
func (q Query) Equal(o Query) bool { return q.String() == o.String() }

// String returns the query in the form that [ParseQuery] reads:
//
//	+fast_run -inplace &nnet3 ~unsafe_nan canonicalize{max-use=8} stabilize(+fast_run -local_log1p) <49 ?
//
// A pipeline is printed in brackets. The empty query prints as "none". Rewriters added by
// [Query.With] print as [name@position], which can't be read back.
func (q Query) String() string {
	var b strings.Builder
	q.print(&b)
	if b.Len() == 0 {
		return ModeNone
	}
	return b.String()
}

// excerpt returns the beginning of the text for an error.
func (q Query) excerpt() string { return fileio.Excerpt(q.String(), 0) }

// print recurses into subqueries, which nest as deep as the author wrote them.
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
	if q.listed != nil {
		space()
		b.WriteByte('[')
		q.listed.print(b)
		b.WriteByte(']')
	}
	for _, t := range q.terms {
		// The word debug implies it, and reading the text puts it back.
		if q.debug && t == (term{include, ModeFastRun}) {
			continue
		}
		space()
		b.WriteByte(byte(t.sign))
		b.WriteString(t.tag)
	}
	for _, s := range q.settings {
		space()
		b.WriteString(s.entry)
		printSettings(b, s.list)
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
		fmt.Fprintf(b, "[%s@%s]", e.name, formatPosition(e.position))
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

// sub returns the query for a nested database: its subquery and true, or the query
// itself without extras and cutoff.
func (q Query) sub(db string) (Query, bool) {
	for i := range q.subs {
		if q.subs[i].db == db {
			return q.subs[i].q, true
		}
	}
	// These are about the database of the query: positions and lists mean nothing in another one.
	q.extras, q.hasCut, q.cutoff, q.listed = nil, false, 0, nil
	return q, false
}

func formatPosition(p float64) string { return strconv.FormatFloat(p, 'g', -1, 64) }

func validPosition(p float64) bool { return !math.IsNaN(p) && !math.IsInf(p, 0) }

// The names of the modes, which are queries.
const (
	ModeFastRun     = "fast_run"
	ModeFastCompile = "fast_compile"
	ModeNone        = "none"

	// ModeDebug is fast_run with checks: of the graph after every pass, and of
	// what ops do against what they declare. An optimizer has no inputs, so it
	// compares no values: repro.Debug (package tool/repro) does, and names the
	// rewrite that changes them.
	ModeDebug = "debug"
)

// TagInplace is the tag of rewriters that make operations work in place.
const TagInplace = "inplace"

// Mode returns the query of a mode and reports whether there is a mode of that
// name.
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
