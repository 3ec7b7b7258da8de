package fileio_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nnopt/nnopt/internal/fileio"
)

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("a", 500) + "HERE" + strings.Repeat("é", 500)
	for _, c := range []struct {
		text string
		at   int
		want string
	}{
		{"", 0, ""}, {"short", 3, "short"}, {"short", 99, "short"}, {strings.Repeat("x", 120), 7, strings.Repeat("x", 120)},
		{long, 500, "…" + strings.Repeat("a", 60) + "HERE" + strings.Repeat("é", 28) + "…"},
		{long, 0, strings.Repeat("a", 60) + "…"}, {long, -5, strings.Repeat("a", 60) + "…"},
		{long, len(long), "…" + strings.Repeat("é", 30)}, {long, 1 << 40, "…" + strings.Repeat("é", 30)},
	} {
		if got := fileio.Excerpt(c.text, c.at); got != c.want {
			t.Errorf("at %d: %q, want %q", c.at, got, c.want)
		}
	}
	for at := range len(long) {
		got := fileio.Excerpt(long, at)
		if !utf8.ValidString(got) || len(got) > 2*60+2*len("…") || !strings.Contains(long, strings.Trim(got, "…")) {
			t.Fatalf("at %d: %q", at, got)
		}
	}
}

type printed string

func (p printed) String() string { return string(p) }

func TestExcerpts(t *testing.T) {
	long := strings.Repeat("x", 1000)
	cause := errors.New(long)
	args := []any{long, printed(long), 7, cause}
	err := fmt.Errorf("%s %v %d %w", fileio.Excerpts(args)...)
	if want := strings.Repeat("x", 60) + "… " + strings.Repeat("x", 60) + "… 7 " + long; err.Error() != want || !errors.Is(err, cause) {
		t.Error(err)
	}
	if args[0] != any(long) {
		t.Error("the arguments of the caller change")
	}
}
