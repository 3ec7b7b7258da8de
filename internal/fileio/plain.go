package fileio

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain escapes everything in s that a terminal would interpret, as in a Go string: control
// characters other than newlines and tabs, characters that change the direction of text, and
// invalid UTF-8. JSON text remains JSON text with the same meaning.
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

// PlainName is like Plain for a name, and also escapes newlines and tabs.
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

// steers reports whether a terminal interprets r: control characters, line separators, and
// invisible characters that affect their surroundings. Joiners are excluded, because the
// spelling of some languages needs them.
func steers(r rune) bool {
	switch {
	case r < 0x7f:
		return r < ' ' && r != '\n' && r != '\t'
	case r == '\u200c' || r == '\u200d':
		return false
	}
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r <= 0xffff && unicode.Is(unicode.Cf, r)
}

// NewPlainWriter returns a writer that writes text to w as Plain returns it. A character may be
// split over several writes. Close writes the rest of an incomplete character, and does not
// close w.
func NewPlainWriter(w io.Writer) io.WriteCloser { return &plainWriter{w: w} }

type plainWriter struct {
	w    io.Writer
	part []byte // start of an incomplete character
}

func (w *plainWriter) Write(p []byte) (int, error) {
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

func (w *plainWriter) Close() error {
	if len(w.part) == 0 {
		return nil
	}
	_, err := io.WriteString(w.w, Plain(string(w.part)))
	w.part = nil
	return err
}
