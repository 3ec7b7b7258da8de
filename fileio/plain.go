package fileio

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain returns a text in which what a terminal would obey instead of showing it is written as in a Go string: control characters except for
// newlines and tabs, characters that change the direction of writing, and bytes that are not UTF-8. A JSON text stays one.
func Plain(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(r)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == 0x7f:
			b.WriteString(`\u007f`) // JSON has no \x
		case steers(r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// PlainName is Plain for a name, in which newlines and tabs have no place either.
func PlainName(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Plain(s))
}

func isPlain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return utf8.ValidString(s) && !strings.ContainsFunc(s, steers)
		}
	}
	return true
}

// steers reports whether a terminal obeys a character: it is a control character, a separator of lines, or one of those that show nothing but change
// what is around them. Joiners, which the spelling of some languages needs, are none.
func steers(r rune) bool {
	switch {
	case r < 0x7f:
		return r < ' ' && r != '\n' && r != '\t'
	case r == '\u200c' || r == '\u200d':
		return false
	}
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r <= 0xffff && unicode.Is(unicode.Cf, r)
}

// A PlainWriter writes text as Plain has it.
type PlainWriter struct {
	w    io.Writer
	part []byte // of a character whose other bytes are still to come
}

// NewPlainWriter returns a writer that writes to w.
func NewPlainWriter(w io.Writer) *PlainWriter { return &PlainWriter{w: w} }

// Write writes text. The bytes of a character may come in several calls.
func (w *PlainWriter) Write(p []byte) (int, error) {
	text := p
	if len(w.part) > 0 {
		text = append(w.part, p...)
	}
	whole := len(text)
	for k := 1; k < utf8.UTFMax && k <= len(text); k++ {
		if b := text[len(text)-k]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[len(text)-k:]) {
				whole -= k
			}
			break
		}
	}
	_, err := io.WriteString(w.w, Plain(string(text[:whole])))
	w.part = append([]byte(nil), text[whole:]...)
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what is left of a character that has not become whole. It does not close the writer below.
func (w *PlainWriter) Close() error {
	if len(w.part) == 0 {
		return nil
	}
	_, err := io.WriteString(w.w, Plain(string(w.part)))
	w.part = nil
	return err
}
