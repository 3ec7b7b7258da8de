package optdb

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
)

// ErrSyntax is the error that errors of [ParseQuery] wrap.
var ErrSyntax = errors.New("bad query")

// maxNesting keeps a hostile text from exhausting the stack.
const maxNesting = 16

// ParseQuery reads a query: terms separated by spaces. A term is
//
//	+tag      include
//	-tag      exclude
//	&tag      require
//	~tag      exclude, but for what the query names
//	db(...)   a subquery for the nested database db
//	db{...}   settings of the entry db, such as canonicalize{max-use=8}
//	[...]     a pipeline instead of +tag, see [ParsePipeline]
//	<49       only positions below 49
//	?         tags that no entry has, and settings of what is left out, are not an error
//
// The text may begin with the name of a mode, which means its query:
// "fast_run -inplace" is "+fast_run -inplace", and "none" selects nothing, like the
// empty text. "debug" is fast_run with checks. Errors wrap [ErrSyntax] and give the
// column, counted in bytes from 1.
func ParseQuery(text string) (Query, error) {
	p := parser{text: text}
	return p.all()
}

// ParseQueryFile reads a query from the text of a file: terms as in [ParseQuery], on any number of
// lines. A # at the beginning of a line or after a space begins a comment, which ends with the line.
// Errors wrap [ErrSyntax] and give the name of the file, the line and the column.
func ParseQueryFile(name, text string) (Query, error) {
	p := parser{text: withoutComments(text), file: name}
	return p.all()
}

// withoutComments returns a text with spaces in place of its comments, so that everything else stays
// at its line and column.
func withoutComments(text string) string {
	b := []byte(text)
	comment, space := false, true
	for i, c := range b {
		switch {
		case c == '\n':
			comment = false
		case comment || c == '#' && space:
			comment, b[i] = true, ' '
		}
		space = isSpace(c)
	}
	return string(b)
}

type parser struct {
	text string
	file string // where the text is from, or ""
	at   int
}

// all reads the whole text.
func (p *parser) all() (Query, error) {
	q, err := p.query(0)
	if err != nil {
		return Query{}, err
	}
	if p.at < len(p.text) {
		return Query{}, p.fault(p.at, "unexpected %q", p.text[p.at])
	}
	return q, nil
}

func (p *parser) fault(at int, format string, args ...any) error {
	if p.file != "" {
		line := 1 + strings.Count(p.text[:at], "\n")
		column := at - strings.LastIndexByte(p.text[:at], '\n')
		return fmt.Errorf("%w in %s: line %d, column %d: %s", ErrSyntax, p.file, line, column, fmt.Sprintf(format, fileio.Excerpts(args)...))
	}
	return fmt.Errorf("%w %q: column %d: %s", ErrSyntax, fileio.Excerpt(p.text, at), at+1, fmt.Sprintf(format, fileio.Excerpts(args)...))
}

// query reads terms up to the end of the text or the ")" of a subquery.
func (p *parser) query(depth int) (Query, error) {
	var q Query
	for first := true; ; first = false {
		p.space()
		if p.at == len(p.text) || p.text[p.at] == ')' {
			return q, nil
		}
		if err := p.term(&q, first, depth); err != nil {
			return Query{}, err
		}
	}
}

func (p *parser) term(q *Query, first bool, depth int) error {
	start := p.at
	switch c := p.text[p.at]; c {
	case '+', '-', '&', '~':
		p.at++
		tag, err := p.tag()
		if err != nil {
			return err
		}
		*q = q.with(sign(c), []string{tag})
		return p.end()
	case '<':
		p.at++
		position, err := strconv.ParseFloat(p.word(), 64)
		if err != nil || !validPosition(position) {
			return p.fault(start, "a position after \"<\", such as <49")
		}
		if q.hasCut {
			return p.fault(start, "a second position")
		}
		*q = q.Cutoff(position)
		return nil
	case '[':
		return p.pipeline(q)
	case '?':
		p.at++
		*q = q.Lenient()
		return p.end()
	}
	return p.bare(q, first, depth)
}

// bare reads a term without a sign: a subquery or, as the first word, a mode.
func (p *parser) bare(q *Query, first bool, depth int) error {
	start := p.at
	name, err := p.tag()
	if err != nil {
		return p.fault(start, "unexpected %q, a tag needs one of + - & ~ before it", p.text[start])
	}
	// What follows a name decides what it is, so a database may have the name of a mode.
	if p.peek('{') {
		return p.set(q, name, start)
	}
	if p.peek('(') {
		return p.subquery(q, name, start, depth)
	}
	mode, ok := Mode(name)
	// A mode is a whole query, not a term: later in the text it would drop all that came before.
	if !ok || !first {
		return p.fault(start, "the tag %s needs one of + - & ~ before it", name)
	}
	*q = mode
	return p.end()
}

// pipeline reads a list in brackets. The include of "debug" does not count.
func (p *parser) pipeline(q *Query) error {
	start := p.at
	p.at++ // "["
	if q.listed != nil {
		return p.fault(start, "a second pipeline")
	}
	items, err := p.items(0)
	if err != nil {
		return err
	}
	if !p.peek(']') {
		return p.fault(p.at, "no \"]\" after the pipeline")
	}
	p.at++
	// The name debug stands for fast_run with checks, but an include beside a pipeline is an error.
	if q.listed = items; q.debug {
		q.terms = slices.DeleteFunc(slices.Clone(q.terms), func(t term) bool { return t == term{include, ModeFastRun} })
	}
	return p.end()
}

// set reads settings in braces.
func (p *parser) set(q *Query, entry string, start int) error {
	if len(q.settingsOf(&Entry{Name: entry})) > 0 {
		return p.fault(start, "settings of %s again", entry)
	}
	list, err := p.settings()
	if err != nil {
		return err
	}
	for _, g := range list {
		*q = q.Set(entry, g.name, g.value)
	}
	if p.peek('(') {
		return p.fault(p.at, "settings of %s are a term of their own: %s{...} %[1]s(...)", entry, entry)
	}
	return p.end()
}

func (p *parser) subquery(q *Query, db string, start, depth int) error {
	if depth == maxNesting {
		return p.fault(start, "more than %d subqueries inside each other", maxNesting)
	}
	for i := range q.subs {
		if q.subs[i].db == db {
			return p.fault(start, "a second subquery for %s", db)
		}
	}
	p.at++ // "("
	sub, err := p.query(depth + 1)
	if err != nil {
		return err
	}
	if p.at == len(p.text) {
		return p.fault(p.at, "no \")\" after %s(", db)
	}
	p.at++ // ")"
	*q = q.Subquery(db, sub)
	return p.end()
}

// tag reads a name.
func (p *parser) tag() (string, error) {
	start := p.at
	for p.at < len(p.text) && isTagByte(p.text[p.at], p.at > start) {
		p.at++
	}
	if p.at == start {
		return "", p.fault(start, "a tag is missing")
	}
	return p.text[start:p.at], nil
}

// word reads up to a space or a parenthesis.
func (p *parser) word() string {
	start := p.at
	for p.at < len(p.text) && !isSpace(p.text[p.at]) && p.text[p.at] != ')' {
		p.at++
	}
	return p.text[start:p.at]
}

// end checks that a term ends here.
func (p *parser) end() error {
	if p.at < len(p.text) && !isSpace(p.text[p.at]) && p.text[p.at] != ')' {
		return p.fault(p.at, "unexpected %q, terms are separated by spaces", p.text[p.at])
	}
	return nil
}

func (p *parser) space() {
	for p.at < len(p.text) && isSpace(p.text[p.at]) {
		p.at++
	}
}

func isSpace(c byte) bool { return strings.IndexByte(" \t\r\n", c) >= 0 }

// isTagByte reports whether c may occur in a tag: a letter, a digit, "_", or, if
// inner, also ".", "-" or ":".
func isTagByte(c byte, inner bool) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_':
		return true
	}
	return inner && (c == '.' || c == '-' || c == ':')
}

// validTag reports whether a query can contain the tag.
func validTag(tag string) bool {
	for i := range len(tag) {
		if !isTagByte(tag[i], i > 0) {
			return false
		}
	}
	return tag != ""
}
