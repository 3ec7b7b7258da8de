package descriptor

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
)

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
