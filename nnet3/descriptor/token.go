package descriptor

import (
	"fmt"
	"math"
	"strconv"
)

type token uint8

const (
	end token = iota
	word
	punct // ( ) ,
	illegal
)

// parser reads a text from left to right. The current token is text[pos:stop].
type parser struct {
	text      string
	node      func(string) (int, bool)
	tok       token
	pos, stop int
	room      int // for nodes of the normal form
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

// current returns the current token, fit to print.
func (p *parser) current() string {
	if p.tok == end {
		return "the end"
	}
	return strconv.Quote(clip(p.text[p.pos:p.stop]))
}

// clip returns a word, or the beginning of it if it is long.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

func (p *parser) errorf(pos int, format string, args ...any) error {
	return &Error{Text: p.text, Pos: pos, What: fmt.Sprintf(format, args...), Err: ErrSyntax}
}

// unexpectedAfter is the error for what follows a complete descriptor.
func (p *parser) unexpectedAfter() error {
	switch {
	case p.is(')'):
		return p.errorf(p.pos, "one closing parenthesis too many")
	case p.is(','):
		return p.errorf(p.pos, "a comma after the end: to put several inputs side by side, write Append(…)")
	}
	return p.errorf(p.pos, "expected the end, got %s", p.current())
}

// expect consumes a punctuation mark inside the function of the given name.
func (p *parser) expect(c byte, fn string) error {
	if p.is(c) {
		p.next()
		return nil
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
	return p.errorf(p.pos, "expected %q in %s, got %s%s; usage: %s", c, fn, p.current(), hint, usage(fn))
}

// integer reads a whole number that is at least low.
func (p *parser) integer(low int64, what, fn string) (int32, error) {
	if p.tok == word {
		v, err := strconv.ParseInt(p.text[p.pos:p.stop], 10, 32)
		if err == nil && v >= low {
			p.next()
			return int32(v), nil
		}
		if err == nil {
			return 0, p.errorf(p.pos, "%s must be at least %d, got %d; usage: %s", what, low, v, usage(fn))
		}
	}
	return 0, p.errorf(p.pos, "expected %s, a whole number, got %s; usage: %s", what, p.current(), usage(fn))
}

// real reads a finite number.
func (p *parser) real(what, fn string) (float32, error) {
	if p.tok == word {
		v, err := strconv.ParseFloat(p.text[p.pos:p.stop], 32)
		if err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) && !isHex(p.text[p.pos:p.stop]) {
			p.next()
			return float32(v), nil
		}
	}
	return 0, p.errorf(p.pos, "expected %s, a number, got %s; usage: %s", what, p.current(), usage(fn))
}

// isHex reports whether a number is hexadecimal or has underscores, which Go allows and Kaldi does not.
func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; c == 'x' || c == 'X' || c == '_' {
			return true
		}
	}
	return false
}
