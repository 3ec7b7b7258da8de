package descriptor

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/nnopt/nnopt/internal/fileio"
)

// Errors that the errors of this package wrap.
var (
	// ErrSyntax means that a text is not a descriptor.
	ErrSyntax = errors.New("malformed descriptor")
	// ErrUnknownNode means that a descriptor names a node that doesn't exist or can't be an input.
	ErrUnknownNode = errors.New("unknown node")
	// errDimension means that the terms of a sum have different numbers of columns.
	errDimension = errors.New("dimensions differ")
)

// Error says what is wrong with a text, and where.
type Error struct {
	Text    string
	Pos     int    // in bytes, from 0
	What    string // in words, with a suggestion
	Unknown string // the name, if Err is ErrUnknownNode
	Err     error  // ErrSyntax or ErrUnknownNode
}

// Error returns the fault and the text around it, with an arrow at the place.
func (e *Error) Error() string {
	const context = 40
	from, to := max(0, e.Pos-context), min(len(e.Text), e.Pos+context)
	before, after := e.Text[from:e.Pos], e.Text[e.Pos:to]
	if from > 0 {
		before = "…" + before
	}
	if to < len(e.Text) {
		after += "…"
	}
	excerpt := strings.TrimLeft(printable(before)+" -> "+printable(after), " ")
	return fmt.Sprintf("descriptor, column %d: %s: %s", e.Pos+1, e.What, excerpt)
}

// printable replaces the characters that would break a line.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\ufffd'
	}, s)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// maxDepth bounds the nesting of functions, before and after normalization, and so recursion.
const maxDepth = 4000

// MaxSize bounds the nodes in the tree of a normal form, including those that are only made on the
// way. A node takes some 400 bytes of memory and two bytes of text. No recipe has a thousand.
const MaxSize = 1 << 17

// Parse reads a descriptor and returns its normal form. The function node returns the number of a
// node by its name, and false if no such node can be an input. The error is an *Error.
func Parse(text string, node func(name string) (int, bool)) (Descriptor, error) {
	room := MaxSize
	return ParseWithin(text, node, &room)
}

// ParseWithin is Parse for one of several descriptors that share the room for the nodes of their
// trees, at first MaxSize. It subtracts from *room what the descriptor takes.
func ParseWithin(text string, node func(name string) (int, bool), room *int) (Descriptor, error) {
	p := &parser{text: text, node: node, room: *room}
	p.next()
	parts := p.descriptor(0)
	// Also after an error: the text has cost that much work.
	*room = p.room
	if p.err == nil {
		p.expectEnd()
	}
	for i := range parts {
		if parts[i].depth() >= maxDepth {
			p.fail(0, "written out, more than %d functions are inside each other", maxDepth)
		}
	}
	if p.err != nil {
		return Descriptor{}, p.err
	}
	return Descriptor{parts}, nil
}

// depth returns how deep functions are nested when the part is printed.
func (s *Sum) depth() int {
	deepest := 0
	if s.Kind == Simple {
		return s.Forward.depth()
	}
	for i := range s.Args {
		d := s.Args[i].depth() + 1
		// The printed form nests a sum of n terms n-1 deep, and must be readable again.
		if s.Kind == Add { // Sum(a, Sum(b, Sum(c, d)))
			d += min(i, len(s.Args)-2)
		}
		deepest = max(deepest, d)
	}
	return deepest
}

func (f *Forward) depth() int {
	deepest := 1 // a Scale
	for i := range f.Src {
		deepest = max(deepest, f.Src[i].depth()+1)
	}
	return deepest
}

type token uint8

const (
	end token = iota
	word
	punct // ( ) ,
	illegal
)

// parser reads a text from left to right. The current token is text[pos:stop]. After the first
// error it consumes nothing.
type parser struct {
	text      string
	node      func(string) (int, bool)
	tok       token
	pos, stop int
	room      int // for nodes of the normal form
	err       *Error
}

// next moves on to the next token.
func (p *parser) next() {
	i := p.stop
	for i < len(p.text) && (p.text[i] == ' ' || p.text[i] >= '\t' && p.text[i] <= '\r') {
		i++
	}
	p.pos = i
	if i == len(p.text) {
		p.tok, p.stop = end, i
		return
	}
	switch c := p.text[i]; {
	case c == '(' || c == ')' || c == ',':
		p.tok, p.stop = punct, i+1
	case isNameChar(c) || c == '+':
		for i < len(p.text) && (isNameChar(p.text[i]) || p.text[i] == '+') {
			i++
		}
		p.tok, p.stop = word, i
	default:
		p.tok, p.stop = illegal, i+1
	}
}

func isNameChar(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

// is reports whether the current token is the given punctuation mark.
func (p *parser) is(c byte) bool { return p.tok == punct && p.text[p.pos] == c }

// current returns the current token for a message.
func (p *parser) current() string {
	if p.tok == end {
		return "the end"
	}
	return strconv.Quote(fileio.Excerpt(p.text[p.pos:p.stop], 0))
}

// fail records an error, unless there is one already. It returns nil for its caller to return.
func (p *parser) fail(pos int, format string, args ...any) []Sum {
	if p.err == nil {
		p.err = &Error{Text: p.text, Pos: pos, What: fmt.Sprintf(format, args...), Err: ErrSyntax}
	}
	return nil
}

// expectEnd checks that nothing follows a descriptor.
func (p *parser) expectEnd() {
	switch {
	case p.tok == end:
	case p.is(')'):
		p.fail(p.pos, "one closing parenthesis too many")
	case p.is(','):
		p.fail(p.pos, "a comma after the end: to put several inputs side by side, write Append(…)")
	default:
		p.fail(p.pos, "expected the end, got %s", p.current())
	}
}

// expect consumes a punctuation mark inside the function of the given name.
func (p *parser) expect(c byte, function string) {
	if p.err != nil {
		return
	}
	if p.is(c) {
		p.next()
		return
	}
	hint := ""
	switch {
	case c == ')' && p.is(','):
		hint = ": too many arguments"
	case c == ',' && p.is(')'):
		hint = ": too few arguments"
	case c == ')' && p.tok == end:
		hint = ": a parenthesis is not closed"
	case c == ',' && p.tok == word:
		hint = ": is a comma missing?"
	}
	p.fail(p.pos, "expected %q in %s, got %s%s; usage: %s", c, function, p.current(), hint, usage[function])
}

// integer reads a whole number that is at least low.
func (p *parser) integer(low int64, what, function string) int32 {
	if p.err != nil {
		return 0
	}
	if p.tok == word {
		v, err := strconv.ParseInt(p.text[p.pos:p.stop], 10, 32)
		if err == nil && v >= low {
			p.next()
			return int32(v)
		}
		if err == nil {
			p.fail(p.pos, "%s must be at least %d, got %d; usage: %s", what, low, v, usage[function])
		}
	}
	p.fail(p.pos, "expected %s, a whole number, got %s; usage: %s", what, p.current(), usage[function])
	return 0
}

// real reads a finite number. Unlike Go, Kaldi has no hexadecimal numbers and no underscores.
func (p *parser) real(what, function string) float32 {
	text := p.text[p.pos:p.stop]
	if p.err == nil && p.tok == word && !strings.ContainsAny(text, "xX_") {
		v, err := strconv.ParseFloat(text, 32)
		if err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
			p.next()
			return float32(v)
		}
	}
	p.fail(p.pos, "expected %s, a number, got %s; usage: %s", what, p.current(), usage[function])
	return 0
}
