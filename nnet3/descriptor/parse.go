package descriptor

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Errors that the errors of this package wrap.
var (
	// ErrSyntax means that a text is not a descriptor.
	ErrSyntax = errors.New("malformed descriptor")
	// ErrUnknownNode means that a descriptor names a node that doesn't exist or can't be an input.
	ErrUnknownNode = errors.New("unknown node")
	// ErrDimension means that the terms of a sum have different numbers of columns.
	ErrDimension = errors.New("dimensions differ")
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
