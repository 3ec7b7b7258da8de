package expr

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nnopt/nnopt/tensor"
)

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
	text string // of a string, without its quotes
	pos  int    // in bytes
}

func (t token) String() string {
	if t.kind == tokenEnd {
		return "end"
	}
	return strconv.Quote(t.text)
}

// signs are the operators. An operator precedes its own prefixes.
var signs = []string{"**", "//", "->", "==", "!=", "<=", ">=", "::", "...", "+", "-", "*", "/", "%", "<", ">", "&", "|", "^", "~", "@", "(", ")", "[", "]", ",", ":", ".", "=", ";"}

// lex splits an expression into tokens, of which the last is the end.
func lex(text string) ([]token, error) {
	var tokens []token
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		if unicode.IsSpace(r) {
			at += size
			continue
		}
		t, length, err := lexToken(text[at:], r)
		if err != nil {
			err.Column += at
			return nil, err
		}
		t.pos = at
		tokens = append(tokens, t)
		at += length
	}
	return append(tokens, token{tokenEnd, "", len(text)}), nil
}

// lexToken reads the token that text starts with; r is the first rune. A name includes
// parameters in braces: sum{axis=0}.
func lexToken(text string, r rune) (t token, length int, err *SyntaxError) {
	switch {
	case unicode.IsLetter(r) || r == '_':
		n := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
		if n < 0 {
			n = len(text)
		}
		for n < len(text) && text[n] == '{' {
			end := strings.IndexByte(text[n:], '}')
			if end < 0 {
				return t, 0, &SyntaxError{n + 1, `"{" without "}"`, nil}
			}
			n += end + 1
		}
		return token{kind: tokenName, text: text[:n]}, n, nil
	case isDigit(text, 0) || r == '.' && isDigit(text, 1):
		n := numberLength(text)
		return token{kind: tokenNumber, text: text[:n]}, n, nil
	case r == '\'' || r == '"':
		end := strings.IndexByte(text[1:], byte(r))
		if end < 0 {
			return t, 0, &SyntaxError{1, "unterminated string", nil}
		}
		return token{kind: tokenString, text: text[1 : 1+end]}, end + 2, nil
	}
	for _, s := range signs {
		if strings.HasPrefix(text, s) {
			return token{kind: tokenSign, text: s}, len(s), nil
		}
	}
	return t, 0, &SyntaxError{1, fmt.Sprintf("unexpected %q", r), nil}
}

func isDigit(text string, i int) bool { return i < len(text) && text[i] >= '0' && text[i] <= '9' }

// numberLength returns the length of the number that text starts with: digits, a point, an
// exponent.
func numberLength(text string) int {
	digits := func(n int) int {
		for isDigit(text, n) || n < len(text) && text[n] == '_' {
			n++
		}
		return n
	}
	n := digits(0)
	if n < len(text) && text[n] == '.' {
		n = digits(n + 1)
	}
	if n < len(text) && (text[n] == 'e' || text[n] == 'E') {
		exponent := n + 1
		if exponent < len(text) && (text[exponent] == '+' || text[exponent] == '-') {
			exponent++
		}
		// Without digits the e is no exponent, but begins a name.
		if end := digits(exponent); end > exponent {
			n = end
		}
	}
	return n
}

// ErrSyntax is wrapped by every error of this package.
var ErrSyntax = errors.New("bad expression")

// A SyntaxError says what is wrong with an expression, and where.
type SyntaxError struct {
	Column int // in bytes, from 1
	text   string
	err    error // the cause, if there is one, such as a *tensor.Error
}

// At returns the column.
func (e *SyntaxError) At() int { return e.Column }

// Error leaves out the middle of a long text, which may quote what was read.
func (e *SyntaxError) Error() string {
	const most = 300
	text := e.text
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most/2], "") + " … " + strings.ToValidUTF8(text[len(text)-most/2:], "")
	}
	return fmt.Sprintf("column %d: %s", e.Column, text)
}

// Is reports whether target is ErrSyntax.
func (e *SyntaxError) Is(target error) bool { return target == ErrSyntax }

// Unwrap returns the cause.
func (e *SyntaxError) Unwrap() error { return e.err }

// fail panics with the error of a function or op. Scope.parse adds the column.
func fail(name, format string, args ...any) {
	panic(&tensor.Error{Op: name, Arg: -1, Text: fmt.Sprintf(format, args...)})
}
