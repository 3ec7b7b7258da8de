package tensor

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A SyntaxError tells where an expression can't be read.
type SyntaxError struct {
	Column int // in bytes, from 1 on
	Text   string
	Err    error // what wraps the cause, if there is one: an *Error
}

// Error leaves out the middle of a long text, which may quote what was read.
func (e *SyntaxError) Error() string {
	const most = 300
	text := e.Text
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most/2], "") + " … " + strings.ToValidUTF8(text[len(text)-most/2:], "")
	}
	return fmt.Sprintf("column %d: %s", e.Column, text)
}

// Is makes the error be found as ErrSyntax.
func (e *SyntaxError) Is(target error) bool { return target == ErrSyntax }

// Unwrap returns the cause.
func (e *SyntaxError) Unwrap() error { return e.Err }

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenNumber
	tokenString
	tokenSign
)

type token struct {
	kind tokenKind
	text string // of a string without its quotes
	pos  int    // in bytes
}

// signs are the operators, longer ones before those that they begin with.
var signs = []string{"**", "//", "->", "==", "!=", "<=", ">=", "::", "...", "+", "-", "*", "/", "%", "<", ">", "&", "|", "^", "~", "@", "(", ")", "[", "]", ",", ":", ".", "=", ";"}

// lex splits an expression. A name takes the parameters in braces that follow it: sum{axis=0}.
func lex(text string) ([]token, error) {
	var tokens []token
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case unicode.IsSpace(r):
			at += size
			continue
		case unicode.IsLetter(r) || r == '_':
			n := strings.IndexFunc(text[at:], func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
			if n < 0 {
				n = len(text) - at
			}
			for at+n < len(text) && text[at+n] == '{' {
				end := strings.IndexByte(text[at+n:], '}')
				if end < 0 {
					return nil, &SyntaxError{at + n + 1, `"{" without "}"`, nil}
				}
				n += end + 1
			}
			tokens = append(tokens, token{tokenName, text[at : at+n], at})
			at += n
			continue
		case r >= '0' && r <= '9' || r == '.' && at+1 < len(text) && text[at+1] >= '0' && text[at+1] <= '9':
			n := numberLength(text[at:])
			tokens = append(tokens, token{tokenNumber, text[at : at+n], at})
			at += n
			continue
		case r == '\'' || r == '"':
			end := strings.IndexByte(text[at+1:], byte(r))
			if end < 0 {
				return nil, &SyntaxError{at + 1, "string without an end", nil}
			}
			tokens = append(tokens, token{tokenString, text[at+1 : at+1+end], at})
			at += end + 2
			continue
		}
		sign := ""
		for _, s := range signs {
			if strings.HasPrefix(text[at:], s) {
				sign = s
				break
			}
		}
		if sign == "" {
			return nil, &SyntaxError{at + 1, fmt.Sprintf("unexpected %q", r), nil}
		}
		tokens = append(tokens, token{tokenSign, sign, at})
		at += len(sign)
	}
	return append(tokens, token{tokenEnd, "", len(text)}), nil
}

// numberLength returns the length of the number that the text begins with: digits, a point, an exponent.
func numberLength(text string) int {
	n := 0
	digits := func() {
		for n < len(text) && (text[n] >= '0' && text[n] <= '9' || text[n] == '_') {
			n++
		}
	}
	digits()
	if n < len(text) && text[n] == '.' {
		n++
		digits()
	}
	if n < len(text) && (text[n] == 'e' || text[n] == 'E') {
		back := n
		n++
		if n < len(text) && (text[n] == '+' || text[n] == '-') {
			n++
		}
		if first := n; true {
			digits()
			if n == first {
				n = back
			}
		}
	}
	return n
}
