package fileio

import (
	"fmt"
	"slices"
	"strings"
)

// excerptSide is the number of bytes that an excerpt has on each side of a place.
const excerptSide = 60

// Excerpt returns the part of a text around byte at, for an error that quotes untrusted input. It
// has at most 120 bytes, whole characters, and a mark "…" where something is left out. A text of up
// to 120 bytes is its own excerpt.
func Excerpt(text string, at int) string {
	if len(text) <= 2*excerptSide {
		return text
	}
	at = min(max(at, 0), len(text))
	from, to := max(at-excerptSide, 0), min(at+excerptSide, len(text))
	part := strings.ToValidUTF8(text[from:to], "")
	if from > 0 {
		part = "…" + part
	}
	if to < len(text) {
		part += "…"
	}
	return part
}

// Excerpts returns the arguments of a format with excerpts in place of texts, and of what prints
// itself as a text.
func Excerpts(args []any) []any {
	args = slices.Clone(args)
	for i, arg := range args {
		switch arg := arg.(type) {
		case error: // for %w
		case string:
			args[i] = Excerpt(arg, 0)
		case fmt.Stringer:
			args[i] = Excerpt(arg.String(), 0)
		}
	}
	return args
}
