package docs

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/passes"
)

// TestNnet3Passes holds the page about the passes for nnet3 against the database: every entry has
// its line in both tables, with the sentence that the database has, and nothing else has one.
func TestNnet3Passes(t *testing.T) {
	page, err := os.ReadFile("nnet3-passes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, entries, ok := strings.Cut(string(page), "\n## Entries\n")
	entries, without, ok2 := strings.Cut(entries, "\n## Without each\n")
	if !ok || !ok2 {
		t.Fatal("nnet3-passes.md has no parts \"Entries\" and \"Without each\"")
	}
	names := func(text string) (list []string) {
		for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)`").FindAllStringSubmatch(text, -1) {
			list = append(list, m[1])
		}
		return list
	}
	var want []string
	for _, l := range passes.Default().Entries() {
		if !slices.Contains(l.Tags, "nnet3") {
			continue
		}
		want = append(want, l.Name)
		tags := slices.DeleteFunc(l.Tags, func(tag string) bool { return tag == "nnet3" })
		line := fmt.Sprintf(" | %s | %s |", strings.Join(tags, " "), strings.ReplaceAll(l.Doc, "|", "\\|"))
		if !strings.Contains(entries, line) {
			t.Errorf("no line of nnet3-passes.md has the tags and the sentence of %s:%s", l.Name, line)
		}
	}
	for part, text := range map[string]string{"Entries": entries, "Without each": without} {
		if got := names(text); !slices.Equal(got, want) {
			t.Errorf("part %q of nnet3-passes.md has %q, the database %q: make it again with \"nnopt passes --ablation DIR...\"", part, got, want)
		}
	}
}
