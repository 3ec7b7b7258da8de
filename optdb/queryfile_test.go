package optdb_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/optdb"
)

func TestParseQueryFile(t *testing.T) {
	for text, want := range map[string]string{
		"":          "none",
		"# nothing": "none",
		"fast_run\n# why\n-inplace # as measured\n\t+a\r\n": "+fast_run -inplace +a",
		"+a\ncanonicalize{max-use=8} # twice\n<49":          "+a canonicalize{max-use=8} <49",
		"[useless,\n# first\ncanonicalize]\n":               "[useless, canonicalize]",
		"d(\n+a # b\n)":                                     "d(+a)",
	} {
		q, err := optdb.ParseQueryFile("q", text)
		if err != nil || q.String() != want {
			t.Errorf("%q: %s, %v, want %s", text, q, err, want)
		}
	}
	for text, want := range map[string]string{
		"+a\n+b # c\n  fast_run": "bad query in q.txt: line 3, column 3: the tag fast_run needs",
		"# one\n+":               "line 2, column 2: a tag is missing",
		"+a#b":                   "line 1, column 3: unexpected '#'",
		"d(+a\n\n":               `line 3, column 1: no ")" after d(`,
		"+a\n)":                  "line 2, column 1: unexpected ')'",
	} {
		_, err := optdb.ParseQueryFile("q.txt", text)
		if !errors.Is(err, optdb.ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
