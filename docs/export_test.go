package docs

import (
	"os"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/nnet3/component"
)

// TestExportTable: the page about ONNX says of every type of component what becomes of it.
func TestExportTable(t *testing.T) {
	page, err := os.ReadFile("export.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "| components | become |")
	if !ok {
		t.Fatal("there is no table of components")
	}
	table, _, _ := strings.Cut(rest, "\n\n")
	for _, typ := range component.Kaldi().Types() {
		if !strings.Contains(table, " "+typ+",") && !strings.Contains(table, " "+typ+" |") {
			t.Errorf("export.md does not say what becomes of %s", typ)
		}
	}
}
