package docs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
)

// TestRules holds the table of functions in rules.md against the vocabulary of tensors. With
// -update it writes the table.
func TestRules(t *testing.T) {
	page, err := os.ReadFile("rules.md")
	if err != nil {
		t.Fatal(err)
	}
	const head = "| call | gives | what it says |\n| --- | --- | --- |\n"
	text, _, ok := strings.Cut(string(page), head)
	if !ok {
		t.Fatalf("rules.md has no table %q", head)
	}
	want := text + head + functionsTable()
	if string(page) == want {
		return
	}
	if !*update {
		t.Fatal("rules.md has other functions than the vocabulary; go test ./docs -run Rules -update writes it")
	}
	if err := os.WriteFile("rules.md", []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// functionsTable returns the rows of the table of functions that rules may call.
func functionsTable() string {
	var b strings.Builder
	for _, f := range tensorpass.Vocabulary().(pattern.Library).Functions() {
		kind := "guard"
		switch {
		case f.Param != nil:
			kind = "parameters"
		case f.Build != nil:
			kind = "value"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Usage, kind, f.Doc)
	}
	return b.String()
}
